// All-reduce in rounds between pairs: halving-doubling and doubling.
#include <bit>

#include "cohort/collective/plan/all_reduce.h"
#include "cohort/collective/plan/plan_builder.h"

namespace cohort::collective {
namespace {

// AUTO takes doubling up to these sizes. There the number of messages counts, not their bytes: two members need one
// round instead of two until the bytes that the second one saves outweigh it; more members would send them several
// times.
constexpr int64_t kSmallForTwo = 256 * 1024;
constexpr int64_t kSmall = 64 * 1024;

// The rounds need a power of 2 of members. If there are more members, the first few pairs of neighbours take part as
// one member each: the "silent" one gives its input to its neighbour first, and gets the result from it at the end.
class Folding {
 public:
  Folding(int rank, int world) : rank_(rank), paired_(0) {
    while (members_ * 2 <= world) members_ *= 2;
    paired_ = world - members_;
  }
  int members() const { return members_; }
  bool in_pair() const { return rank_ < 2 * paired_; }
  bool is_silent() const { return in_pair() && rank_ % 2 == 0; }
  int neighbour() const { return rank_ ^ 1; }
  // number() counts the members of the rounds; RankOf is its inverse.
  int number() const { return in_pair() ? rank_ / 2 : rank_ - paired_; }
  int RankOf(int number) const { return number < paired_ ? 2 * number + 1 : number + paired_; }

 private:
  const int rank_;
  int members_ = 1;
  int paired_;
};

void SendAll(PlanBuilder& plan, int peer, Range range, PlanBuffer from) {
  for (int64_t i = 0; i < plan.Segments(range); ++i) plan.Send(peer, plan.Segment(range, i), from);
}

void ReceiveAll(PlanBuilder& plan, int peer, Range range) {
  for (int64_t i = 0; i < plan.Segments(range); ++i) plan.Receive(peer, plan.Segment(range, i));
}

void ReduceAll(PlanBuilder& plan, int peer, Range range, PlanBuffer from, PlanBuffer to, bool final) {
  for (int64_t i = 0; i < plan.Segments(range); ++i) plan.Reduce(peer, plan.Segment(range, i), from, to, final);
}

void AppendSilent(PlanBuilder& plan, int neighbour, Range all) {
  SendAll(plan, neighbour, all, PlanBuffer::kInput);
  ReceiveAll(plan, neighbour, all);
}

}  // namespace

void AppendHalvingDoubling(PlanBuilder& plan, const AllReduceTask& task) {
  const Folding folding(task.rank, task.world);
  const Range all = {0, task.count};
  if (folding.is_silent()) return AppendSilent(plan, folding.neighbour(), all);
  PlanBuffer current = PlanBuffer::kInput;
  if (folding.in_pair()) {
    ReduceAll(plan, folding.neighbour(), all, current, plan.partial_sum_buffer(), false);
    current = plan.partial_sum_buffer();
  }
  struct Round {
    int peer;
    Range kept;
    Range given;
  };
  std::vector<Round> rounds;
  Range range = all;
  for (int distance = folding.members() / 2; distance >= 1; distance /= 2) {
    const int64_t middle = range.begin + (range.size() + 1) / 2;
    const Range low = {range.begin, middle};
    const Range high = {middle, range.end};
    const bool keeps_low = (folding.number() & distance) == 0;
    const Round round = {folding.RankOf(folding.number() ^ distance), keeps_low ? low : high, keeps_low ? high : low};
    const bool final = distance == 1;
    const PlanBuffer to = final ? PlanBuffer::kOutput : plan.partial_sum_buffer();
    SendAll(plan, round.peer, round.given, current);
    ReduceAll(plan, round.peer, round.kept, current, to, final);
    current = to;
    range = round.kept;
    rounds.push_back(round);
  }
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    SendAll(plan, round->peer, round->kept, PlanBuffer::kOutput);
    ReceiveAll(plan, round->peer, round->given);
  }
  if (folding.in_pair()) SendAll(plan, folding.neighbour(), all, PlanBuffer::kOutput);
}

void AppendDoubling(PlanBuilder& plan, const AllReduceTask& task) {
  // Messages of one round may still be on their way in the next round, so each round writes to memory of its own.
  plan.DeclareNotInPlace();
  const Folding folding(task.rank, task.world);
  const Range all = {0, task.count};
  if (folding.is_silent()) return AppendSilent(plan, folding.neighbour(), all);
  BufferOffset current = {PlanBuffer::kInput, 0};
  int64_t fresh = 0;
  const auto at = [](const BufferOffset& place, const Range& part) {
    return BufferOffset{place.buffer, place.begin + part.begin};
  };
  const auto reduce = [&](int peer, bool final) {
    const BufferOffset to = final ? BufferOffset{PlanBuffer::kOutput, 0} : BufferOffset{PlanBuffer::kScratch, fresh};
    if (!final) fresh += task.count;
    for (int64_t i = 0; i < plan.Segments(all); ++i) {
      const Range part = plan.Segment(all, i);
      plan.Reduce(peer, at(current, part), at(to, part), part.size(), final);
    }
    current = to;
  };
  if (folding.in_pair()) reduce(folding.neighbour(), false);
  for (int distance = 1; distance < folding.members(); distance *= 2) {
    const int peer = folding.RankOf(folding.number() ^ distance);
    for (int64_t i = 0; i < plan.Segments(all); ++i) {
      const Range part = plan.Segment(all, i);
      plan.Send(peer, at(current, part), part.size());
    }
    reduce(peer, distance * 2 == folding.members());
  }
  if (folding.in_pair()) SendAll(plan, folding.neighbour(), all, PlanBuffer::kOutput);
}

bool SuitsDoubling(const AllReduceFacts& facts) {
  return facts.one_rank_each() && facts.bytes <= (facts.world == 2 ? kSmallForTwo : kSmall);
}

bool SuitsHalvingDoubling(const AllReduceFacts& facts) { return facts.world > 2 && std::has_single_bit(facts.world); }

}  // namespace cohort::collective
