// Gradients of replicas, reduced in buckets while the backward pass goes on.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/collective.h"

namespace cohort::collective {

struct GradientReduction {
  ops::CollectiveKeys keys;               // of the group; instance keys are the next ones of the graph
  std::string final_op = "Id";            // "Id": sums; "Div": means
  int64_t bytes_per_pack = 0;             // 0: kBytesPerPack
  std::vector<std::string> devices = {};  // of the replicas in this graph; empty: by the scopes
};

// `replicas`: for each replica that is in this graph (one where each has a graph of its own) its dense gradients; all
// replicas have the same ones, of equal dtypes and shapes, in any graph. Returns the reduced ones in the same order.
// Buckets follow the order in which the first replica's gradients were added to the graph. Small gradients travel
// packed as one vector, which costs a copy; large ones do not. Throws InvalidArgumentError for replicas that differ.
std::vector<std::vector<Output>> ReduceGradients(const std::vector<std::vector<Output>>& replicas,
                                                 const GradientReduction& how);

}  // namespace cohort::collective
