// VariableInfo: a variable as its graph knows it, and what makes variables.
#pragma once

#include <functional>
#include <string>

#include "cohort/graph/node.h"

namespace cohort {

// A variable as the graph knows it; ops/state.h makes them. `value` is a read at the time of the step's start.
struct VariableInfo {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
  Output handle;                // VarHandleOp
  Output value;                 // ReadVariableOp
  Node* initializer = nullptr;  // AssignVariableOp of the initial value
  Output initial_value;
  Output is_initialized;  // VarIsInitializedOp
  bool trainable = true;
  bool local = false;  // neither saved nor shared: initialised by the local init op of each worker
};

struct VariableRequest {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::function<Output()> initial_value;  // adds the nodes of the initial value
  bool trainable = true;
  bool local = false;
};
using VariableMaker = std::function<VariableInfo*(const VariableRequest&)>;
// The creator of the innermost scope is called first; `next` is that of the scope around it, at last the maker.
using VariableCreator = std::function<VariableInfo*(const VariableMaker& next, const VariableRequest&)>;

}  // namespace cohort
