// ActivationOps(): the names of all activations. Tests that use it need no change when an activation is added.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/op_def.h"

namespace cohort::testing {

// Returns the names of all registered ops that have the trait Activation, sorted.
inline std::vector<std::string> ActivationOps() {
  std::vector<std::string> names;
  for (const OpDef* op : OpRegistry::Global().All()) {
    if (op->is_activation()) names.push_back(op->name());
  }
  return names;
}

}  // namespace cohort::testing
