// All-reduce in rounds between pairs: halving-doubling and doubling.
#include "cohort/collective/plan_builder.h"

namespace cohort::collective {
namespace {

// Where the number of members is no power of 2, the first few pairs of neighbours begin and end as one.
class Folding {
 public:
  Folding(int rank, int world) : rank_(rank), paired_(0) {
    while (members_ * 2 <= world) members_ *= 2;
    paired_ = world - members_;
  }
  int members() const { return members_; }
  bool in_pair() const { return rank_ < 2 * paired_; }
  // The one of a pair who only gives its input and takes the result.
  bool is_silent() const { return in_pair() && rank_ % 2 == 0; }
  int neighbour() const { return rank_ ^ 1; }
  // Number among the members of the rounds, and back.
  int number() const { return in_pair() ? rank_ / 2 : rank_ - paired_; }
  int RankOf(int number) const { return number < paired_ ? 2 * number + 1 : number + paired_; }

 private:
  const int rank_;
  int members_ = 1;
  int paired_;
};

void SendAll(PlanBuilder& plan, int peer, Range range, Space from) {
  for (int64_t i = 0; i < plan.Segments(range); ++i) plan.Send(peer, plan.Segment(range, i), from);
}

void ReceiveAll(PlanBuilder& plan, int peer, Range range) {
  for (int64_t i = 0; i < plan.Segments(range); ++i) plan.Receive(peer, plan.Segment(range, i));
}

void ReduceAll(PlanBuilder& plan, int peer, Range range, Space from, Space to, bool final) {
  for (int64_t i = 0; i < plan.Segments(range); ++i) plan.Reduce(peer, plan.Segment(range, i), from, to, final);
}

void AppendSilent(PlanBuilder& plan, int neighbour, Range all) {
  SendAll(plan, neighbour, all, Space::kInput);
  ReceiveAll(plan, neighbour, all);
}

}  // namespace

void AppendHalvingDoubling(PlanBuilder& plan, int rank, int world, int64_t count) {
  const Folding folding(rank, world);
  const Range all = {0, count};
  if (folding.is_silent()) return AppendSilent(plan, folding.neighbour(), all);
  Space current = Space::kInput;
  if (folding.in_pair()) {
    ReduceAll(plan, folding.neighbour(), all, current, plan.partials(), false);
    current = plan.partials();
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
    const Space to = final ? Space::kOutput : plan.partials();
    SendAll(plan, round.peer, round.given, current);
    ReduceAll(plan, round.peer, round.kept, current, to, final);
    current = to;
    range = round.kept;
    rounds.push_back(round);
  }
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    SendAll(plan, round->peer, round->kept, Space::kOutput);
    ReceiveAll(plan, round->peer, round->given);
  }
  if (folding.in_pair()) SendAll(plan, folding.neighbour(), all, Space::kOutput);
}

void AppendDoubling(PlanBuilder& plan, int rank, int world, int64_t count) {
  // What a round has sent may still be on its way in the next: each writes to a place of its own.
  plan.DeclareNotInPlace();
  const Folding folding(rank, world);
  const Range all = {0, count};
  if (folding.is_silent()) return AppendSilent(plan, folding.neighbour(), all);
  Place current = {Space::kInput, 0};
  int64_t fresh = 0;
  const auto at = [](const Place& place, const Range& part) { return Place{place.space, place.begin + part.begin}; };
  const auto reduce = [&](int peer, bool final) {
    const Place to = final ? Place{Space::kOutput, 0} : Place{Space::kScratch, fresh};
    if (!final) fresh += count;
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
  if (folding.in_pair()) SendAll(plan, folding.neighbour(), all, Space::kOutput);
}

}  // namespace cohort::collective
