// The ends of a partition: _Arg and _Retval (fed and fetched values), _Send and _Recv (edges that cross
// devices). Made by the session and by runtime/partitioner.h, never by a program.
#pragma once

#include "cohort/graph/op_def.h"

namespace cohort {

void RegisterDataFlowOps(OpRegistry& registry);

}  // namespace cohort
