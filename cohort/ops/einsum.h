// Sums of products after Einstein: one formula for products of matrices, sums, traces and outer products.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Returns the sum of products that `equation` says, as tf.einsum. "ij,jk->ik" is the product of two matrices,
// "bij->bji" a transposition, "ij->" the sum of all elements, "ii" the trace, "i,j->ij" the outer product.
// - Each operand has one letter for each dimension. Dimensions with the same letter have the same size, and run
//   together. The products are summed over all letters that the result, after "->", does not have.
// - Without "->" the result has the letters that occur once, in alphabetical order (capitals first).
// - A letter that an operand has twice takes its diagonal.
// - "..." stands for any number of dimensions, which broadcast from the last one on: "...ij,...jk->...ik". Without "->"
//   they come first in the result.
// - Spaces do not count.
// Three operands or more are multiplied from the left to the right. The function adds nodes of Transpose, Reshape, Sum,
// Mul and BatchMatMulV2 (and GatherV2 for a diagonal), so it has a gradient and runs on every device. All operands have
// one dtype, a number. Throws InvalidArgumentError, which quotes the equation, if it does not parse, if the number of
// operands or letters does not fit, if sizes are known and differ, if the result has a letter twice or one that no
// operand has, if it lacks the "..." of an operand, and if the rank of an operand is unknown. If sizes of one letter
// are known only in the step and differ there, the step fails with InvalidArgumentError in a node "one_size_of_LETTER",
// except that an operand without elements may pass.
COHORT_EXPORT Output Einsum(const std::string& equation, const std::vector<Output>& operands,
                            const NodeName& name = "");

}  // namespace cohort::ops
