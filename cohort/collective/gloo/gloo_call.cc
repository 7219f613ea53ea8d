#include "cohort/collective/gloo/gloo_call.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/device/reduction.h"
#include "cohort/graph/device_name.h"

namespace cohort::collective {
namespace {

constexpr int64_t kZeros = 4096;

// Computes out[i] = in[i] + 0, for MEAN divided by `divisor`: converts between dtypes, or turns a sum into a mean.
void AddZeros(const ReductionTable& reductions, ReduceOp op, DType dtype, const Tensor& in, Tensor& out,
              int64_t divisor) {
  static const std::vector<double> zeros(kZeros);  // zeros of every dtype
  const ReduceFn add = reductions.find(op, dtype, in.dtype(), dtype, out.dtype());
  const auto* from = static_cast<const char*>(in.raw_data());
  auto* to = static_cast<char*>(out.raw_data());
  for (int64_t begin = 0; begin < in.num_elements(); begin += kZeros) {
    const auto first = static_cast<size_t>(begin);
    add(from + first * DTypeSize(in.dtype()), zeros.data(), to + first * DTypeSize(out.dtype()),
        std::min(kZeros, in.num_elements() - begin), divisor);
  }
}

Tensor AllReduceByGloo(GlooMesh& mesh, const CallSignature& what, Tensor input, int world, uint32_t tag) {
  const ReductionTable& reductions = Reductions::Global().Find(kHostDeviceType);
  const DType sums = reductions.accumulator_of(what.dtype);
  const ReduceOp step = what.op == ReduceOp::kMean ? ReduceOp::kSum : what.op;
  Tensor all;
  if (sums != what.dtype) {
    all = Tensor(sums, what.shape);
    AddZeros(reductions, ReduceOp::kSum, what.dtype, input, all, 1);
  } else {
    all = input.OwnsBufferAlone() ? std::move(input) : input.Clone();
  }
  const ReduceFn combine = reductions.find(step, sums, sums, sums, sums);
  mesh.AllReduce(
      all.raw_data(), static_cast<size_t>(all.num_elements()), DTypeSize(sums),
      [combine](void* out, const void* a, const void* b, size_t n) { combine(a, b, out, static_cast<int64_t>(n), 1); },
      tag);
  if (sums == what.dtype && what.op != ReduceOp::kMean) return all;
  Tensor out = sums == what.dtype ? all : Tensor(what.dtype, what.shape);
  AddZeros(reductions, what.op == ReduceOp::kMean ? ReduceOp::kMean : ReduceOp::kSum, what.dtype, all, out, world);
  return out;
}

}  // namespace

Tensor RunByGloo(GlooMesh& mesh, CollectiveCall& call, int world, uint32_t tag) {
  const CallSignature& what = call.signature;
  if (what.kind == CallKind::kBarrier) return {};
  if (what.shape.num_elements() == 0) return Tensor(what.dtype, call.output_shape);
  switch (what.kind) {
    case CallKind::kAllReduce: return AllReduceByGloo(mesh, what, std::move(call.input), world, tag);
    case CallKind::kReduceScatter: {
      const Tensor all = AllReduceByGloo(mesh, what, std::move(call.input), world, tag);
      Tensor rows(what.dtype, call.output_shape);
      std::memcpy(rows.raw_data(),
                  static_cast<const char*>(all.raw_data()) + static_cast<size_t>(call.rank) * rows.bytes(),
                  rows.bytes());
      return rows;
    }
    case CallKind::kBroadcast: {
      const bool keeps = what.root == call.rank || call.input.OwnsBufferAlone();
      Tensor value = keeps ? std::move(call.input) : Tensor(what.dtype, what.shape);
      mesh.Broadcast(value.raw_data(), value.bytes(), what.root, tag);
      return value;
    }
    case CallKind::kAllGather: {
      Tensor all(what.dtype, call.output_shape);
      mesh.AllGather(std::as_const(call.input).raw_data(), call.input.bytes(), all.raw_data(), tag);
      return all;
    }
    case CallKind::kBarrier: break;
  }
  return {};
}

}  // namespace cohort::collective
