// Truth values, element by element, with broadcasting. A comparison with NaN is false, NotEqual is true. Either of the
// two may be a number (operand.h). There are operators for the order; == asks whether two Outputs are the same output
// of the same node, so equal elements are asked for with Equal.
#pragma once

#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

Output Equal(const Operand& x, const Operand& y, const NodeName& name = "");
Output NotEqual(const Operand& x, const Operand& y, const NodeName& name = "");
Output Less(const Operand& x, const Operand& y, const NodeName& name = "");
Output LessEqual(const Operand& x, const Operand& y, const NodeName& name = "");
Output Greater(const Operand& x, const Operand& y, const NodeName& name = "");
Output GreaterEqual(const Operand& x, const Operand& y, const NodeName& name = "");
Output LogicalAnd(const Operand& x, const Operand& y, const NodeName& name = "");
Output LogicalOr(const Operand& x, const Operand& y, const NodeName& name = "");
Output LogicalNot(Output x, const NodeName& name = "");

}  // namespace cohort::ops

namespace cohort {

inline Output operator<(const ops::Operand& x, const ops::Operand& y) { return ops::Less(x, y, {"", x.site()}); }
inline Output operator<=(const ops::Operand& x, const ops::Operand& y) { return ops::LessEqual(x, y, {"", x.site()}); }
inline Output operator>(const ops::Operand& x, const ops::Operand& y) { return ops::Greater(x, y, {"", x.site()}); }
inline Output operator>=(const ops::Operand& x, const ops::Operand& y) {
  return ops::GreaterEqual(x, y, {"", x.site()});
}

}  // namespace cohort
