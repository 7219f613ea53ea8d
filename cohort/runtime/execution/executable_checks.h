// CheckExecutableSpec: the check of a description of an executable that a master sends. The master may be in another
// process, and its message may be wrong on purpose.
#pragma once

#include "cohort/runtime/execution/executable.h"

namespace cohort {

// Checks the numbers in `spec` that kernels later use as indices without a check of their own. Each _Arg has an index
// below num_args. Each result has exactly one _Retval, and there are num_rets of them. The edge of each _Send leaves
// the task, the edge of each _Recv ends at it, and no two of a kind share an edge. `tasks`, `edges` and `self` agree.
// None of these four ops is in the body of a function, and none has the mark of a function's argument or result. Throws
// InvalidArgumentError, with the name of the node, if this is not so.
void CheckExecutableSpec(const ExecutableSpec& spec);

}  // namespace cohort
