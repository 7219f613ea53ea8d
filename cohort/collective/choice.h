// Which algorithm serves a call where the user has left it open, and how its messages are cut. Pure functions of what
// all members know.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/collective/call.h"

namespace cohort::collective {

// `process_of`: the process of every rank. Where one algorithm takes over from another was measured with 2 and 4
// processes of one machine over gRPC (bench/collective_bench --algorithm=...).
Algorithm ChooseAllReduce(DType dtype, int64_t bytes, const std::vector<int>& process_of);
// Bytes of one message at most.
inline constexpr int64_t kSegmentBytes = 512 * 1024;

}  // namespace cohort::collective
