// CheckValuesFirst: lets a step find bad indices and other bad values before it updates any variable.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::cuda {

// Adds control edges, so that the updates of the partition wait for the nodes that check values on the device
// (ChecksValues), also if a value is only fetched. For each update of rows (ResourceScatterAdd,
// ResourceSparseApplyMomentum, ...) it adds a _CheckIndices node, for which the other updates wait. So a bad value is
// known before any of them runs, and none of them is applied.
//
// An update does not wait for a check if it may be needed for the values: if the values depend on an update, or on
// something that another device or the host sends, only those updates wait that wait for the values anyway. So no check
// closes a cycle, not even one through another device. An update of rows checks its own indices, too.
//
// An update of rows gets no check if all other updates come after it, or if the partition may give its variable
// another number of rows. Returns `graph`.
std::unique_ptr<Graph> CheckValuesFirst(std::unique_ptr<Graph> graph, const std::string& device_type);

}  // namespace cohort::cuda
