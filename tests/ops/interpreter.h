// Interpreter: runs a graph node by node on one CPU device of its own, for tests of ops and kernels that need no
// session. Kernels and variables live as long as the interpreter. Not thread-safe.
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

// Registers all ops and kernels. A test that includes this header calls it before main() runs.
bool RegisterForTests();
inline const bool kRegisteredForTests = RegisterForTests();

class Interpreter {
 public:
  using Feeds = std::vector<std::pair<Output, Tensor>>;

  // `threads` is the number of threads that kernels may use.
  explicit Interpreter(int threads = 1);
  ~Interpreter();

  // Runs the nodes that the fetches and targets need, each once. Inputs are forwarded in place as in a real step.
  std::vector<Tensor> Run(const std::vector<Output>& fetches, const Feeds& feeds = {},
                          const std::vector<Node*>& targets = {});
  Tensor Run1(Output fetch, const Feeds& feeds = {}) { return Run({fetch}, feeds)[0]; }
  void RunNode(Node* target, const Feeds& feeds = {}) { Run({}, feeds, {target}); }
  Device& device() { return *devices_[0]; }

  // Is called after each kernel.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void Before(const KernelContext& ctx) = 0;
    // `outputs` are the outputs of the kernel's node.
    virtual void After(const KernelContext& ctx, std::span<const Tensor> outputs) = 0;
  };
  // Sets the observer. It must outlive the interpreter.
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
    std::pair<int, int> signature;  // the numbers of inputs and outputs; a gradient may add some to a node
  };
  std::map<const Node*, MadeKernel> kernels_;
};

}  // namespace cohort::testing
