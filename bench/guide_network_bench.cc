// A training step (SGD) of the network that guide-004 trains, against the sum of the times of its oneDNN primitives
// alone, which no program that uses them can beat: docs/benchmarks.md has the method and figures.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"
#include "cohort/kernels/cpu/convolution_call.h"
#include "cohort/kernels/cpu/pooling_call.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

struct Separable {
  int64_t size;
  int64_t in;
  int64_t out;
  bool pooled;
};
constexpr Separable kLayers[] = {
    {28, 128, 128, true}, {14, 128, 256, false}, {14, 256, 256, true}, {7, 256, 512, false}, {7, 512, 512, true}};
constexpr int64_t kFlat = 3 * 3 * 512;

double MedianMs(const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const auto begin = Clock::now();
    run();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin() + 2, times.begin() + 4, times.end());  // the first two warm up
  return times[4];
}

Tensor Values(DType dtype, const Shape& shape, float scale = 0.1f) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const float value = scale * std::sin(static_cast<float>(i % 9973));
    if (dtype == DType::kFloat32)
      tensor.data<float>()[i] = value;
    else
      tensor.data<bfloat16>()[i] = bfloat16(value);
  }
  return tensor;
}

// The network, with float32 variables; computed in `dtype`.
class Network {
 public:
  Network(int64_t batch, DType dtype) : dtype_(dtype) {
    images_ = Values(DType::kFloat32, Shape{batch, 28, 28, 1}, 1.0f);
    labels_ = Tensor(DType::kInt32, Shape{batch});
    for (int64_t i = 0; i < batch; ++i) labels_.data<int32_t>()[i] = static_cast<int32_t>(i % 10);
    x_ = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, 28, 28, 1}, "images");
    y_ = ops::Placeholder(graph_, DType::kInt32, Shape{-1}, "labels");
    Output h = Finished(ops::Conv2D(Computed(x_), Weights({3, 3, 1, 128}, 9), {.padding = "SAME"}), 128);
    for (const Separable& l : kLayers) {
      h = ops::DepthwiseConv2dNative(h, Weights({3, 3, l.in, 1}, 9), {.padding = "SAME"});
      h = Finished(ops::Conv2D(h, Weights({1, 1, l.in, l.out}, l.in)), l.out);
      if (l.pooled) h = ops::MaxPool(h);
    }
    h = Finished(ops::MatMul(ops::Reshape(h, {-1, kFlat}), Weights({kFlat, 512}, kFlat)), 512);
    const Output logits = ops::BiasAdd(ops::MatMul(h, Weights({512, 10}, 512)), Computed(Variable(Shape{10}, 0)));
    loss_ = ops::Mean(ops::SparseSoftmaxCrossEntropyWithLogits(ops::Cast(logits, DType::kFloat32), y_));
    train_ = train::GradientDescentOptimizer(0.01).Minimize(loss_);
  }

  // Median time of a step; the loss has to fall.
  double StepMs(int threads) {
    SessionConfig config;
    config.intra_op_parallelism_threads = threads;
    Session session(graph_, "", config);
    session.Run(ops::GlobalVariablesInitializer(graph_));
    const Callable step = session.MakeCallable({x_, y_}, {loss_}, {train_});
    std::vector<float> losses;
    const double ms = MedianMs([&] { losses.push_back(step({images_, labels_})[0].scalar<float>()); });
    if (!(losses.back() < losses.front()))
      throw InternalError(StrCat("the loss went from ", losses.front(), " to ", losses.back()));
    return ms;
  }

 private:
  Output Computed(Output value) { return value.dtype() == dtype_ ? value : ops::Cast(value, dtype_); }
  Output Variable(const Shape& shape, float scale) {
    const ops::Variable variable(graph_, ops::Const(graph_, Values(DType::kFloat32, shape, scale)), {});
    return variable.value();
  }
  Output Weights(const Shape& shape, int64_t fan_in) {
    return Computed(Variable(shape, 1.2f / std::sqrt(static_cast<float>(fan_in))));
  }
  Output Finished(Output value, int64_t channels) {
    return ops::Selu(ops::BiasAdd(value, Computed(Variable(Shape{channels}, 0))));
  }

  const DType dtype_;
  Graph graph_;
  Tensor images_, labels_;
  Output x_, y_, loss_;
  Node* train_ = nullptr;
};

