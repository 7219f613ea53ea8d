// Truth values, element by element, with broadcasting. A comparison with NaN is false, NotEqual is true. Either of the
// two may be a number (operand.h). There are operators for the order; == asks whether two Outputs are the same output
// of the same node, so equal elements are asked for with Equal.
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
