// Adds ops to a graph that reduce the gradients of replicas in buckets, while the backward pass still runs.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/ops/collective.h"

namespace cohort::collective {

// The options of ReduceGradients, and the group in which it reduces.
struct GradientReduction {
  ops::CollectiveKeys keys;               // of the group; the next free instance keys of the graph are used
  std::string final_op = "Id";            // "Id": sums; "Div": means
  int64_t bytes_per_pack = 0;             // 0: kBytesPerPack
  std::vector<std::string> devices = {};  // of the replicas in this graph; empty: the current device scopes decide
};

// Adds ops that reduce the gradients, and returns the reduced gradients in the order of the argument. `replicas` has
// one entry for each replica in this graph, with its dense gradients. If each process has a graph of its own, there may
// be only one entry. All replicas of all graphs must have the same gradients, with equal dtypes and shapes. Buckets
// follow the order in which the first replica's gradients were added to the graph. Small gradients are packed into one
// vector, which costs a copy; large ones are not. Throws InvalidArgumentError if replicas differ.
std::vector<std::vector<Output>> ReduceGradients(const std::vector<std::vector<Output>>& replicas,
                                                 const GradientReduction& how);

}  // namespace cohort::collective
