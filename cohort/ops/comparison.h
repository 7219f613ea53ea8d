// Truth values, element by element, with broadcasting. A comparison with NaN is false, NotEqual is true.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::ops {

Output Equal(Output x, Output y);
Output NotEqual(Output x, Output y);
Output Less(Output x, Output y);
Output LessEqual(Output x, Output y);
Output Greater(Output x, Output y);
Output GreaterEqual(Output x, Output y);
Output LogicalAnd(Output x, Output y);
Output LogicalOr(Output x, Output y);
Output LogicalNot(Output x);

}  // namespace cohort::ops
