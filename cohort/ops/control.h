// Ops for order, checks and messages.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Adds a node that does nothing. It has run when its control inputs have run.
COHORT_EXPORT Node* NoOp(Graph& graph, const std::string& name = "NoOp");
// Adds a NoOp that runs after all `nodes`. If the nodes are on several devices, it adds a NoOp for each device, and one
// more after these, so that only one control edge comes from each device.
COHORT_EXPORT Node* Group(Graph& graph, const std::vector<Node*>& nodes, const std::string& name = "group_deps");
// Adds a node that fails the step if `condition` (bool scalar) is false. The error is InvalidArgumentError "assertion
// failed: ..." with the first `summarize` elements of each of `data`.
COHORT_EXPORT Node* Assert(Output condition, const std::vector<Output>& data, int64_t summarize = 3,
                           const std::string& name = "Assert");
// Returns `input` unchanged. Each time that it is computed, a line "message[data][data]" is written to stderr. If
// `first_n` is not negative, only the first `first_n` lines are written.
COHORT_EXPORT Output Print(Output input, const std::vector<Output>& data, const std::string& message = "",
                           int64_t first_n = -1, int64_t summarize = 3, const std::string& name = "Print");
// Adds a node that writes the string scalar `text`, and then `end`, to "stdout" or "stderr" (`stream`).
COHORT_EXPORT Node* PrintV2(Output text, const std::string& stream = "stderr", const std::string& end = "\n",
                            const std::string& name = "PrintV2");

}  // namespace cohort::ops
