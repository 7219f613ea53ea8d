// Plan: one partition, compiled for its device. It says which kernels run, and which values they read and make.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cohort/device/kernel.h"

namespace cohort {

class FunctionLibrary;

// One kernel of a plan. If the kernel is a chain of several nodes, `node` is the last of them.
struct PlanNode {
  OpKernel* kernel = nullptr;
  AsyncOpKernel* async = nullptr;  // the same kernel if it waits, else null
  const Node* node = nullptr;
  int32_t input_begin = 0;  // index into Plan::input_slots
  int32_t num_inputs = 0;
  int32_t output_begin = 0;  // the slot of output 0
  int32_t num_outputs = 0;
  int32_t successor_begin = 0;  // index into Plan::successors
  int32_t num_successors = 0;
  int32_t async_index = 0;  // number of this kernel among the kernels that wait
  bool updates = false;     // it changes variables
  bool sends = false;       // it sends a value to another partition
  bool on_host = false;     // it allocates host memory, although the device has a memory of its own
};

// CompilePlan makes it. After that it never changes, and any thread may read it. The executor owns it, and the
// executor's steps share it. A slot is the place of one value: each output of a node has a slot, and so has each
// constant that is an input.
struct Plan {
  // The number of uses of a slot that holds a constant. Such a slot is never released or overwritten.
  static constexpr int32_t kForEver = 1 << 30;

  Plan(std::unique_ptr<Graph> graph, Device& device);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  bool is_synchronous() const { return async_nodes == 0; }
  std::span<const int32_t> InputSlots(const PlanNode& node) const {
    return {input_slots.data() + node.input_begin, static_cast<size_t>(node.num_inputs)};
  }

  std::unique_ptr<Graph> graph;
  Device& device;
  // Compiles the functions that kernels call. Null in the plan of a function's body: it uses the library of the
  // outermost caller's plan.
  std::unique_ptr<FunctionLibrary> own_functions;
  std::vector<std::unique_ptr<OpKernel>> kernels;
  std::vector<PlanNode> nodes;                        // in an order in which they can run one by one; without constants
  std::vector<int32_t> input_slots;                   // the slots that the nodes read, node after node
  std::vector<int32_t> successors;                    // indices into `nodes`
  std::vector<int32_t> sources;                       // nodes without predecessors
  std::vector<int32_t> initial_pending;               // for each node: how many nodes must run before it
  std::vector<int32_t> initial_uses;                  // for each slot: how many inputs read it
  std::vector<std::pair<int32_t, Tensor>> constants;  // slot, value
  std::vector<bool> leaves;                           // for each node: whether its results are kept after the step
  int32_t async_nodes = 0;                            // nodes whose kernels wait
  int32_t update_nodes = 0;                           // nodes that change variables
  bool has_sends = false;                             // a node has `sends`
  bool on_streams = false;       // kernels enqueue their work; a step ends when all work that it has enqueued has run
  bool has_host_memory = false;  // the device's allocator is HostAllocator()
};

}  // namespace cohort
