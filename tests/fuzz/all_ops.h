// RegisterAllOps: the ops that a server knows.
#pragma once

#include "cohort/checkpoint/ops.h"
#include "cohort/data/graph/iterator_ops.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/register.h"

namespace cohort::fuzz {

// Registers all ops and no kernels. Later calls do nothing.
inline void RegisterAllOps() {
  static const bool once = [] {
    RegisterOps();
    RegisterCheckpointOps(OpRegistry::Global());
    RegisterDatasetOps(OpRegistry::Global());
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace cohort::fuzz
