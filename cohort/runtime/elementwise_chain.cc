#include "cohort/runtime/elementwise_chain.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace cohort {
namespace {

// Elements that stay in the first-level cache while all stages pass over them.
constexpr int64_t kBlock = 2048;
// Below so many elements a team costs more than it brings.
constexpr int64_t kElementsWorthATeam = 32 * 1024;

bool IsScalarBeside(const Tensor& operand, const Tensor& value) {
  return operand.num_elements() == 1 && operand.shape().rank() <= value.shape().rank();
}

// Whether `operand` goes with a value of `value`'s shape without changing it; sets whether it is a single element.
bool Fits(const Tensor& operand, const Tensor& value, bool* scalar) {
  *scalar = IsScalarBeside(operand, value);
  return *scalar || operand.shape() == value.shape();
}

}  // namespace

bool CanChain(const Node& producer, const OpKernel& producer_kernel, const Node& consumer,
              const OpKernel& consumer_kernel, int32_t uses) {
  if (uses != 1 || producer.num_outputs() != 1 || consumer.num_outputs() != 1) return false;
  if (producer_kernel.AsElementwise() == nullptr || consumer_kernel.AsElementwise() == nullptr) return false;
  if (!consumer.control_inputs().empty()) return false;
  const DType dtype = producer.output_dtype(0);
  if (DTypeSize(dtype) == 0 || consumer.output_dtype(0) != dtype) return false;
  for (const Node* node : {&producer, &consumer}) {
    for (const Output& input : node->inputs()) {
      if (input.dtype() != dtype) return false;
    }
  }
  return true;
}

ElementwiseChain::ElementwiseChain(std::vector<ChainStage> stages, DType dtype)
    : stages_(std::move(stages)), dtype_(dtype), element_(DTypeSize(dtype)) {
  BindConstants({});
}

int32_t ElementwiseChain::PrimarySlot(const Tensor* slots) const {
  const ChainStage& stage = stages_.front();
  if (stage.loops->unary != nullptr) return stage.left;
  const Tensor& left = slots[stage.left];
  const Tensor& right = slots[stage.right];
  if (left.shape() == right.shape() || IsScalarBeside(right, left)) return stage.left;
  return IsScalarBeside(left, right) ? stage.right : -1;
}

int32_t ElementwiseChain::OtherSlot(size_t index, int32_t primary, bool* is_right) const {
  const ChainStage& stage = stages_[index];
  *is_right = index == 0 ? stage.left == primary : stage.left < 0;
  return *is_right ? stage.right : stage.left;
}

void ElementwiseChain::SetOther(const ChainStage& stage, const Tensor& operand, bool is_right, bool scalar,
                                Bound* bound) const {
  bound->a = bound->b = nullptr;
  bound->a_step = bound->b_step = element_;
  (is_right ? bound->b : bound->a) = static_cast<const char*>(operand.raw_data());
  if (scalar) (is_right ? bound->b_step : bound->a_step) = 0;
  bound->binary = !scalar ? stage.loops->both : is_right ? stage.loops->right_scalar : stage.loops->left_scalar;
}

void ElementwiseChain::BindConstants(const std::unordered_map<int32_t, const Tensor*>& constants) {
  bound_.assign(stages_.size(), Bound());
  open_.clear();
  constant_rank_ = 0;
  for (size_t i = 0; i < stages_.size(); ++i) {
    bound_[i].unary = stages_[i].loops->unary;
    if (bound_[i].unary != nullptr) continue;
    bool is_right = false;
    const auto constant = i == 0 ? constants.end() : constants.find(OtherSlot(i, -1, &is_right));
    if (constant != constants.end() && constant->second->num_elements() == 1) {
      SetOther(stages_[i], *constant->second, is_right, true, &bound_[i]);
      constant_rank_ = std::max(constant_rank_, constant->second->shape().rank());
    } else {  // the first stage has its running value from a slot, which one the shapes say
      bound_[i].in_run = static_cast<int32_t>(open_.size());
      open_.push_back(i);
    }
  }
}

void ElementwiseChain::RunBlock(const std::vector<Bound>& of_run, const char* first, char* out, int64_t begin,
                                int64_t count) const {
  const auto at = static_cast<size_t>(begin);
  char* here = out + at * element_;
  const char* value = first + at * element_;
  for (const Bound& planned : bound_) {
    const Bound& stage = planned.in_run < 0 ? planned : of_run[static_cast<size_t>(planned.in_run)];
    if (stage.unary != nullptr) {
      stage.unary(value, here, count);
    } else {
      stage.binary(stage.a == nullptr ? value : stage.a + at * stage.a_step,
                   stage.b == nullptr ? value : stage.b + at * stage.b_step, here, count);
    }
    value = here;
  }
}

bool ElementwiseChain::Run(const Tensor* slots, const int32_t* uses, Allocator& allocator, int threads,
                           Tensor& output) const {
  const int32_t primary = PrimarySlot(slots);
  if (primary < 0) return false;
  const Tensor& value = slots[primary];
  if (value.shape().rank() < constant_rank_) return false;
  static thread_local std::vector<Bound> own;  // keeps its memory from step to step
  own.resize(open_.size());
  for (size_t k = 0; k < open_.size(); ++k) {
    bool is_right = false;
    bool scalar = false;
    const Tensor& operand = slots[OtherSlot(open_[k], primary, &is_right)];
    if (!Fits(operand, value, &scalar)) return false;
    SetOther(stages_[open_[k]], operand, is_right, scalar, &own[k]);
  }
  const bool in_place = std::atomic_ref<const int32_t>(uses[primary]).load(std::memory_order_acquire) == 1 &&
                        value.OwnsBufferAlone() && value.raw_data() == value.buffer()->data() &&
                        value.space() == allocator.space();
  output = in_place ? Tensor(dtype_, value.shape(), value.buffer(), 0) : Tensor(dtype_, value.shape(), allocator);
  const int64_t n = value.num_elements();
  const char* in = static_cast<const char*>(value.raw_data());
  char* out = static_cast<char*>(output.raw_data());
  const std::vector<Bound>& of_run = own;  // of this thread, read by the team
  if (n <= kBlock) {
    RunBlock(of_run, in, out, 0, n);
    return true;
  }
  const int64_t blocks = (n + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && n > kElementsWorthATeam)
  for (int64_t b = 0; b < blocks; ++b) RunBlock(of_run, in, out, b * kBlock, std::min(kBlock, n - b * kBlock));
  return true;
}

}  // namespace cohort
