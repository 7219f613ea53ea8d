// Interpreter: runs a graph node by node on one CPU device of its own, for the tests of ops and kernels that need no
// session. Kernels and variables live as long as it does.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cohort/device/kernel.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/execution/function_library.h"

namespace cohort::testing {

// Registers all ops and kernels of ops/ and kernels/; including this header does it before main() runs.
bool RegisterForTests();
inline const bool kRegisteredForTests = RegisterForTests();

class Interpreter {
 public:
  using Feeds = std::vector<std::pair<Output, Tensor>>;

  // `threads`: what kernels are told that their OpenMP team has.
  explicit Interpreter(int threads = 1);
  ~Interpreter();

  // Runs what the fetches and targets need, each node once. Inputs are forwarded in place as in a real step.
  std::vector<Tensor> Run(const std::vector<Output>& fetches, const Feeds& feeds = {},
                          const std::vector<Node*>& targets = {});
  Tensor Run1(Output fetch, const Feeds& feeds = {}) { return Run({fetch}, feeds)[0]; }
  void RunNode(Node* target, const Feeds& feeds = {}) { Run({}, feeds, {target}); }
  Device& device() { return *devices_[0]; }

  // Sees each kernel that is run.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void Before(const KernelContext& ctx) = 0;
    // `outputs` are those of the kernel's node.
    virtual void After(const KernelContext& ctx, std::span<const Tensor> outputs) = 0;
  };
  // Must outlive the interpreter.
  void set_observer(Observer& observer) { observer_ = &observer; }

 private:
  OpKernel& KernelOf(const Node& node);

  const int threads_;
  Observer* observer_ = nullptr;
  std::shared_ptr<TaskResources> task_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::map<const Graph*, std::unique_ptr<FunctionLibrary>> functions_;
  struct MadeKernel {
    std::unique_ptr<OpKernel> kernel;
    std::pair<int, int> signature;  // gradients give some nodes more inputs and outputs
  };
  std::map<const Node*, MadeKernel> kernels_;
};

}  // namespace cohort::testing
