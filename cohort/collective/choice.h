// Which algorithm serves a call where the user has left it open, and how its messages are cut. Pure functions of what
// all members know.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/collective/call.h"

namespace cohort::collective {

// `locations`: of every rank. Where one algorithm takes over from another was measured with 2 and 4 processes of one
// machine over gRPC alone (bench/collective_bench --algorithm=...). What counts between hosts is reasoned from the
// bytes that cross (PlanTest counts them), with the link between hosts as the scarce one; it was not measured over such
// a link.
Algorithm ChooseAllReduce(DType dtype, int64_t bytes, const std::vector<Location>& locations);
// Bytes of one message at most.
inline constexpr int64_t kSegmentBytes = 512 * 1024;

}  // namespace cohort::collective
