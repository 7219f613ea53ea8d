// Case: a branch among more than two. Cohort has branches among two, so a Case becomes a tree of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cohort/proto/graph.pb.h"

namespace cohort {

inline bool IsCase(const proto::NodeDef& node) { return node.op() == "Case" || node.op() == "StatelessCase"; }

// What stands for a node of op Case or StatelessCase.
struct CaseParts {
  std::vector<proto::NodeDef> nodes;  // the last one has the name of the node, and is an If or a StatelessIf
  std::vector<proto::FunctionDef> functions;
};

// What LowerCase is given besides the node.
struct CaseContext {
  bool in_graph = true;                       // false: the node is one of a function
  const proto::FunctionDef* first = nullptr;  // the function of the first branch, whose arguments are described
  std::function<std::string(const std::string&)> new_node, new_function;  // make a name that is not taken
  std::function<void(uint64_t)> take;  // is told the bytes of each new function; throws if they are too many
};

// Requires that the context describes the node. A branch number out of range means the last branch. Throws
// InvalidArgumentError if the node has no branches, or another number of inputs than attributes say.
CaseParts LowerCase(const proto::NodeDef& node, const CaseContext& context);

}  // namespace cohort
