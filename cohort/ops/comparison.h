// Comparisons and logic, element by element. The results are bool. Both operands have one dtype, and their shapes
// broadcast. Either of the two may be a number (operand.h). A comparison with NaN is false, but NotEqual is true. The
// Logical functions take bool. Adding a node throws InvalidArgumentError if the dtypes differ or the shapes do not
// broadcast. The operators <, <=, > and >= add nodes. The operator == does not: it says whether two Outputs are the
// same output of the same node. To compare elements, call Equal.
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

COHORT_EXPORT Output Equal(const Operand& x, const Operand& y);
COHORT_EXPORT Output NotEqual(const Operand& x, const Operand& y);
COHORT_EXPORT Output Less(const Operand& x, const Operand& y);
COHORT_EXPORT Output LessEqual(const Operand& x, const Operand& y);
COHORT_EXPORT Output Greater(const Operand& x, const Operand& y);
COHORT_EXPORT Output GreaterEqual(const Operand& x, const Operand& y);
COHORT_EXPORT Output LogicalAnd(const Operand& x, const Operand& y);
COHORT_EXPORT Output LogicalOr(const Operand& x, const Operand& y);
COHORT_EXPORT Output LogicalNot(Output x);

}  // namespace cohort::ops

namespace cohort {

inline Output operator<(const ops::Operand& x, const ops::Operand& y) { return ops::Less(x, y); }
inline Output operator<=(const ops::Operand& x, const ops::Operand& y) { return ops::LessEqual(x, y); }
inline Output operator>(const ops::Operand& x, const ops::Operand& y) { return ops::Greater(x, y); }
inline Output operator>=(const ops::Operand& x, const ops::Operand& y) { return ops::GreaterEqual(x, y); }

}  // namespace cohort
