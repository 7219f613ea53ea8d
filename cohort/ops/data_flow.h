// The ops at the ends of a partition: _Arg and _Retval (fed and fetched values), _Send and _Recv (edges that cross
// devices). The session and runtime/placement/partitioner.h add them, never a program.
#pragma once

#include "cohort/graph/op_def.h"

namespace cohort {

void RegisterDataFlowOps(OpRegistry& registry);

}  // namespace cohort
