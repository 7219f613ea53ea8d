// PlanBuilder: appends steps and numbers messages. Internal to the makers of plans.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cohort/collective/plan.h"

namespace cohort::collective {

class PlanBuilder {
 public:
  PlanBuilder(int64_t input, int64_t output, const PlanOptions& options) : options_(options) {
    plan_.input_count = input;
    plan_.output_count = output;
  }

  const PlanOptions& options() const { return options_; }
  // How many messages a range takes: at least one, so that members always hear of each other.
  int64_t Segments(Range range) const {
    return range.size() <= options_.segment ? 1 : (range.size() - 1) / options_.segment + 1;
  }
  Range Segment(Range range, int64_t index) const {
    const int64_t begin = range.begin + index * options_.segment;
    return {begin, range.size() - index * options_.segment > options_.segment ? begin + options_.segment : range.end};
  }

  // A range is at the same place in both spaces.
  void Send(int peer, Place from, int64_t count) {
    Add({StepKind::kSend, false, peer, sent_[peer]++, count, from, {}});
  }
  void Send(int peer, Range range, Space from) { Send(peer, {from, range.begin}, range.size()); }
  void Receive(int peer, Range range, Space to = Space::kOutput) {
    Add({StepKind::kReceive, false, peer, received_[peer]++, range.size(), {}, {to, range.begin}});
  }
  void Reduce(int peer, Place from, Place to, int64_t count, bool final) {
    Add({StepKind::kReduce, final, peer, received_[peer]++, count, from, to});
  }
  void Reduce(int peer, Range range, Space from, Space to, bool final) {
    Reduce(peer, {from, range.begin}, {to, range.begin}, range.size(), final);
  }
  void Copy(Place from, Place to, int64_t count) {
    if (count > 0) Add({StepKind::kCopy, false, -1, 0, count, from, to});
  }
  void DeclareNotInPlace() { plan_.in_place = false; }
  // Where unfinished sums lie.
  Space partials() const { return options_.partials_in_scratch ? Space::kScratch : Space::kOutput; }

  Plan Take() {
    for (const PlanStep& step : plan_.steps) {
      Cover(step.from, step.count, step.kind != StepKind::kReceive);
      Cover(step.to, step.count, step.kind != StepKind::kSend);
    }
    return std::move(plan_);
  }

 private:
  void Add(const PlanStep& step) { plan_.steps.push_back(step); }
  void Cover(const Place& place, int64_t count, bool used) {
    if (used && place.space == Space::kScratch)
      plan_.scratch_count = std::max(plan_.scratch_count, place.begin + count);
  }

  const PlanOptions options_;
  Plan plan_;
  std::map<int, int32_t> sent_;
  std::map<int, int32_t> received_;
};

// All-reduce of `range` by a ring over `ranks`, of which this member is number `index`. What it adds of its own lies in
// `own`: the input, or what a reduction inside the process has left elsewhere.
void AppendRingAllReduce(PlanBuilder& plan, const std::vector<int>& ranks, int index, Range range, Space own);

// All-reduce of [0, count) over all ranks, of which there are at least two.
void AppendHalvingDoubling(PlanBuilder& plan, int rank, int world, int64_t count);
void AppendDoubling(PlanBuilder& plan, int rank, int world, int64_t count);
void AppendHierarchical(PlanBuilder& plan, int rank, const std::vector<Location>& locations, int64_t count);

}  // namespace cohort::collective
