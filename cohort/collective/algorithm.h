// The algorithms that a program can choose for a group. One table has their names, numbers and functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The table. Each row has an enumerator of Algorithm, its number in messages (docs/formats.md; never reuse one), its
// name, and the name of its functions.
//
// A PLAN row is an all-reduce algorithm that runs as a plan (plan/plan.h). A row whose functions are named X needs two
// functions in a source of plan/, which plan/all_reduce.h declares: AppendX makes the plan, and SuitsX returns whether
// AUTO may choose it. AUTO chooses the first suitable row from the top. In the rows, n is the number of members.
//
// An ENGINE row is a way to run all collectives of a group. A row whose functions are named X needs XEngineFactory() in
// a folder of its own, which engine.h declares. The first engine from the top whose factory's `serves` returns true
// runs the group. If there is none, plans run it.
//
// clang-format off
#define COHORT_COLLECTIVE_ALGORITHMS(PLAN, ENGINE)                                                                     \
  /* All members are of one process: nothing is sent, the last member to arrive computes for all. */                   \
  ENGINE(kShared, 6, "SHARED", Shared)                                                                                 \
  /* Gloo's own algorithms over its own connections. */                                                                \
  ENGINE(kGloo, 7, "GLOO", Gloo)                                                                                       \
  /* NVIDIA's library, on devices that it serves. AUTO chooses it for such devices. */                                 \
  ENGINE(kNccl, 8, "NCCL", Nccl)                                                                                       \
  /* All bytes in each of log2(n) rounds: few messages, for small tensors. */                                          \
  PLAN(kDoubling, 3, "DOUBLING", Doubling)                                                                             \
  /* DIRECT among the members of each process, then DIRECT among the processes of each host, then a ring between */    \
  /* the hosts. If there is only one host: DIRECT among the members of each process, then a ring between the */        \
  /* processes. */                                                                                                     \
  PLAN(kHierarchical, 5, "HIERARCHICAL", Hierarchical)                                                                 \
  /* Each member reduces one n-th of the tensor for all members and sends them the result: 2 rounds, many peers. */    \
  PLAN(kDirect, 4, "DIRECT", Direct)                                                                                   \
  /* If n is a power of 2: as many bytes as RING, in only 2 log2(n) rounds. Otherwise some pairs of neighbours take */ \
  /* part as if each pair were one member, which needs more bytes. */                                                  \
  PLAN(kHalvingDoubling, 2, "HALVING_DOUBLING", HalvingDoubling)                                                       \
  /* The fewest bytes: each member sends 2 (n - 1) / n of the tensor and receives as much, in 2 (n - 1) rounds. */     \
  PLAN(kRing, 1, "RING", Ring)
// clang-format on

namespace cohort::collective {

// A row of the table, or kAuto: the group chooses for each collective.
enum class Algorithm : uint8_t {
  kAuto = 0,
#define COHORT_ENUMERATOR(enumerator, number, name, functions) enumerator = (number),
  COHORT_COLLECTIVE_ALGORITHMS(COHORT_ENUMERATOR, COHORT_ENUMERATOR)
#undef COHORT_ENUMERATOR
};

// Returns "AUTO", "RING", ...
const char* AlgorithmName(Algorithm algorithm);
// Returns the algorithm of a name in upper or lower case. Throws InvalidArgumentError that lists the names if there is
// none.
Algorithm AlgorithmByName(const std::string& name);
// Returns kAuto and every row of the table, in the order of their numbers.
const std::vector<Algorithm>& AllAlgorithms();
// Returns true for the PLAN rows: all-reduce has a plan by this algorithm.
bool HasPlan(Algorithm algorithm);

// Where a member runs. Two members are on one host if their `host` is equal. They are in one process if their `host`
// and their `process` are equal. The numbers mean nothing else.
struct Location {
  int host = 0;
  int process = 0;
  friend auto operator<=>(const Location&, const Location&) = default;  // NOLINT(modernize-use-nullptr)
};

}  // namespace cohort::collective
