#include "cohort/backends/cuda/fake/graph_run.h"

#include <map>
#include <memory>

#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/graph/topological_order.h"

namespace cohort::testing {
namespace {

cuda::CudaDevice& DeviceOfTests() {
  static auto* const device = new std::unique_ptr<Device>(cuda::MakeGpuForTests());
  return static_cast<cuda::CudaDevice&>(**device);
}

// The values of one run.
class GraphRun {
 public:
  explicit GraphRun(const std::vector<std::pair<Output, Tensor>>& feeds) {
    for (const auto& [output, value] : feeds) fed_[output.node].push_back(value);
  }

  void Compute(const Node& node) {
    std::vector<Tensor> slots;
    std::vector<int32_t> input_slots, uses;
    for (int i = 0; i < node.num_inputs(); ++i) {
      input_slots.push_back(static_cast<int32_t>(slots.size()));
      slots.push_back(ValueOf(node.input(i), cuda::InputOnHost(node, i)));
    }
    const size_t first_output = slots.size();
    slots.resize(first_output + static_cast<size_t>(node.num_outputs()));
    uses.assign(slots.size(), 2);  // so that no kernel takes the memory of an input
    const std::unique_ptr<OpKernel> kernel = KernelRegistry::Global().Create({node, device_, nullptr});
    KernelContext context(node, device_, step_, slots.data(), input_slots, slots.data() + first_output, uses.data());
    kernel->Compute(context);
    values_[&node].assign(slots.begin() + static_cast<std::ptrdiff_t>(first_output), slots.end());
  }

  Tensor Fetch(const Output& output) { return ValueOf(output, true); }

  void Finish() {
    device_.Synchronize();
    error_.status().ThrowIfError();
  }

  bool IsFed(const Node& node) const { return fed_.count(&node) > 0; }

 private:
  Tensor ValueOf(const Output& output, bool on_host) {
    const auto fed = fed_.find(output.node);
    const Tensor& value =
        (fed != fed_.end() ? fed->second : values_.at(output.node))[static_cast<size_t>(output.index)];
    if (value.space().is_host() == on_host) return value;
    return on_host ? device_.CopyToHost(value) : device_.CopyFromHost(value);
  }

  cuda::CudaDevice& device_ = DeviceOfTests();
  std::map<const Node*, std::vector<Tensor>> fed_;
  std::map<const Node*, std::vector<Tensor>> values_;
  StepError error_;
  CancellationManager cancellation_;
  const StepInfo step_ = [this] {
    StepInfo step;
    step.error = &error_;
    step.cancellation = &cancellation_;
    return step;
  }();
};

}  // namespace

std::vector<Tensor> RunOnGpu(const Graph& graph, const std::vector<Output>& fetches,
                             const std::vector<std::pair<Output, Tensor>>& feeds) {
  DeviceOfTests();  // registers the kernels
  GraphRun run(feeds);
  for (const Node* node : TopologicalOrder(graph)) {
    if (!run.IsFed(*node)) run.Compute(*node);
  }
  std::vector<Tensor> values;
  values.reserve(fetches.size());
  for (const Output& fetch : fetches) values.push_back(run.Fetch(fetch));
  run.Finish();
  return values;
}

}  // namespace cohort::testing
