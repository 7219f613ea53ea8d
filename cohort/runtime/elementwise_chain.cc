#include "cohort/runtime/elementwise_chain.h"

#include <algorithm>
#include <atomic>

namespace cohort {
namespace {

// Elements that stay in the first-level cache while all stages pass over them.
constexpr int64_t kBlock = 2048;
// Below so many elements a team costs more than it brings.
constexpr int64_t kElementsWorthATeam = 32 * 1024;
constexpr size_t kMaxStages = 4096;

bool IsScalarBeside(const Tensor& operand, const Tensor& value) {
  return operand.num_elements() == 1 && operand.shape().rank() <= value.shape().rank();
}

// Whether `operand` goes with a value of `value`'s shape without changing it; sets whether it is a single element.
bool Fits(const Tensor& operand, const Tensor& value, bool* scalar) {
  *scalar = IsScalarBeside(operand, value);
  return *scalar || operand.shape() == value.shape();
}

// A stage with its operands found: `a` and `b` are null where the running value stands.
struct Bound {
  ElementwiseLoops::Unary unary;
  ElementwiseLoops::Binary binary;
  const char* a;
  const char* b;
  size_t a_step;  // bytes from one element to the next, 0 for a scalar
  size_t b_step;
};

void RunBlock(const std::vector<Bound>& bound, size_t element, const char* first, char* out, int64_t begin,
              int64_t count) {
  char* here = out + static_cast<size_t>(begin) * element;
  const char* value = first + static_cast<size_t>(begin) * element;
  const auto at = static_cast<size_t>(begin);
  for (const Bound& stage : bound) {
    if (stage.unary != nullptr) {
      stage.unary(value, here, count);
    } else {
      stage.binary(stage.a == nullptr ? value : stage.a + at * stage.a_step,
                   stage.b == nullptr ? value : stage.b + at * stage.b_step, here, count);
    }
    value = here;
  }
}

// The operand of the first stage that has the shape of the result: slot, or -1 where there is none.
int32_t PrimarySlot(const ChainStage& stage, const Tensor* slots) {
  if (stage.loops->unary != nullptr) return stage.left;
  const Tensor& left = slots[stage.left];
  const Tensor& right = slots[stage.right];
  if (left.shape() == right.shape() || IsScalarBeside(right, left)) return stage.left;
  return IsScalarBeside(left, right) ? stage.right : -1;
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

bool RunChain(const std::vector<ChainStage>& stages, DType dtype, const Tensor* slots, const int32_t* uses,
              Allocator& allocator, int threads, Tensor& output) {
  const int32_t primary = PrimarySlot(stages.front(), slots);
  if (primary < 0 || stages.size() > kMaxStages) return false;
  const Tensor& value = slots[primary];
  const size_t element = DTypeSize(dtype);
  static thread_local std::vector<Bound> bound;  // keeps its memory from step to step
  bound.resize(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    const ChainStage& stage = stages[i];
    Bound& next = bound[i];
    next.unary = stage.loops->unary;
    next.binary = stage.loops->both;
    next.a = next.b = nullptr;
    next.a_step = next.b_step = element;
    if (next.unary == nullptr) {
      const bool value_is_left = i == 0 ? stage.left == primary : stage.left < 0;
      const int32_t other = value_is_left ? stage.right : stage.left;
      const Tensor& operand = slots[other];
      bool scalar;
      if (!Fits(operand, value, &scalar)) return false;
      const char* data = static_cast<const char*>(operand.raw_data());
      (value_is_left ? next.b : next.a) = data;
      if (scalar) {
        (value_is_left ? next.b_step : next.a_step) = 0;
        next.binary = value_is_left ? stage.loops->right_scalar : stage.loops->left_scalar;
      }
    }
  }
  const bool in_place = std::atomic_ref<const int32_t>(uses[primary]).load(std::memory_order_acquire) == 1 &&
                        value.OwnsBufferAlone() && value.raw_data() == value.buffer()->data() &&
                        value.space() == allocator.space();
  output = in_place ? Tensor(dtype, value.shape(), value.buffer(), 0) : Tensor(dtype, value.shape(), allocator);
  const int64_t n = value.num_elements();
  const char* in = static_cast<const char*>(value.raw_data());
  char* out = static_cast<char*>(output.raw_data());
  if (n <= kBlock) {
    RunBlock(bound, element, in, out, 0, n);
    return true;
  }
  const std::vector<Bound>& shared = bound;  // of this thread, read by the team
  const int64_t blocks = (n + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && n > kElementsWorthATeam)
  for (int64_t b = 0; b < blocks; ++b) {
    RunBlock(shared, element, in, out, b * kBlock, std::min(kBlock, n - b * kBlock));
  }
  return true;
}

}  // namespace cohort
