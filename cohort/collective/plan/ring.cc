// All-reduce by a ring: each member passes segments on to the next one, first reducing, then gathering.
#include <numeric>

#include "cohort/collective/plan/all_reduce.h"
#include "cohort/collective/plan/plan_builder.h"

namespace cohort::collective {

void AppendRingAllReduce(PlanBuilder& plan, const std::vector<int>& ranks, int index, Range range, PlanBuffer own) {
  const int n = static_cast<int>(ranks.size());
  const int next = ranks[static_cast<size_t>((index + 1) % n)];
  const int previous = ranks[static_cast<size_t>((index + n - 1) % n)];
  const auto part = [&](int number) {
    const Range within = PartOf(range.size(), n, ((number % n) + n) % n);
    return Range{range.begin + within.begin, range.begin + within.end};
  };
  const Range first = part(index);
  for (int64_t i = 0; i < plan.Segments(first); ++i) plan.Send(next, plan.Segment(first, i), own);
  for (int round = 0; round < n - 1; ++round) {
    const Range reduced = part(index - round - 1);
    const bool final = round == n - 2;
    const PlanBuffer to = final ? PlanBuffer::kOutput : plan.partial_sum_buffer();
    for (int64_t i = 0; i < plan.Segments(reduced); ++i) {
      const Range segment = plan.Segment(reduced, i);
      plan.Reduce(previous, segment, own, to, final);
      plan.Send(next, segment, to);
    }
  }
  for (int round = 0; round < n - 1; ++round) {
    const Range gathered = part(index - round);
    for (int64_t i = 0; i < plan.Segments(gathered); ++i) {
      const Range segment = plan.Segment(gathered, i);
      plan.Receive(previous, segment);
      if (round < n - 2) plan.Send(next, segment, PlanBuffer::kOutput);
    }
  }
}

void AppendRing(PlanBuilder& plan, const AllReduceTask& task) {
  std::vector<int> ranks(static_cast<size_t>(task.world));
  std::iota(ranks.begin(), ranks.end(), 0);
  AppendRingAllReduce(plan, ranks, task.rank, {0, task.count}, PlanBuffer::kInput);
}

// AUTO asks it last: it takes everything that no other algorithm took.
bool SuitsRing(const AllReduceFacts&) { return true; }

}  // namespace cohort::collective
