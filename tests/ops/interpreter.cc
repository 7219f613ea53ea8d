#include "tests/ops/interpreter.h"

#include <chrono>
#include <future>
#include <set>

#include "cohort/backends/cpu/cpu_device.h"
#include "cohort/backends/register.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"

namespace cohort::testing {
namespace {

// Returns the nodes that `roots` need, each after its inputs and control inputs. The inputs of fed nodes are not
// followed.
std::vector<const Node*> Order(const std::vector<const Node*>& roots, const std::set<const Node*>& fed) {
  std::vector<const Node*> order;
  std::set<const Node*> seen;
  std::vector<std::pair<const Node*, size_t>> stack;
  const auto push = [&](const Node* node) {
    if (!fed.contains(node) && seen.insert(node).second) stack.emplace_back(node, 0);
  };
  for (const Node* root : roots) {
    push(root);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      const size_t inputs = node->inputs().size();
      if (next == inputs + node->control_inputs().size()) {
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      const size_t i = next++;
      push(i < inputs ? node->inputs()[i].node : node->control_inputs()[i - inputs]);
    }
  }
  return order;
}

// Runs an asynchronous kernel and waits for it. Throws the error that the kernel reports.
void ComputeAndWait(AsyncOpKernel& kernel, KernelContext& context) {
  const auto done = std::make_shared<std::promise<Status>>();  // a late kernel may outlive this call
  std::future<Status> outcome = done->get_future();
  kernel.ComputeAsync(context, [done](const Status& status) { done->set_value(status); });
  if (outcome.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
    throw DeadlineExceededError(StrCat("[interpreter] ", context.node().Describe(), " did not end within 60 s"));
  }
  outcome.get().ThrowIfError();
}

}  // namespace

bool RegisterForTests() {
  RegisterOps();
  RegisterBackends();
  RegisterRuntimeKernels(KernelRegistry::Global());
  return true;
}

Interpreter::Interpreter(int threads)
    : threads_(threads),
      task_(std::make_shared<TaskResources>()),
      devices_(MakeCpuDevices(DeviceName::Parse("/job:localhost/replica:0/task:0"), 1, threads, task_)) {}

Interpreter::~Interpreter() = default;

OpKernel& Interpreter::KernelOf(const Node& node) {
  MadeKernel& made = kernels_[&node];
  const auto signature = std::make_pair(node.num_inputs(), node.num_outputs());
  if (made.kernel == nullptr || made.signature != signature) {
    std::unique_ptr<FunctionLibrary>& functions = functions_[&node.graph()];
    if (functions == nullptr) functions = std::make_unique<FunctionLibrary>(node.graph(), device());
    made = {KernelRegistry::Global().Create({node, device(), functions.get()}), signature};
  }
  return *made.kernel;
}

std::vector<Tensor> Interpreter::Run(const std::vector<Output>& fetches, const Feeds& feeds,
                                     const std::vector<Node*>& targets) {
  std::set<const Node*> fed;
  for (const auto& [output, value] : feeds) fed.insert(output.node);
  std::vector<const Node*> roots(targets.begin(), targets.end());
  for (const Output& fetch : fetches) roots.push_back(fetch.node);
  const std::vector<const Node*> order = Order(roots, fed);

  std::map<const Node*, int32_t> first_slot;
  int32_t slot_count = 0;
  const auto add_slots = [&](const Node* node) {
    if (first_slot.emplace(node, slot_count).second) slot_count += node->num_outputs();
  };
  for (const Node* node : fed) add_slots(node);
  for (const Node* node : order) add_slots(node);
  const auto slot_of = [&](const Output& value) { return first_slot.at(value.node) + value.index; };

  std::vector<Tensor> slots(static_cast<size_t>(slot_count) + 1);
  std::vector<int32_t> uses(slots.size(), 0);
  for (const Node* node : order) {
    for (const Output& input : node->inputs()) ++uses[static_cast<size_t>(slot_of(input))];
  }
  for (const Output& fetch : fetches) ++uses[static_cast<size_t>(slot_of(fetch))];
  for (const auto& [output, value] : feeds) {
    slots[static_cast<size_t>(slot_of(output))] = value;
    ++uses[static_cast<size_t>(slot_of(output))];  // the use by the caller
  }

  CancellationManager cancellation;
  StepInfo step;
  step.cancellation = &cancellation;
  for (const Node* node : order) {
    std::vector<int32_t> input_slots;
    for (const Output& input : node->inputs()) input_slots.push_back(slot_of(input));
    KernelContext context(*node, device(), step, slots.data(), input_slots, slots.data() + first_slot.at(node),
                          uses.data());
    context.set_num_threads(threads_);
    OpKernel& kernel = KernelOf(*node);
    if (observer_ != nullptr) observer_->Before(context);
    kernel.AsAsync() == nullptr ? kernel.Compute(context) : ComputeAndWait(*kernel.AsAsync(), context);
    if (observer_ != nullptr) {
      observer_->After(context, {slots.data() + first_slot.at(node), static_cast<size_t>(node->num_outputs())});
    }
    for (const int32_t slot : input_slots) {
      if (--uses[static_cast<size_t>(slot)] == 0) slots[static_cast<size_t>(slot)] = Tensor();
    }
  }
  std::vector<Tensor> results;
  for (const Output& fetch : fetches) results.push_back(slots[static_cast<size_t>(slot_of(fetch))]);
  return results;
}

}  // namespace cohort::testing
