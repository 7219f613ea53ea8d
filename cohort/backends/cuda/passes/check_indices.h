// CheckIndicesFirst: lets a step find bad indices of row updates before it updates any variable.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::cuda {

// Adds a _CheckIndices node for each update of rows (ResourceScatterAdd, ResourceSparseApplyMomentum, ...), and control
// edges from it to the other updates of the partition. So a bad index is known before any of them runs, and none of
// them is applied. An update does not wait for a check if it may be needed for the indices: if the indices depend on an
// update, or on a value that another device or the host sends, only those updates wait that wait for the indices
// anyway. So no check closes a cycle, not even one through another device. The update checks its indices, too.
//
// An update of rows gets no check if all other updates come after it, or if the partition may give its variable
// another number of rows. Returns `graph`.
std::unique_ptr<Graph> CheckIndicesFirst(std::unique_ptr<Graph> graph, const std::string& device_type);

}  // namespace cohort::cuda
