// The kernels of random ops. Their launches are in random.cu. Seeds, shapes and generators are the host's: a call
// reserves a part of the generator's numbers, and the launch draws them. A step that comes from a recording reserves
// its part before its work is enqueued.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/random.cu.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/random_inputs.h"

namespace cohort::cuda {
namespace {

PhiloxCounter CounterOf(const Philox& philox) {
  PhiloxCounter counter{};
  std::copy(philox.counter().begin(), philox.counter().end(), counter.counter);
  std::copy(philox.key().begin(), philox.key().end(), counter.key);
  return counter;
}

// The place of a stateful op's numbers in a step. In a recorded step the host writes it anew for each run.
class StartOfStep {
 public:
  StartOfStep(const CudaCall& call, GuardedPhilox& philox, int64_t numbers) {
    if (call.recording() == nullptr) {
      start_.value = CounterOf(philox.ReserveFor(call.ctx(), numbers));
      return;
    }
    on_card_ = call.recording()->PerRun(sizeof(PhiloxCounter), [&philox, numbers](void* to) {
      const PhiloxCounter counter = CounterOf(philox.ReserveFor(numbers));
      std::memcpy(to, &counter, sizeof(counter));
    });
    start_.on_card = static_cast<const PhiloxCounter*>(on_card_.raw_data());
  }
  const RandomStart& get() const { return start_; }

 private:
  RandomStart start_;
  Tensor on_card_;
};

// Numbers of a floating-point distribution.
class StatefulKernel final : public OpKernel {
 public:
  StatefulKernel(const KernelConstruction& c, Distribution distribution)
      : philox_(c), distribution_(distribution), type_(FloatingType(c.attr<DType>("dtype"), c.node.op_name())) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
    const StartOfStep start(call, philox_, out.num_elements());
    if (out.num_elements() == 0) return;
    LaunchRandom(call.driver(), call.stream(), distribution_, type_, start.get(), out.raw_data(), out.num_elements());
  }

 private:
  GuardedPhilox philox_;
  const Distribution distribution_;
  const ElementType type_;
};

class StatelessKernel final : public OpKernel {
 public:
  StatelessKernel(const KernelConstruction& c, Distribution distribution)
      : distribution_(distribution), type_(FloatingType(c.attr<DType>("dtype"), c.node.op_name())) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
    const Philox start = PhiloxOfSeedInput(ctx.input(1));
    if (out.num_elements() == 0) return;
    LaunchRandom(call.driver(), call.stream(), distribution_, type_, {CounterOf(start)}, out.raw_data(),
                 out.num_elements());
  }

 private:
  const Distribution distribution_;
  const ElementType type_;
};

// A stateless op whose seed lies in the card's memory.
class SeedOnCardKernel final : public OpKernel {
 public:
  explicit SeedOnCardKernel(const KernelConstruction& c)
      : distribution_(Find(c.attr<std::string>("distribution"))),
        type_(FloatingType(c.attr<DType>("dtype"), c.node.op_name())) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
    const Tensor& seed = ctx.input(1);
    CheckSeed(seed);
    if (out.num_elements() == 0) return;
    const Scratch start(call, sizeof(PhiloxCounter));
    auto* const on_card = static_cast<PhiloxCounter*>(start.data());
    LaunchStartOfSeed(call.driver(), call.stream(), ElementTypeOf(seed.dtype()), seed.raw_data(), on_card);
    LaunchRandom(call.driver(), call.stream(), distribution_, type_, {{}, on_card}, out.raw_data(), out.num_elements());
  }

 private:
  static Distribution Find(const std::string& name) {
    if (name == "uniform") return Distribution::kUniform;
    return name == "normal" ? Distribution::kNormal : Distribution::kTruncatedNormal;
  }

  const Distribution distribution_;
  const ElementType type_;
};

// Integers from `minval` to `maxval` - 1.
void DrawIntegers(const CudaCall& call, const RandomStart& start, const Tensor& minval, const Tensor& maxval,
                  Tensor& out) {
  if (minval.num_elements() != 1 || maxval.num_elements() != 1) {
    throw InvalidArgumentError(StrCat("[kernels/random] expected scalars as minval and maxval; got shapes ",
                                      minval.shape(), " and ", maxval.shape()));
  }
  const int64_t low = IntegerAt(minval, 0), high = IntegerAt(maxval, 0);
  if (low >= high) {
    throw InvalidArgumentError(StrCat("[kernels/random] Need minval < maxval, got ", low, " >= ", high));
  }
  LaunchRandomIntegers(call.driver(), call.stream(), ElementTypeOf(out.dtype()), start, static_cast<uint64_t>(low),
                       static_cast<uint64_t>(high) - static_cast<uint64_t>(low), out.raw_data(), out.num_elements());
}

