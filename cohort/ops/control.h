// Nodes without a value of their own: order, checks, messages.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort::ops {

// Does nothing; it has run when its control inputs have.
Node* NoOp(Graph& graph, const NodeName& name = "NoOp");
// A NoOp that runs after all `nodes`. Nodes on several devices get one NoOp a device and one more after these, so that
// a single control edge crosses from each device.
Node* Group(Graph& graph, const std::vector<Node*>& nodes, const NodeName& name = "group_deps");
// Fails the step with InvalidArgumentError "assertion failed: ..." and the first `summarize` elements of each of `data`
// where `condition` (bool scalar) is false.
Node* Assert(Output condition, const std::vector<Output>& data, int64_t summarize = 3, const NodeName& name = "Assert");
// `input` unchanged; each time it is computed a line "message[data][data]" goes to stderr, only the first `first_n`
// times where that is not negative.
Output Print(Output input, const std::vector<Output>& data, const std::string& message = "", int64_t first_n = -1,
             int64_t summarize = 3, const NodeName& name = "Print");
// Writes the string scalar `text` and `end` to "stdout" or "stderr" (`stream`).
Node* PrintV2(Output text, const std::string& stream = "stderr", const std::string& end = "\n",
              const NodeName& name = "PrintV2");

}  // namespace cohort::ops
