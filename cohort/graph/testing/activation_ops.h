// For tests that run every activation: they need no change when one is added.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/op_def.h"

namespace cohort::testing {

// Returns the names of all registered ops that have the trait Activation, in alphabetical order.
inline std::vector<std::string> ActivationOps() {
  std::vector<std::string> names;
  for (const OpDef* op : OpRegistry::Global().All()) {
    if (op->is_activation()) names.push_back(op->name());
  }
  return names;
}

}  // namespace cohort::testing
