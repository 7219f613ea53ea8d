// PlanBuilder: makes a plan step by step. Internal to plan/.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cohort/collective/plan/plan.h"

namespace cohort::collective {

// Appends steps to the plan of one member and numbers its messages. Not thread-safe. After Take, no method may be
// called.
class PlanBuilder {
 public:
  // `input` and `output` are the numbers of elements of the two buffers.
  PlanBuilder(int64_t input, int64_t output, const PlanOptions& options) : options_(options) {
    plan_.input_count = input;
    plan_.output_count = output;
  }

  const PlanOptions& options() const { return options_; }
  // Returns how many messages a range needs. An empty range needs one, so that members always get a message from each
  // other.
  int64_t Segments(Range range) const {
    return range.size() <= options_.segment ? 1 : (range.size() - 1) / options_.segment + 1;
  }
  // Returns the part of `range` that message number `index` carries.
  Range Segment(Range range, int64_t index) const {
    const int64_t begin = range.begin + index * options_.segment;
    return {begin, range.size() - index * options_.segment > options_.segment ? begin + options_.segment : range.end};
  }

  // Each of these functions adds one step, which sends or receives at most one message; callers cut long ranges with
  // Segments and Segment. A function that takes a Range uses range.begin as the offset in `from` and in `to`.
  void Send(int peer, BufferOffset from, int64_t count) {
    Add({StepKind::kSend, false, peer, sent_[peer]++, count, from, {}});
  }
  void Send(int peer, Range range, PlanBuffer from) { Send(peer, {from, range.begin}, range.size()); }
  void Receive(int peer, Range range, PlanBuffer to = PlanBuffer::kOutput) {
    Add({StepKind::kReceive, false, peer, received_[peer]++, range.size(), {}, {to, range.begin}});
  }
  void Reduce(int peer, BufferOffset from, BufferOffset to, int64_t count, bool final) {
    Add({StepKind::kReduce, final, peer, received_[peer]++, count, from, to});
  }
  void Reduce(int peer, Range range, PlanBuffer from, PlanBuffer to, bool final) {
    Reduce(peer, {from, range.begin}, {to, range.begin}, range.size(), final);
  }
  void Copy(BufferOffset from, BufferOffset to, int64_t count) {
    if (count > 0) Add({StepKind::kCopy, false, -1, 0, count, from, to});
  }
  // Sets Plan::in_place to false: input and output must be different memory when the plan runs.
  void DeclareNotInPlace() { plan_.in_place = false; }
  // Returns the buffer for partial sums.
  PlanBuffer partial_sum_buffer() const {
    return options_.partials_in_scratch ? PlanBuffer::kScratch : PlanBuffer::kOutput;
  }

  // Returns the plan, with the size of its scratch buffer set. Call it once, at the end.
  Plan Take() {
    for (const PlanStep& step : plan_.steps) {
      Cover(step.from, step.count, step.kind != StepKind::kReceive);
      Cover(step.to, step.count, step.kind != StepKind::kSend);
    }
    return std::move(plan_);
  }

 private:
  void Add(const PlanStep& step) { plan_.steps.push_back(step); }
  void Cover(const BufferOffset& place, int64_t count, bool used) {
    if (used && place.buffer == PlanBuffer::kScratch)
      plan_.scratch_count = std::max(plan_.scratch_count, place.begin + count);
  }

  const PlanOptions options_;
  Plan plan_;
  std::map<int, int32_t> sent_;
  std::map<int, int32_t> received_;
};

// Appends the all-reduce of `range` by a ring over `ranks`. This member is ranks[index]. `own` is the buffer with its
// contribution: the input, or the result of an earlier reduction inside the process or host.
void AppendRingAllReduce(PlanBuilder& plan, const std::vector<int>& ranks, int index, Range range, PlanBuffer own);

}  // namespace cohort::collective
