#include "cohort/collective/shared/shared_computation.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace cohort::collective {
namespace {

// The size of a part. It stays in a core's cache while all operands are added.
constexpr int64_t kPartBytes = 128 * 1024;

const char* At(const Tensor& tensor, int64_t element) {
  return static_cast<const char*>(tensor.raw_data()) + static_cast<size_t>(element) * DTypeSize(tensor.dtype());
}

char* At(Tensor& tensor, int64_t element) {
  return static_cast<char*>(tensor.raw_data()) + static_cast<size_t>(element) * DTypeSize(tensor.dtype());
}

// Computes out[0, count) = inputs[0][begin, begin + count) op inputs[1][...] op ..., in this order. `out` may be the
// memory of that range of inputs 0 or 1.
class Reduction {
 public:
  Reduction(const ReductionTable& reductions, ReduceOp op, DType dtype, std::vector<Tensor> inputs)
      : inputs_(std::move(inputs)) {
    const DType sums = reductions.accumulator_of(dtype);
    const size_t world = inputs_.size();
    const ReduceOp step = op == ReduceOp::kMean ? ReduceOp::kSum : op;
    for (size_t i = 1; i < world; ++i) {
      const bool last = i + 1 == world;
      reduce_.push_back(reductions.find(last ? op : step, dtype, i == 1 ? dtype : sums, dtype, last ? dtype : sums));
    }
    sum_bytes_ = sums == dtype || world < 3 ? 0 : DTypeSize(sums);
  }

  void Run(int64_t begin, int64_t count, char* out) const {
    std::vector<char> wide(static_cast<size_t>(count) * sum_bytes_);
    const void* left = At(inputs_[0], begin);
    for (size_t i = 0; i < reduce_.size(); ++i) {
      char* to = i + 1 == reduce_.size() || sum_bytes_ == 0 ? out : wide.data();
      reduce_[i](left, At(inputs_[i + 1], begin), to, count, static_cast<int64_t>(inputs_.size()));
      left = to;
    }
    if (reduce_.empty() && left != out)
      std::memcpy(out, left, static_cast<size_t>(count) * DTypeSize(inputs_[0].dtype()));
  }

 private:
  const std::vector<Tensor> inputs_;
  std::vector<ReduceFn> reduce_;
  size_t sum_bytes_ = 0;  // of an element of an unfinished sum, if it needs memory of its own; else 0
};

std::vector<Tensor> TakeInputs(std::vector<CollectiveCall>& calls) {
  std::vector<Tensor> inputs;
  inputs.reserve(calls.size());
  for (CollectiveCall& call : calls) inputs.push_back(std::move(call.input));
  return inputs;
}

// Cuts [0, count) into parts; each calls `run(begin, size)`.
template <typename Run>
void Cut(SharedComputation& computation, int64_t count, DType dtype, Run run) {
  const int64_t step = std::max<int64_t>(1, kPartBytes / static_cast<int64_t>(DTypeSize(dtype)));
  computation.parts = (count + step - 1) / step;
  computation.run = [run, count, step](int64_t part) mutable { run(part * step, std::min(step, count - part * step)); };
}

SharedComputation AllReduce(std::vector<CollectiveCall>& calls, const ReductionTable& reductions) {
  const CallSignature& what = calls[0].signature;
  SharedComputation made;
  Tensor out;
  for (size_t i = 0; i < std::min<size_t>(2, calls.size()) && !out.defined(); ++i) {
    if (calls[i].input.OwnsBufferAlone()) out = calls[i].input;
  }
  if (!out.defined()) out = Tensor(what.dtype, what.shape);
  made.results.assign(calls.size(), out);
  Cut(made, out.num_elements(), what.dtype,
      [reduction = std::make_shared<Reduction>(reductions, what.op, what.dtype, TakeInputs(calls)), out](
          int64_t begin, int64_t count) mutable { reduction->Run(begin, count, At(out, begin)); });
  return made;
}

SharedComputation ReduceScatter(std::vector<CollectiveCall>& calls, const ReductionTable& reductions) {
  const CallSignature& what = calls[0].signature;
  SharedComputation made;
  for (const CollectiveCall& call : calls) made.results.emplace_back(what.dtype, call.output_shape);
  const int64_t share = made.results[0].num_elements();
  Cut(made, share, what.dtype,
      [reduction = std::make_shared<Reduction>(reductions, what.op, what.dtype, TakeInputs(calls)), outs = made.results,
       share](int64_t begin, int64_t count) mutable {
        for (size_t rank = 0; rank < outs.size(); ++rank) {
          reduction->Run(static_cast<int64_t>(rank) * share + begin, count, At(outs[rank], begin));
        }
      });
  return made;
}

SharedComputation AllGather(std::vector<CollectiveCall>& calls) {
  const CallSignature& what = calls[0].signature;
  SharedComputation made;
  Tensor out(what.dtype, calls[0].output_shape);
  made.results.assign(calls.size(), out);
  const int64_t each = what.shape.num_elements();
  Cut(made, each, what.dtype, [inputs = TakeInputs(calls), out, each](int64_t begin, int64_t count) mutable {
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      std::memcpy(At(out, static_cast<int64_t>(rank) * each + begin), At(std::as_const(inputs[rank]), begin),
                  static_cast<size_t>(count) * DTypeSize(out.dtype()));
    }
  });
  return made;
}

}  // namespace

SharedComputation MakeSharedComputation(std::vector<CollectiveCall>& calls, const ReductionTable& reductions) {
  switch (calls[0].signature.kind) {
    case CallKind::kAllReduce: return AllReduce(calls, reductions);
    case CallKind::kReduceScatter: return ReduceScatter(calls, reductions);
    case CallKind::kAllGather: return AllGather(calls);
    case CallKind::kBroadcast:
    case CallKind::kBarrier: break;
  }
  const bool has_value = calls[0].signature.kind == CallKind::kBroadcast;
  const Tensor value = has_value ? calls[static_cast<size_t>(calls[0].signature.root)].input : Tensor();
  return {std::vector<Tensor>(calls.size(), value), 0, nullptr};
}

}  // namespace cohort::collective
