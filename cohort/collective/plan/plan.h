// Plans of collectives. A plan lists the steps of one member: which elements it sends, receives and computes. Making a
// plan is a pure function: every member makes its own plan, and the plans fit together. For this, all arguments except
// the rank must be equal at all members. All counts are numbers of elements. The plans of all-reduce are in
// all_reduce.h.
//
// Sources of the algorithms. Ring and halving-doubling all-reduce: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization
// of Collective Communication Operations in MPICH", 2005. The dissemination barrier: D. Hensgen, R. Finkel, U. Manber,
// 1988.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort::collective {

// The buffers of one member. If Plan::in_place is true, input and output may be the same memory: no step overwrites
// elements that a peer may not have read yet.
enum class PlanBuffer : uint8_t { kInput, kOutput, kScratch };

// A position in one of the buffers.
struct BufferOffset {
  PlanBuffer buffer = PlanBuffer::kInput;
  int64_t begin = 0;  // element
};

// The kinds of steps of a plan.
enum class StepKind : uint8_t {
  kSend,     // sends [from, from + count) to `peer`; never waits
  kReceive,  // receives from `peer` into [to, to + count)
  kReduce,   // sets `to` to the reduction of `from` and the elements that `peer` sends
  kCopy,     // sets `to` to `from`; does nothing if both are the same memory
};

// One step of a plan. The kind says which of the fields below are used.
struct PlanStep {
  StepKind kind = StepKind::kSend;
  // For kReduce: whether `to` has every member's contribution after this step. If so, and if the
  // reduction is a mean, this step also divides the sum by the number of members.
  bool final = false;
  int peer = -1;         // rank; -1 for kCopy
  int32_t sequence = 0;  // number of the message among those from its sender to its receiver in this plan
  int64_t count = 0;
  BufferOffset from;
  BufferOffset to;

  bool NeedsMessage() const { return kind == StepKind::kReceive || kind == StepKind::kReduce; }
};

// A member runs its steps one after another. A send does not wait for its receiver, so no order of the members can
// deadlock.
struct Plan {
  std::vector<PlanStep> steps;
  int64_t input_count = 0;
  int64_t output_count = 0;
  int64_t scratch_count = 0;
  bool in_place = true;  // whether input and output may be the same memory
};

// The options for making a plan.
struct PlanOptions {
  // The largest number of elements of a message, at least 1. A longer range is sent as several messages, so that a
  // member can reduce one message while the next is on its way.
  int64_t segment = INT64_MAX;
  // If true, partial sums are in the scratch buffer and are sent from there. The buffer's dtype may be wider than that
  // of input and output.
  bool partials_in_scratch = false;
};

// The elements from `begin` to before `end`.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};
// Cuts [0, count) into `parts` ranges. Their sizes differ by at most one element, and the longer ones come first.
// Returns range number `index`.
Range PartOf(int64_t count, int parts, int index);

// The functions below throw InvalidArgumentError if a rank, count or segment is out of range.

// Makes a ring. The output is range PartOf(count, world, rank) of the reduction. Partial sums are always in scratch.
Plan PlanReduceScatter(int rank, int world, int64_t count, const PlanOptions& options = {});
// Makes a ring. The input has counts[rank] elements. The output has the elements of all members in the order of ranks.
Plan PlanAllGather(int rank, const std::vector<int64_t>& counts, const PlanOptions& options = {});
// Makes a binomial tree.
Plan PlanBroadcast(int rank, int world, int root, int64_t count, const PlanOptions& options = {});
// Makes a dissemination barrier. Its messages have no elements.
Plan PlanBarrier(int rank, int world);

// Throws InvalidArgumentError that shows the values if one of them is out of range.
void CheckPlanArguments(int rank, int world, int64_t count, const PlanOptions& options);

// Returns one line for each step, for errors and tests: "reduce #0 from 2: input[0,3) -> output[0,3) final".
std::string ToString(const Plan& plan);

}  // namespace cohort::collective
