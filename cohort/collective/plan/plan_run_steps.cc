// What the steps of a plan do: the memory of a run, and one send, copy, receive or reduction in it.
#include <cstring>

#include "cohort/collective/plan/plan_run.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {

void PlanRun::PrepareMemory() {
  const CallSignature& what = call_.signature;
  if (what.kind == CallKind::kBarrier) return;
  const bool is_root = what.kind == CallKind::kBroadcast && what.root == rank_;
  const bool same_memory = plan_->in_place && plan_->input_count == plan_->output_count &&
                           (what.kind == CallKind::kAllReduce || what.kind == CallKind::kBroadcast);
  if (is_root || host_.members().size() == 1 || (same_memory && call_.input.OwnsBufferAlone())) {
    output_ = call_.input.Reshaped(call_.output_shape);
  } else {
    output_ = Tensor(what.dtype, call_.output_shape);
  }
  if (plan_->scratch_count > 0) {
    scratch_ = Tensor(TypeIn(PlanBuffer::kScratch), Shape{plan_->scratch_count});
  }
}

void PlanRun::Execute(const PlanStep& step, Tensor received) {
  switch (step.kind) {
    case StepKind::kSend:
      return host_.Post({{}, id_, rank_, step.peer, step.sequence, call_.signature, call_.schedule_fingerprint},
                        View(step.from, step.count));
    case StepKind::kCopy:
      if (Address(step.to) != Address(step.from)) {
        std::memcpy(Address(step.to), Address(step.from),
                    static_cast<size_t>(step.count) * DTypeSize(call_.signature.dtype));
      }
      return;
    case StepKind::kReceive:
    case StepKind::kReduce: break;
  }
  if (received.num_elements() != step.count) {
    throw InternalError(StrCat("[collective] expected ", step.count, " elements from ",
                               host_.members().DescribeRank(step.peer), "; got ", received.num_elements(), " in ",
                               Describe()));
  }
  if (step.count == 0) return;
  if (step.kind == StepKind::kReduce) return Reduce(step, received);
  if (received.dtype() != call_.signature.dtype) {
    throw InternalError(StrCat("[collective] expected ", call_.signature.dtype, " from ",
                               host_.members().DescribeRank(step.peer), "; got ", received.dtype(), " in ",
                               Describe()));
  }
  std::memcpy(Address(step.to), received.raw_data(), received.bytes());
}

void PlanRun::Reduce(const PlanStep& step, const Tensor& received) {
  const ReduceOp wanted = call_.signature.op;
  const ReduceOp op = wanted == ReduceOp::kMean && !step.final ? ReduceOp::kSum : wanted;
  const DType own_type = TypeIn(step.from.buffer);
  // The lower rank's operand is the left one, so that both members of a pair compute the same bits.
  const bool own_left = rank_ < step.peer;
  const ReduceFn reduce = reductions_.find(op, call_.signature.dtype, own_left ? own_type : received.dtype(),
                                           own_left ? received.dtype() : own_type, TypeIn(step.to.buffer));
  const void* own = Address(step.from);
  reduce(own_left ? own : received.raw_data(), own_left ? received.raw_data() : own, Address(step.to), step.count,
         host_.members().size());
}

DType PlanRun::TypeIn(PlanBuffer buffer) const {
  return buffer == PlanBuffer::kScratch ? reductions_.accumulator_of(call_.signature.dtype) : call_.signature.dtype;
}

const Tensor& PlanRun::TensorOf(PlanBuffer buffer) const {
  return buffer == PlanBuffer::kInput ? call_.input : buffer == PlanBuffer::kOutput ? output_ : scratch_;
}

char* PlanRun::Address(const BufferOffset& place) const {
  // A const tensor gives its bytes as const. The plan decides which of them are written.
  return static_cast<char*>(const_cast<void*>(TensorOf(place.buffer).raw_data())) +
         static_cast<size_t>(place.begin) * DTypeSize(TypeIn(place.buffer));
}

Tensor PlanRun::View(const BufferOffset& place, int64_t count) const {
  if (count == 0) return Tensor(DType::kUint8, Shape{0});
  const Tensor& tensor = TensorOf(place.buffer);
  const auto offset = static_cast<size_t>(Address(place) - static_cast<char*>(tensor.buffer()->data()));
  return Tensor(TypeIn(place.buffer), Shape{count}, tensor.buffer(), offset);
}

}  // namespace cohort::collective
