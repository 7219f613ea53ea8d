// TakeSeedsFromCard: lets stateless random ops read a seed that the card computes.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::cuda {

// Replaces each StatelessRandomUniform, StatelessRandomNormal and StatelessTruncatedNormal whose seed is the result of
// a kernel of the device type by a _StatelessRandomOnDevice, whose seed lies in the device's memory. So a step whose
// seeds follow from a variable, such as the number of the step, does not wait for them. Returns `graph` itself if there
// is nothing to replace.
std::unique_ptr<Graph> TakeSeedsFromCard(std::unique_ptr<Graph> graph, const std::string& device_type);

}  // namespace cohort::cuda
