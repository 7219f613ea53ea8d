// Ops of TensorFlow that Cohort lacks and that are common in SavedModels.
#pragma once

#include "cohort/graph/graph_def/foreign_ops.h"

namespace cohort::saved_model {

// Returns the ops, with the functions that make nodes of Cohort's ops of them.
const ForeignOps& TensorFlowOps();

}  // namespace cohort::saved_model
