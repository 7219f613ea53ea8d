// Plan: one partition compiled for its device. It says what runs, from which values to which values.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cohort/device/kernel.h"

namespace cohort {

class FunctionLibrary;

// One kernel of a plan. A kernel that a backend has made for several nodes has the last of them as its node.
struct PlanNode {
  OpKernel* kernel = nullptr;
  AsyncOpKernel* async = nullptr;  // the kernel if it waits, else null
  const Node* node = nullptr;
  int32_t input_begin = 0;  // in Plan::input_slots
  int32_t num_inputs = 0;
  int32_t output_begin = 0;  // slot
  int32_t num_outputs = 0;
  int32_t successor_begin = 0;  // in Plan::successors
  int32_t num_successors = 0;
  int32_t async_index = 0;  // among the kernels that wait
  bool updates = false;     // changes variables
  bool on_host = false;     // allocates host memory on a device that has a memory of its own
};

// Made by CompilePlan and never changed afterwards. All steps of an executor share it, on any threads. A slot is the
// place of one value: each output of a node has one, and so has each constant that is an input.
struct Plan {
  // Uses of a slot that holds a constant, which is never released or written over.
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
  std::unique_ptr<FunctionLibrary> own_functions;  // of the kernels that call functions; null in a function's body
  std::vector<std::unique_ptr<OpKernel>> kernels;
  std::vector<PlanNode> nodes;  // in an order in which they can run one by one; constants have none
  std::vector<int32_t> input_slots;
  std::vector<int32_t> successors;  // indices into nodes
  std::vector<int32_t> sources;     // nodes without predecessors
  std::vector<int32_t> initial_pending;
  std::vector<int32_t> initial_uses;                  // of each slot
  std::vector<std::pair<int32_t, Tensor>> constants;  // slot, value
  std::vector<bool> leaves;                           // by node: what it makes is kept after the step
  int32_t async_nodes = 0;
  int32_t update_nodes = 0;
  bool has_sends = false;
  bool on_streams = false;       // kernels enqueue their work; a step has ended when what it has enqueued has run
  bool has_host_memory = false;  // all values lie in the memory that HostAllocator() gives
};

}  // namespace cohort
