// Measures single kernels without an executor. Tiny tensors show the overhead of an op, large ones show the rate. Each
// benchmark builds a graph with one op, makes its kernel, and calls it again and again.
#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <vector>

#include "cohort/backends/cpu/cpu_device.h"
#include "cohort/backends/register.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/math.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/register.h"

namespace cohort {
namespace {

Tensor Filled(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (dtype == DType::kFloat32)
      tensor.data<float>()[i] = 0.01f * static_cast<float>(i % 100 + 1);
    else
      tensor.data<int32_t>()[i] = static_cast<int32_t>(i % shape.dim(shape.rank() - 1));
  }
  return tensor;
}

// Runs the kernel of the node that `build` returns again and again on the given float32 inputs. It cannot work in
// place, because the inputs are kept.
void RunKernel(benchmark::State& state, const std::vector<Tensor>& inputs,
               const std::function<Output(const std::vector<Output>&)>& build) {
  RegisterOps();
  RegisterBackends();
  Graph graph;
  std::vector<Output> placeholders;
  for (const Tensor& input : inputs) placeholders.push_back(ops::Placeholder(graph, input.dtype(), input.shape()));
  const Node& node = *build(placeholders).node;
  const auto devices =
      MakeCpuDevices(DeviceName::Parse("/job:localhost/replica:0/task:0"), 1, 1, std::make_shared<TaskResources>());
  const auto kernel = KernelRegistry::Global().Create({node, *devices[0]});
  std::vector<Tensor> slots = inputs;
  std::vector<int32_t> places, uses;
  for (const Output& input : node.inputs()) {
    if (input.node->op_name() == "Const") {
      places.push_back(static_cast<int32_t>(slots.size()));
      slots.push_back(input.node->attr<Tensor>("value"));
    } else {
      places.push_back(input.node->id());  // the placeholders are the first nodes
    }
  }
  uses.assign(slots.size(), 2);
  std::vector<Tensor> outputs(static_cast<size_t>(node.num_outputs()));
  const StepInfo step;
  int64_t bytes = 0;
  for (auto _ : state) {
    KernelContext ctx(node, *devices[0], step, slots.data(), places, outputs.data(), uses.data());
    kernel->Compute(ctx);
    benchmark::DoNotOptimize(outputs[0].raw_data());
  }
  for (const Tensor& input : inputs) bytes += static_cast<int64_t>(input.bytes());
  state.SetBytesProcessed(state.iterations() * (bytes + static_cast<int64_t>(outputs[0].bytes())));
}

void Add(benchmark::State& state) {
  const Tensor x = Filled(DType::kFloat32, {state.range(0)});
  RunKernel(state, {x, x}, [](const auto& in) { return in[0] + in[1]; });
}
BENCHMARK(Add)->Arg(8)->Arg(1 << 20);

void MulScalar(benchmark::State& state) {
  RunKernel(state, {Filled(DType::kFloat32, {state.range(0)}), Filled(DType::kFloat32, {1})},
            [](const auto& in) { return in[0] * in[1]; });
}
BENCHMARK(MulScalar)->Arg(8)->Arg(1 << 20);

void AddRow(benchmark::State& state) {
  RunKernel(state, {Filled(DType::kFloat32, {state.range(0), 64}), Filled(DType::kFloat32, {64})},
            [](const auto& in) { return in[0] + in[1]; });
}
BENCHMARK(AddRow)->Arg(2)->Arg(1 << 14);

void Exp(benchmark::State& state) {
  RunKernel(state, {Filled(DType::kFloat32, {state.range(0)})}, [](const auto& in) { return ops::Exp(in[0]); });
}
BENCHMARK(Exp)->Arg(8)->Arg(1 << 20);

void SumAll(benchmark::State& state) {
  RunKernel(state, {Filled(DType::kFloat32, {state.range(0)})}, [](const auto& in) { return ops::Sum(in[0]); });
}
BENCHMARK(SumAll)->Arg(8)->Arg(1 << 20);

void SumRows(benchmark::State& state) {
  RunKernel(state, {Filled(DType::kFloat32, {state.range(0), 32})},
            [](const auto& in) { return ops::Sum(in[0], {1}); });
}
BENCHMARK(SumRows)->Arg(2)->Arg(1 << 15);

void SumColumns(benchmark::State& state) {
  RunKernel(state, {Filled(DType::kFloat32, {state.range(0), 32})},
            [](const auto& in) { return ops::Sum(in[0], {0}); });
}
BENCHMARK(SumColumns)->Arg(2)->Arg(1 << 15);

void MatMul(benchmark::State& state) {
  const Tensor x = Filled(DType::kFloat32, {state.range(0), state.range(0)});
  RunKernel(state, {x, x}, [](const auto& in) { return ops::MatMul(in[0], in[1]); });
  state.counters["flops"] =
      benchmark::Counter(2.0 * static_cast<double>(state.range(0) * state.range(0) * state.range(0)),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(MatMul)->Arg(4)->Arg(8)->Arg(12)->Arg(16)->Arg(20)->Arg(32)->Arg(512);

// Measures relu(x w + bias) of [rows, k] and [k, n], as one kernel (`fused`) or as three kernels. Of the three, those
// after the product work in place.
void Dense(benchmark::State& state) {
  RegisterOps();
  RegisterBackends();
  const int64_t rows = state.range(0), k = state.range(1), n = state.range(2);
  const bool fused = state.range(3) != 0;
  const std::vector<Tensor> inputs = {Filled(DType::kFloat32, {rows, k}), Filled(DType::kFloat32, {k, n}),
                                      Filled(DType::kFloat32, {n})};
  Graph graph;
  std::vector<Output> in;
  for (const Tensor& input : inputs) in.push_back(ops::Placeholder(graph, input.dtype(), input.shape()));
  if (fused) {
    graph.Op("_FusedMatMul").Input(in[0]).Input(in[1]).Input(in[2]).Attr("activation", std::string("Relu")).Finish();
  } else {
    ops::Relu(ops::BiasAdd(ops::MatMul(in[0], in[1]), in[2]));
  }
  const auto devices =
      MakeCpuDevices(DeviceName::Parse("/job:localhost/replica:0/task:0"), 1, 1, std::make_shared<TaskResources>());
  std::vector<Tensor> slots(static_cast<size_t>(graph.num_nodes()));  // each node has one output
  std::vector<int32_t> uses(slots.size(), 1);
  std::vector<std::unique_ptr<OpKernel>> kernels;
  std::vector<std::vector<int32_t>> places;
  std::vector<const Node*> nodes;
  for (const Node* node : graph.nodes()) {
    if (node->num_inputs() == 0) {
      slots[static_cast<size_t>(node->id())] = inputs[static_cast<size_t>(node->id())];
      continue;
    }
    nodes.push_back(node);
    kernels.push_back(KernelRegistry::Global().Create({*node, *devices[0]}));
    places.emplace_back();
    for (const Output& input : node->inputs()) places.back().push_back(input.node->id());
  }
  const StepInfo step;
  for (auto _ : state) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      KernelContext ctx(*nodes[i], *devices[0], step, slots.data(), places[i], slots.data() + nodes[i]->id(),
                        uses.data());
      kernels[i]->Compute(ctx);
      if (i > 0) slots[static_cast<size_t>(nodes[i - 1]->id())].Reset();
    }
    benchmark::DoNotOptimize(slots.back().raw_data());
    slots.back().Reset();
  }
  state.counters["flops"] =
      benchmark::Counter(2.0 * static_cast<double>(rows * k * n), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(Dense)
    ->ArgNames({"rows", "k", "n", "fused"})
    ->ArgsProduct({{1}, {64}, {64}, {0, 1}})
    ->ArgsProduct({{100}, {784}, {128}, {0, 1}})
    ->ArgsProduct({{128}, {64}, {1024}, {0, 1}})
    ->ArgsProduct({{8192}, {64}, {1024}, {0, 1}})
    ->ArgsProduct({{8192}, {512}, {1024}, {0, 1}});

void Transpose(benchmark::State& state) {
  RunKernel(state, {Filled(DType::kFloat32, {state.range(0), state.range(0)})}, [](const auto& in) {
    return ops::Transpose(in[0], {1, 0});
  });
}
BENCHMARK(Transpose)->Arg(4)->Arg(1024);

void GatherRows(benchmark::State& state) {
  RunKernel(state, {Filled(DType::kFloat32, {1000, 32}), Filled(DType::kInt32, {state.range(0)})},
            [](const auto& in) { return ops::Gather(in[0], in[1]); });
}
BENCHMARK(GatherRows)->Arg(8)->Arg(1000);

void Reshape(benchmark::State& state) {
  RunKernel(state, {Filled(DType::kFloat32, {8, 8})}, [](const auto& in) { return ops::Reshape(in[0], {64}); });
}
BENCHMARK(Reshape);

}  // namespace
}  // namespace cohort

BENCHMARK_MAIN();
