// Joins the updates of an optimizer into one node.
#pragma once

#include <memory>

#include "cohort/graph/graph.h"

namespace cohort::cuda {

// Puts one node (graph/joined_updates.h) in the place of updates, of whole variables or of rows, that have the same op,
// the same attributes and the same scalars (learning rate, momentum, ...), and that wait for the same nodes. Updates
// wait for the same nodes if their inputs and control inputs are the same, apart from values that are there when the
// step begins, or if all of them wait for a barrier (runtime/execution/update_barrier.h) that waits for the inputs of
// each. So no update of such a node can need another one, not even through another device. What ran behind one of them
// runs behind all of them. Two updates of one variable stay two nodes. Returns `graph` itself if there is nothing to
// join.
std::unique_ptr<Graph> JoinUpdatesOfOptimizers(std::unique_ptr<Graph> graph);

}  // namespace cohort::cuda
