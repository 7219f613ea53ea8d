// SumRowsOnCard: lets a GPU sum repeated rows of gradients without the host.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::cuda {

// Optimizers sum repeated rows of a gradient before they update a variable (train::SumRepeatedRows): by a Unique, which
// runs on the host because its outputs' shapes depend on the data, and an UnsortedSegmentSum. The pass puts one
// _SumRepeatedRows node into the place of both. It has as many rows as the gradient, so all shapes are known before the
// step, which can then be recorded. The rows that belong to no index are zeros, and the updates pass over them
// (kRowsMayBeNone).
//
// This is done only where those rows make no difference: the sums must be read by updates of rows by a kernel of
// `device_type`, directly or through products with scalars, limits and casts, and by norms of all elements. Returns
// `graph` itself if there is nothing to do.
std::unique_ptr<Graph> SumRowsOnCard(std::unique_ptr<Graph> graph, const std::string& device_type);

}  // namespace cohort::cuda
