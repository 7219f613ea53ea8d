// Plans of collectives: what one member sends, receives and computes, as a list of steps. Pure functions of their
// arguments; all members make their own from equal arguments and the plans fit together. Counts are of elements.
//
// Sources of the algorithms: ring and halving-doubling all-reduce as in R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of Collective Communication Operations in MPICH", 2005; the dissemination barrier of D. Hensgen,
// R. Finkel, U. Manber, 1988.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort::collective {

// Memory of one member. Where Plan::in_place says so, input and output may be the same memory: no step then writes over
// what a peer may not have read yet.
enum class Space : uint8_t { kInput, kOutput, kScratch };

struct Place {
  Space space = Space::kInput;
  int64_t begin = 0;
};

enum class StepKind : uint8_t {
  kSend,     // [from, from + count) to `peer`; never waits
  kReceive,  // from `peer` into [to, to + count)
  kReduce,   // to = from op what comes from `peer`
  kCopy,     // to = from; nothing to do where both are the same memory
};

struct PlanStep {
  StepKind kind = StepKind::kSend;
  bool final = false;    // of kReduce: `to` then has every member's part (a mean is divided now)
  int peer = -1;         // rank
  int32_t sequence = 0;  // number of the message among those from its sender to its receiver in this plan
  int64_t count = 0;
  Place from;
  Place to;
};

// Steps are run one after another; a send does not wait for its receiver, so that no order of members can deadlock.
struct Plan {
  std::vector<PlanStep> steps;
  int64_t input_count = 0;
  int64_t output_count = 0;
  int64_t scratch_count = 0;
  bool in_place = true;  // whether input and output may be the same memory
};

enum class Algorithm : uint8_t {
  kAuto,
  kRing,             // bandwidth-optimal: 2 (n - 1) / n of the bytes each way, 2 (n - 1) messages
  kHalvingDoubling,  // the same bytes in 2 log2(n) rounds; n that is no power of 2 folds the rest
  kDoubling,         // all bytes in each of log2(n) rounds: few messages, for small tensors
  kDirect,           // each member reduces its share from all others and sends it to all: 2 rounds, many peers
  kHierarchical,     // direct inside a process and inside a host, rings between hosts (of one host: its processes)
  kShared,           // inside one process: no plan, the result is shared (meeting.h)
  kGloo,             // no plan of ours: Gloo's own algorithms over its own connections (gloo_calls.h)
};
const char* AlgorithmName(Algorithm algorithm);

struct PlanOptions {
  // A longer part travels as several messages, so that one is reduced while the next is on its way. At least 1.
  int64_t segment = INT64_MAX;
  // Unfinished sums lie (and travel) in scratch, which may be of a wider dtype than input and output.
  bool partials_in_scratch = false;
};

// Where a member is. Numbers mean nothing but who shares a process, and a host; the processes of different hosts are
// different ones even of one number.
struct Location {
  int host = 0;
  int process = 0;
  friend auto operator<=>(const Location&, const Location&) = default;  // NOLINT(modernize-use-nullptr)
};

// Part `index` of [0, count) in `parts` parts that differ by one element at most, the longer ones first.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};
Range PartOf(int64_t count, int parts, int index);

// `locations`: of every rank, for kHierarchical (others may leave it empty), which has three levels: members of a
// process, processes of a host, hosts. A level whose groups all have one member vanishes. On the two inner ones only
// as many members own a share of the sum as the smallest process has ranks, and the smallest host processes, so that
// each share has an owner everywhere; each host then sends 2 (h - 1) / h of the bytes to others, h being their number.
// Throws InvalidArgumentError for a rank, count or segment out of range and where locations are missing, InternalError
// for kAuto, kShared and kGloo.
Plan PlanAllReduce(Algorithm algorithm, int rank, int world, int64_t count, const PlanOptions& options = {},
                   const std::vector<Location>& locations = {});
// Output: PartOf(count, world, rank) of the reduction. A ring; partials are always in scratch.
Plan PlanReduceScatter(int rank, int world, int64_t count, const PlanOptions& options = {});
// Input: counts[rank] elements; output: all of them in the order of ranks. A ring.
Plan PlanAllGather(int rank, const std::vector<int64_t>& counts, const PlanOptions& options = {});
// A binomial tree.
Plan PlanBroadcast(int rank, int world, int root, int64_t count, const PlanOptions& options = {});
// Messages of no elements.
Plan PlanBarrier(int rank, int world);

// One line a step, for errors and tests: "reduce #0 from 2: input[0,3) -> output[0,3) final".
std::string ToString(const Plan& plan);

}  // namespace cohort::collective
