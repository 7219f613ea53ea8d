// A chain as a line of text. common_chains.txt has such lines and says what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/kernels/chain.cu.h"

namespace cohort::cuda {

// Returns the line, such as "float32 ees: Mul x0 x1, AddV2 v x2". It says all that the kernel of a chain depends on.
std::string ChainText(ElementType type, const ChainArgs& args);

// Returns "x2", say, for the operand of a step with number 2, and "v" for ChainStep::kRunning.
std::string OperandName(int8_t operand);

// What a line says. The members of `args` that belong to one launch (data, out, n, dims) have their default values.
struct ChainOfText {
  ElementType type = ElementType::kFloat32;
  ChainArgs args;
};
// Throws InvalidArgumentError if the text is not what ChainText returns for a chain whose operands have their numbers
// in the order in which the steps use them. The chains of a step are such chains.
ChainOfText ParseChain(std::string_view text);

}  // namespace cohort::cuda
