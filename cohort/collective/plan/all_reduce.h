// The plans of all-reduce, one for each PLAN row of the table in algorithm.h, and the rule by which AUTO chooses.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "cohort/collective/algorithm.h"
#include "cohort/collective/plan/plan.h"
#include "cohort/core/dtype.h"

namespace cohort::collective {

class PlanBuilder;

// The largest message of a plan, in bytes, if the user sets no other size.
inline constexpr int64_t kSegmentBytes = 512 * 1024;

// Returns the plan of the member `rank`. `locations` has one entry for each rank; only kHierarchical reads it, for
// other algorithms it may be empty. Throws InvalidArgumentError if a rank, count or segment is out of range or if
// locations are missing, InternalError for an algorithm without a plan.
Plan PlanAllReduce(Algorithm algorithm, int rank, int world, int64_t count, const PlanOptions& options = {},
                   const std::vector<Location>& locations = {});

// Returns the algorithm that AUTO takes for a tensor of `bytes` bytes in a group whose rank r runs at locations[r]. It
// depends only on facts that all members know. The sizes at which one algorithm takes over from another were measured
// with 2 and 4 processes of one machine over gRPC (bench/collective_bench --algorithm=...). The choice between hosts
// was not measured: it follows from the bytes that cross the link between hosts (PlanTest counts them).
Algorithm ChooseAllReduce(DType dtype, int64_t bytes, const std::vector<Location>& locations);

// What a plan of all-reduce depends on.
struct AllReduceTask {
  int rank = 0;
  int world = 2;  // at least 2
  int64_t count = 0;
  const std::vector<Location>& locations;  // by rank, or empty
};

// What the choice of AUTO depends on.
struct AllReduceFacts {
  DType dtype = DType::kInvalid;
  int64_t bytes = 0;
  size_t world = 0;
  std::set<Location> processes;

  bool one_rank_each() const { return processes.size() == world; }
};

#define COHORT_DECLARE_PLAN(enumerator, number, name, functions)        \
  void Append##functions(PlanBuilder& plan, const AllReduceTask& task); \
  bool Suits##functions(const AllReduceFacts& facts);
#define COHORT_IGNORE(...)
COHORT_COLLECTIVE_ALGORITHMS(COHORT_DECLARE_PLAN, COHORT_IGNORE)
#undef COHORT_DECLARE_PLAN
#undef COHORT_IGNORE

}  // namespace cohort::collective
