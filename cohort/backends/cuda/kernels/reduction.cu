// Reductions. JoinSegments is the only kernel. In it a group of threads (one thread, a warp or a block) joins the
// elements of one segment of one result: each thread joins some of them, and the threads join what they have. If there
// are several segments, the kernel runs a second time, over the results of the first: they are an input with a row for
// each segment.
#include <algorithm>

#include "cohort/backends/cuda/dialect/reduce.h"
#include "cohort/backends/cuda/kernels/reducers.h"
#include "cohort/backends/cuda/kernels/reduction.cu.h"

namespace cohort::cuda {
namespace {

constexpr int64_t kThreads = 256;
using Group = ReductionWork::Group;

// Returns the place of the element with number i along some dimensions.
COHORT_KERNEL int64_t PlaceOf(const ReductionDims& dims, int64_t i) {
  int64_t place = 0;
  for (int d = dims.rank - 1; d > 0; --d) {
    int64_t rest;
    place += dims.dims[d].Split(i, &rest) * dims.strides[d];
    i = rest;
  }
  return dims.rank == 0 ? place : place + i * dims.strides[0];
}

// What the kernel makes of a joined value: Out is the accumulator between the two runs, else the type of the elements.
template <typename A, typename Out>
COHORT_KERNEL Out Finished(A value, int64_t mean_of) {
  if (mean_of >= 0) value = value / static_cast<A>(mean_of);
  return static_cast<Out>(value);
}

// In, A and Out: the types of the elements, in which they are joined, and of the results. T: the type of the op's
// elements.
template <typename R, typename T, typename In, typename Out, bool kTogether>
struct JoinSegments {
  using A = typename R::template Accumulator<T>;
  static constexpr bool kWaits = kTogether;

  const In* in;
  Out* out;  // [segments][outputs]
  ReductionShape shape;
  int64_t segments;
  int64_t segment;
  int64_t mean_of;  // the number to divide by, or -1
  uint32_t size;    // threads of a group: 1 unless kTogether, then kWarpSize or kThreads

  COHORT_KERNEL void operator()(const Thread& t) const {
    // Threads with neighbouring numbers have neighbouring results of one segment.
    const int64_t lane = kTogether ? t.thread() % size : 0;
    const int64_t groups = kTogether ? t.step() / size : t.step();
    for (int64_t at = kTogether ? t.first() / size : t.first(); at < segments * shape.outputs; at += groups) {
      const int64_t which = at / shape.outputs;
      const int64_t begin = which * segment;
      const int64_t end = begin + segment < shape.count ? begin + segment : shape.count;
      const In* from = in + PlaceOf(shape.kept, at - which * shape.outputs);
      A value = Part(from, begin + lane, end, kTogether ? size : 1);
      if constexpr (kTogether) value = size == kWarpSize ? ReduceWarp(t, value, R()) : ReduceBlock(t, value, R());
      if (lane == 0) out[at] = Finished<A, Out>(value, mean_of);
    }
  }

