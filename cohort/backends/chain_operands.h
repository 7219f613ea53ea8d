// ChainOperands: where the nodes of a chain take their operands from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/device/backend.h"
#include "cohort/device/kernel.h"

namespace cohort {

// The source of an operand of a chain. 0 or more: an input of the chain. kRunningValue (-1): the result of the node
// before. -2 or less: a constant of the chain. -2 is the first constant, -3 is the second one, and so on.
using ChainOperand = int32_t;
inline constexpr ChainOperand kRunningValue = -1;

// Numbers the operands of a chain as Backend::MakeChain says. The kernel of the chain owns it. Thread-safe, except
// Number.
class ChainOperands {
 public:
  // Returns the source of input `k` of the link's node. Must be called once for each input of all links, in their
  // order.
  ChainOperand Number(const ChainLink& link, int k) {
    if (const Tensor& constant = link.constants[static_cast<size_t>(k)]; constant.defined()) {
      constants_.push_back(constant);
      return -1 - static_cast<ChainOperand>(constants_.size());
    }
    return k == link.value_input ? kRunningValue : num_inputs_++;
  }

  static bool IsConstant(ChainOperand operand) { return operand < kRunningValue; }
  // Returns the value of an operand other than kRunningValue.
  const Tensor& TensorOf(const KernelContext& ctx, ChainOperand operand) const {
    return operand >= 0 ? ctx.input(operand) : Constant(operand);
  }
  // Requires: IsConstant(operand).
  const Tensor& Constant(ChainOperand operand) const { return constants_[static_cast<size_t>(-2 - operand)]; }

  const std::vector<Tensor>& constants() const { return constants_; }

 private:
  int num_inputs_ = 0;
  std::vector<Tensor> constants_;
};

}  // namespace cohort
