// Ops of two inputs and one output without attributes. Internal to ops/.
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort::ops {

inline Output Binary(const std::string& op, Output x, Output y) { return x.graph().Op(op).Input(x).Input(y).Finish1(); }

}  // namespace cohort::ops