// Its primitives, one by one, in the order of channels that the plan uses, each on buffers of its own.
class Primitives {
 public:
  Primitives(int64_t batch, DType dtype, int threads) : batch_(batch), dtype_(dtype), threads_(threads) {
    Convolution({3, 3, 1, 128}, 28, 1, true, false);
    for (const Separable& l : kLayers) {
      Convolution({3, 3, 1, l.in}, l.size, l.in, false, true);
      Convolution({1, 1, l.in, l.out}, l.size, l.in, true, true);
      if (l.pooled) Pool(l.size, l.out);
    }
    Dense(kFlat, 512, true);
    Dense(512, 10, false);
  }
  double ms() const { return ms_; }

 private:
  void Time(const cpu::OneDnnCall& call, const std::vector<size_t>& bytes) {
    std::vector<Tensor> buffers;
    for (const size_t size : bytes)
      buffers.push_back(Values(DType::kFloat32, Shape{static_cast<int64_t>(size / 4 + 1)}));
    Run(call, buffers);
  }
  void Run(const cpu::OneDnnCall& call, const std::vector<Tensor>& b) {
    static const StepInfo step;
    KernelContext ctx(*node_, *devices_[0], step, nullptr, nullptr, nullptr, nullptr);
    ctx.set_num_threads(threads_);
    ms_ += MedianMs([&] {
      switch (b.size()) {
        case 2: return call.Run(ctx, {b[0].raw_data(), b[1].raw_data()});
        case 3: return call.Run(ctx, {b[0].raw_data(), b[1].raw_data(), b[2].raw_data()});
        default: return call.Run(ctx, {b[0].raw_data(), b[1].raw_data(), b[2].raw_data(), b[3].raw_data()});
      }
    });
  }

  size_t Bytes(const Shape& shape) const { return static_cast<size_t>(shape.num_elements()) * DTypeSize(dtype_); }

  // Forward with bias and SELU where it is `activated`, with the gradient of SELU then.
  void Convolution(const Shape& filter, int64_t size, int64_t in, bool activated, bool input_gradient) {
    cpu::UseThreads(threads_);
    cpu::ConvolutionSpec spec;
    spec.dtype = dtype_;
    spec.window.padding = "SAME";
    spec.input = Shape{batch_, size, size, in};
    spec.filter = filter;
    spec.output = Shape{batch_, size, size, filter.dim(3)};
    spec.input_order = in > 1 ? cpu::Order::kBlocked : cpu::Order::kChannelsLast;
    spec.output_order = cpu::Order::kBlocked;
    const size_t x = Bytes(spec.input), w = Bytes(filter), y = Bytes(spec.output), b = Bytes(Shape{filter.dim(3)});
    if (input_gradient) Time(cpu::InputGradientCall(spec), {y, w, x});
    spec.bias = activated;
    if (activated) {
      Time(cpu::FilterGradientCall(spec), {x, y, w, b});
      spec.activation = "Selu";
      Time(cpu::ConvolutionCall(spec), {x, w, b, y});
      ActivationGradient(spec.output.num_elements());
    } else {
      Time(cpu::FilterGradientCall(spec), {x, y, w});
      Time(cpu::ConvolutionCall(spec), {x, w, y});
    }
  }