class StatefulIntKernel final : public OpKernel {
 public:
  explicit StatefulIntKernel(const KernelConstruction& c) : philox_(c) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
    if (out.num_elements() == 0) return;
    DrawIntegers(call, StartOfStep(call, philox_, out.num_elements()).get(), ctx.input(1), ctx.input(2), out);
  }

 private:
  GuardedPhilox philox_;
};

void StatelessInt(KernelContext& ctx) {
  const CudaCall call(ctx);
  Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
  const Philox start = PhiloxOfSeedInput(ctx.input(1));
  if (out.num_elements() > 0) DrawIntegers(call, {CounterOf(start)}, ctx.input(2), ctx.input(3), out);
}

void StatelessFullInt(KernelContext& ctx) {
  const CudaCall call(ctx);
  Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
  const Philox start = PhiloxOfSeedInput(ctx.input(1));
  if (out.num_elements() == 0) return;
  LaunchRandomIntegers(call.driver(), call.stream(), ElementTypeOf(out.dtype()), {CounterOf(start)}, 0, 0,
                       out.raw_data(), out.num_elements());
}

// The host finds the order of the rows, and the device moves them.
class ShuffleKernel final : public OpKernel {
 public:
  explicit ShuffleKernel(const KernelConstruction& c) : philox_(c) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& value = ctx.input(0);
    const int64_t rows = value.shape().rank() < 1 ? 1 : value.shape().dim(0);
    if (rows <= 1 || value.num_elements() <= 1) return ctx.SetOutput(0, value);
    const Tensor order = OrderOnCard(call, rows);
    Tensor& out = ctx.AllocateOutput(0, value.shape());
    LaunchShuffle(call.driver(), call.stream(), DTypeSize(value.dtype()), value.raw_data(),
                  static_cast<const int64_t*>(order.raw_data()), rows, value.num_elements() / rows, out.raw_data());
  }

 private:
  Tensor OrderOnCard(const CudaCall& call, int64_t rows) {
    if (call.recording() == nullptr) {
      return call.device().CopyFromHostAsync(Tensor::Vector(philox_.RandomOrder(call.ctx(), rows)));
    }
    return call.recording()->PerRun(static_cast<size_t>(rows) * sizeof(int64_t), [this, rows](void* to) {
      const std::vector<int64_t> order = philox_.RandomOrder(rows);
      std::memcpy(to, order.data(), order.size() * sizeof(int64_t));
    });
  }

  GuardedPhilox philox_;
};

std::unique_ptr<OpKernel> MakeShuffle(const KernelConstruction& c) {
  if (c.node.input(0).dtype() == DType::kString) return MakeHostFallback(KernelRegistry::Global(), c);
  return std::make_unique<ShuffleKernel>(c);
}

template <typename Kernel>
void Register(KernelRegistry& registry, const char* name, Distribution distribution) {
  registry.Register(name, kGpu, [distribution](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<Kernel>(c, distribution);
  });
}

}  // namespace

void RegisterRandomKernels(KernelRegistry& registry) {
  Register<StatefulKernel>(registry, "RandomUniform", Distribution::kUniform);
  Register<StatefulKernel>(registry, "RandomStandardNormal", Distribution::kNormal);
  Register<StatefulKernel>(registry, "TruncatedNormal", Distribution::kTruncatedNormal);
  Register<StatelessKernel>(registry, "StatelessRandomUniform", Distribution::kUniform);
  Register<StatelessKernel>(registry, "StatelessRandomNormal", Distribution::kNormal);
  Register<StatelessKernel>(registry, "StatelessTruncatedNormal", Distribution::kTruncatedNormal);
  registry.Register<SeedOnCardKernel>("_StatelessRandomOnDevice", kGpu);
  registry.Register<StatefulIntKernel>("RandomUniformInt", kGpu);
  registry.RegisterFn("StatelessRandomUniformInt", kGpu, StatelessInt);
  registry.RegisterFn("StatelessRandomUniformFullInt", kGpu, StatelessFullInt);
  registry.Register("RandomShuffle", kGpu, MakeShuffle);
}

}  // namespace cohort::cuda
