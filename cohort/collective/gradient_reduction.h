// Reduces the gradients of replicas in buckets, while the backward pass goes on.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/collective.h"

namespace cohort::collective {

struct GradientReduction {
  ops::CollectiveKeys keys;               // of the group; the instance keys are the next free ones of the graph
  std::string final_op = "Id";            // "Id": sums; "Div": means
  int64_t bytes_per_pack = 0;             // 0: kBytesPerPack
  std::vector<std::string> devices = {};  // of the replicas in this graph; empty: the scopes decide
};

// Adds ops that reduce the gradients, and returns the reduced gradients in the order of the argument. replicas[r] has
// the dense gradients of the r-th replica that is in this graph; if each process has a graph of its own, that may be
// only one. All replicas, in any graph, have to have the same gradients, of equal dtypes and shapes. The buckets follow
// the order in which the first replica's gradients were added to the graph. Small gradients travel packed as one
// vector, which costs a copy; large ones do not. Throws InvalidArgumentError if replicas differ.
std::vector<std::vector<Output>> ReduceGradients(const std::vector<std::vector<Output>>& replicas,
                                                 const GradientReduction& how);

}  // namespace cohort::collective