  void ActivationGradient(int64_t elements) {
    const dnnl::memory::desc desc = cpu::VectorDesc(elements, dtype_);
    const auto algorithm = dnnl::algorithm::eltwise_elu_use_dst_for_bwd;
    const dnnl::eltwise_forward::primitive_desc forward(
        dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, algorithm, desc, 1.67f), cpu::CpuEngine());
    const dnnl::eltwise_backward::primitive_desc backward(dnnl::eltwise_backward::desc(algorithm, desc, desc, 1.67f),
                                                          cpu::UserScratchpad(), cpu::CpuEngine(), forward);
    const size_t size = desc.get_size();
    Time({dnnl::eltwise_backward(backward),
          backward,
          {{DNNL_ARG_DST, desc, desc}, {DNNL_ARG_DIFF_DST, desc, desc}, {DNNL_ARG_DIFF_SRC, desc, desc, true}}},
         {size, size, size});
  }

  void Pool(int64_t size, int64_t channels) {
    cpu::PoolSpec spec;
    spec.dtype = dtype_;
    spec.window.size = spec.window.strides = {2, 2};
    spec.window.padding = "VALID";
    spec.input = Shape{batch_, size, size, channels};
    spec.output = ops::PooledShape(spec.window, spec.input);
    spec.order = cpu::Order::kBlocked;
    spec.places = true;
    const cpu::OneDnnCall forward = cpu::PoolCall(spec);
    std::vector<Tensor> b = {Values(dtype_, spec.input), Values(dtype_, spec.output),
                             Tensor(DType::kUint8, Shape{static_cast<int64_t>(forward.bytes(DNNL_ARG_WORKSPACE))})};
    Run(forward, b);
    std::swap(b[0], b[1]);
    Run(cpu::PoolGradientCall(spec), b);
  }

  void Product(int64_t m, int64_t k, int64_t n) {
    const auto desc = [&](int64_t rows, int64_t columns) {
      return dnnl::memory::desc({rows, columns}, cpu::OneDnnType(dtype_), dnnl::memory::format_tag::ab);
    };
    const dnnl::matmul::primitive_desc matmul(dnnl::matmul::desc(desc(m, k), desc(k, n), desc(m, n)),
                                              cpu::UserScratchpad(), cpu::CpuEngine());
    const size_t size = DTypeSize(dtype_);
    Time({dnnl::matmul(matmul),
          matmul,
          {{DNNL_ARG_SRC, desc(m, k), desc(m, k)},
           {DNNL_ARG_WEIGHTS, desc(k, n), desc(k, n)},
           {DNNL_ARG_DST, desc(m, n), desc(m, n), true}}},
         {size * static_cast<size_t>(m * k), size * static_cast<size_t>(k * n), size * static_cast<size_t>(m * n)});
  }

  void Dense(int64_t in, int64_t out, bool activated) {
    Product(batch_, in, out);
    Product(batch_, out, in);
    Product(in, batch_, out);
    if (activated) ActivationGradient(batch_ * out);
  }

  const int64_t batch_;
  const DType dtype_;
  const int threads_;
  double ms_ = 0;
  std::vector<std::unique_ptr<Device>> devices_ =
      MakeCpuDevices(DeviceName::Parse("/job:localhost/replica:0/task:0"), 1, 1, std::make_shared<TaskResources>());
  Graph graph_;
  Node* node_ = graph_.Op("NoOp").Finish();
};

// Arguments: images a step, threads, 1 for bfloat16.
void Step(benchmark::State& state) {
  const int64_t batch = state.range(0);
  const int threads = static_cast<int>(state.range(1));
  const DType dtype = state.range(2) == 1 ? DType::kBfloat16 : DType::kFloat32;
  double step = 0, primitives = 0;
  for (auto _ : state) {
    step = Network(batch, dtype).StepMs(threads);
    primitives = Primitives(batch, dtype, threads).ms();
  }
  state.counters["step_ms"] = step;
  state.counters["primitives_ms"] = primitives;
  state.counters["of_limit"] = primitives / step;
  state.counters["images_per_s"] = 1000.0 * static_cast<double>(batch) / step;
}
BENCHMARK(Step)->ArgsProduct({{64, 256}, {1, 2}, {0, 1}})->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cohort

BENCHMARK_MAIN();
