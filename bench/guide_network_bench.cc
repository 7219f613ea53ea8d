// Measures a training step (SGD) of the guide network, and the sum of the times of its oneDNN primitives alone. A
// program that uses the same primitives cannot be faster than that sum. The step is measured first: its time, the
// memory that it holds, and its peak. Then the primitives are timed one by one.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "bench/guide_network.h"
#include "cohort/backends/cpu/cpu_device.h"
#include "cohort/backends/cpu/kernels/convolution_call.h"
#include "cohort/backends/cpu/kernels/pooling_call.h"
#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

double MedianMs(const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const auto begin = Clock::now();
    run();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin() + 2, times.begin() + 4, times.end());  // the first two times are the warm-up
  return times[4];
}

// Returns the host memory that the allocator has from the system, used and cached.
double HeldMib() {
  const AllocatorStats stats = HostAllocatorStats();
  return static_cast<double>(stats.bytes_in_use + stats.bytes_cached) / (1 << 20);
}

// Measures the most resident memory of this process since the object was made, minus the memory at that time.
class PeakMemory {
 public:
  PeakMemory() {
    std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
    start_ = Mib("VmRSS:");
  }
  double mib() const { return Mib("VmHWM:") - start_; }

 private:
  static double Mib(const std::string& field) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      double kib = 0;
      if (word == field && status >> kib) return kib / 1024;
    }
    throw NotFoundError(StrCat("/proc/self/status has no ", field));
  }
  double start_ = 0;
};

struct Measured {
  double ms = 0;        // median of a step
  double mib = 0;       // memory that is held after the steps and was not held before
  double peak_mib = 0;  // the most resident memory, minus that before the first step
};

// Runs steps and measures them. Checks that the loss falls.
Measured Steps(int64_t batch, DType dtype, int threads) {
  GuideNetwork network(batch, dtype);
  TrimHostAllocator();
  const double held = HeldMib();
  const PeakMemory peak;
  const GuideNetwork::Run run(network, threads);
  std::vector<float> losses;
  const double ms = MedianMs([&] { losses.push_back(run.Step()); });
  if (!(losses.back() < losses.front()))
    throw InternalError(StrCat("the loss went from ", losses.front(), " to ", losses.back()));
  return {ms, HeldMib() - held, peak.mib()};
}

// Times the primitives of the network one by one, in the order of channels that the plan uses. Each has buffers of its
// own.
class Primitives {
 public:
  Primitives(int64_t batch, DType dtype, int threads) : batch_(batch), dtype_(dtype), threads_(threads) {
    Convolution({3, 3, 1, 128}, 28, 1, true, false);
    for (const GuideSeparable& l : kGuideSeparables) {
      Convolution({3, 3, 1, l.in}, l.size, l.in, false, true);
      Convolution({1, 1, l.in, l.out}, l.size, l.in, true, true);
      if (l.pooled) Pool(l.size, l.out);
    }
    Dense(kGuideFlat, 512, true);
    Dense(512, 10, false);
  }
  double ms() const { return ms_; }

 private:
  void Time(const cpu::OneDnnCall& call, const std::vector<size_t>& bytes) {
    std::vector<Tensor> buffers;
    buffers.reserve(bytes.size());
    for (const size_t size : bytes)
      buffers.push_back(SineValues(DType::kFloat32, Shape{static_cast<int64_t>(size / 4 + 1)}));
    Run(call, buffers);
  }
  void Run(const cpu::OneDnnCall& call, const std::vector<Tensor>& b) {
    static const StepInfo step;
    KernelContext ctx(*node_, *devices_[0], step, nullptr, {}, nullptr, nullptr);
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

  // Times a convolution and its gradients. If `activated` is true, it has a bias and SELU, and the gradient of SELU is
  // timed, too.
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
    std::vector<Tensor> b = {SineValues(dtype_, spec.input), SineValues(dtype_, spec.output),
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

// The arguments are: images in one step, threads, 1 for bfloat16.
void Step(benchmark::State& state) {
  const int64_t batch = state.range(0);
  const int threads = static_cast<int>(state.range(1));
  const DType dtype = state.range(2) == 1 ? DType::kBfloat16 : DType::kFloat32;
  Measured step;
  double primitives = 0;
  for ([[maybe_unused]] auto _ : state) {
    step = Steps(batch, dtype, threads);
    primitives = Primitives(batch, dtype, threads).ms();
  }
  state.counters["step_ms"] = step.ms;
  state.counters["step_mib"] = step.mib;
  state.counters["peak_mib"] = step.peak_mib;
  state.counters["primitives_ms"] = primitives;
  state.counters["of_limit"] = primitives / step.ms;
  state.counters["images_per_s"] = 1000.0 * static_cast<double>(batch) / step.ms;
}
BENCHMARK(Step)->ArgsProduct({{64, 256}, {1, 2}, {0, 1}})->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cohort

BENCHMARK_MAIN();
