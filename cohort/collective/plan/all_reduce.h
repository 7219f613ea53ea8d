// The plans of all-reduce, one for each PLAN row of the table in algorithm.h, and the rule by which AUTO chooses an
// algorithm.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "cohort/collective/algorithm.h"
#include "cohort/collective/plan/plan.h"
#include "cohort/core/dtype.h"

namespace cohort::collective {

class PlanBuilder;

// The largest message of a plan, in bytes, if GroupOptions::segment_bytes is 0.
inline constexpr int64_t kSegmentBytes = 512 * 1024;

// Returns the plan of the member `rank`. `locations` has one entry for each rank. Only kHierarchical reads it; for
// other algorithms it may be empty. Throws InvalidArgumentError if a rank, count or segment is out of range or if
// locations are missing. Throws InternalError for an algorithm without a plan.
Plan PlanAllReduce(Algorithm algorithm, int rank, int world, int64_t count, const PlanOptions& options = {},
                   const std::vector<Location>& locations = {});

// Returns the algorithm that AUTO chooses for a tensor of `bytes` bytes in a group whose rank r runs at locations[r].
// The choice depends only on facts that all members know. The limits between the algorithms were measured with 2 and 4
// processes on one machine over gRPC (bench/collective_bench --algorithm=...). The choice for several hosts was not
// measured. It follows from the number of bytes on the link between hosts (PlanTest counts them).
Algorithm ChooseAllReduce(DType dtype, int64_t bytes, const std::vector<Location>& locations);

// The arguments of a plan of all-reduce.
struct AllReduceTask {
  int rank = 0;
  int world = 2;  // at least 2
  int64_t count = 0;
  const std::vector<Location>& locations;  // by rank, or empty
};

// The facts on which the choice of AUTO depends.
struct AllReduceFacts {
  DType dtype = DType::kInvalid;
  int64_t bytes = 0;
  size_t world = 0;
  std::set<Location> processes;

  // Returns true if each process has one member.
  bool one_rank_each() const { return processes.size() == world; }
};

// Declares two functions for each PLAN row of the table: AppendX adds the steps of the algorithm X to a plan, and
// SuitsX returns whether AUTO may choose X.
#define COHORT_DECLARE_PLAN(enumerator, number, name, functions)        \
  void Append##functions(PlanBuilder& plan, const AllReduceTask& task); \
  bool Suits##functions(const AllReduceFacts& facts);
#define COHORT_IGNORE(...)
COHORT_COLLECTIVE_ALGORITHMS(COHORT_DECLARE_PLAN, COHORT_IGNORE)
#undef COHORT_DECLARE_PLAN
#undef COHORT_IGNORE

}  // namespace cohort::collective