  COHORT_KERNEL A Part(const In* from, int64_t i, int64_t end, int64_t step) const {
    A value = R::template Start<T>();
    if (shape.reduced.rank == 1) {
      const int64_t stride = shape.reduced.strides[0];
      for (; i < end; i += step) value = R()(value, static_cast<A>(static_cast<Wide<In>>(from[i * stride])));
    } else {
      for (; i < end; i += step) {
        value = R()(value, static_cast<A>(static_cast<Wide<In>>(from[PlaceOf(shape.reduced, i)])));
      }
    }
    return value;
  }
};

constexpr int64_t kNoMean = -1;

template <typename R, typename T, typename In, typename Out>
void Join(Driver& driver, StreamHandle stream, const ReductionShape& shape, const ReductionWork& plan, int64_t mean_of,
          const In* in, Out* out) {
  const int64_t groups = shape.outputs * plan.segments;
  if (plan.group == Group::kThread) {
    using Kernel = JoinSegments<R, T, In, Out, false>;
    return Launch(driver, stream, SizeFor(groups), Kernel{in, out, shape, plan.segments, plan.segment, mean_of, 1});
  }
  using Kernel = JoinSegments<R, T, In, Out, true>;
  const uint32_t size = plan.group == Group::kWarp ? kWarpSize : kThreads;
  Launch(driver, stream, SizeFor(groups * size), Kernel{in, out, shape, plan.segments, plan.segment, mean_of, size});
}

// The results of the segments as an input.
ReductionShape ShapeOfSegments(int64_t outputs, int64_t segments) {
  ReductionShape shape;
  shape.outputs = outputs;
  shape.count = segments;
  shape.kept = {1, {Divider(outputs)}, {1}};
  shape.reduced = {1, {Divider(segments)}, {outputs}};
  return shape;
}

template <typename R, typename T>
void Reduce(Driver& driver, StreamHandle stream, const ReductionShape& shape, bool mean, const void* in, void* out,
            void* scratch) {
  using A = typename R::template Accumulator<T>;
  const ReductionWork plan = DivideReduction(shape);
  const auto* from = static_cast<const T*>(in);
  auto* to = static_cast<T*>(out);
  const int64_t mean_of = mean ? shape.count : kNoMean;
  if (plan.segments == 1) return Join<R, T, T, T>(driver, stream, shape, plan, mean_of, from, to);
  auto* parts = static_cast<A*>(scratch);
  Join<R, T, T, A>(driver, stream, shape, plan, kNoMean, from, parts);
  const ReductionShape rest = ShapeOfSegments(shape.outputs, plan.segments);
  const bool few = shape.outputs < kThreads;  // too few to give each result one thread
  const ReductionWork all{few ? Group::kWarp : Group::kThread, 1, plan.segments};
  Join<R, T, A, T>(driver, stream, rest, all, mean_of, parts, to);
}

int64_t Ceil(int64_t n, int64_t by) { return (n + by - 1) / by; }

}  // namespace

ReductionWork DivideReduction(const ReductionShape& shape) {
  constexpr int64_t kSerial = 32;           // elements that one thread joins quickly
  constexpr int64_t kForWarp = 1024;        // elements for which a warp is enough
  constexpr int64_t kForBlock = 16 * 1024;  // elements for which a block is enough
  constexpr int64_t kEnough = 64 * 1024;    // threads that keep a card busy
  constexpr int64_t kMostSegments = 1024;
  ReductionWork plan;
  plan.segment = std::max<int64_t>(shape.count, 1);
  int64_t threads = shape.outputs;
  int64_t least = 4 * kSerial;  // elements of a segment
  if (shape.inner_reduced && shape.count > kSerial) {
    plan.group = shape.count <= kForWarp ? Group::kWarp : Group::kBlock;
    threads *= plan.group == Group::kWarp ? kWarpSize : kThreads;
    least = kForBlock;
  }
  if (shape.count <= least || threads >= kEnough) return plan;
  const int64_t wanted = std::min({Ceil(kEnough, threads), Ceil(shape.count, least), kMostSegments});
  plan.segment = Ceil(shape.count, wanted);
  plan.segments = Ceil(shape.count, plan.segment);
  return plan;
}

size_t ReductionBytes(const ReductionShape& shape) {
  const ReductionWork plan = DivideReduction(shape);
  constexpr size_t kLargestAccumulator = 8;
  return plan.segments == 1 ? 0 : static_cast<size_t>(shape.outputs * plan.segments) * kLargestAccumulator;
}

void LaunchReduction(Driver& driver, StreamHandle stream, ReductionOp op, ElementType type, const ReductionShape& shape,
                     const void* in, void* out, void* scratch) {
  const auto numbers = [&]<typename R>(R, bool mean) {
    ForNumbers(type, "a reduction",
               [&]<typename T>(T) { Reduce<R, T>(driver, stream, shape, mean, in, out, scratch); });
  };
  switch (op) {
    case ReductionOp::kSum: return numbers(SumReducer(), false);
    case ReductionOp::kMean: return numbers(MeanReducer(), true);
    case ReductionOp::kMax: return numbers(MaxReducer(), false);
    case ReductionOp::kMin: return numbers(MinReducer(), false);
    case ReductionOp::kProd: return numbers(ProdReducer(), false);
    case ReductionOp::kAll: return Reduce<AllReducer, bool>(driver, stream, shape, false, in, out, scratch);
    case ReductionOp::kAny: return Reduce<AnyReducer, bool>(driver, stream, shape, false, in, out, scratch);
  }
}

}  // namespace cohort::cuda
