#include "cohort/collective/plan/plan.h"

#include <sstream>

#include "cohort/collective/plan/plan_builder.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

void CopyAll(PlanBuilder& plan, int64_t count) { plan.Copy({PlanBuffer::kInput, 0}, {PlanBuffer::kOutput, 0}, count); }

void PrintRange(std::ostream& out, const BufferOffset& place, int64_t count) {
  constexpr const char* kNames[] = {"input", "output", "scratch"};
  out << kNames[static_cast<size_t>(place.buffer)] << "[" << place.begin << "," << place.begin + count << ")";
}

}  // namespace

void CheckPlanArguments(int rank, int world, int64_t count, const PlanOptions& options) {
  if (world < 1 || rank < 0 || rank >= world || count < 0 || options.segment < 1) {
    throw InvalidArgumentError(
        StrCat("[collective] expected a rank in [0, world), a count from 0, a segment from 1; got rank ", rank,
               ", world ", world, ", count ", count, ", segment ", options.segment));
  }
}

Range PartOf(int64_t count, int parts, int index) {
  const int64_t each = count / parts;
  const int64_t longer = count % parts;
  const int64_t begin = each * index + std::min<int64_t>(index, longer);
  return {begin, begin + each + (index < longer ? 1 : 0)};
}

Plan PlanReduceScatter(int rank, int world, int64_t count, const PlanOptions& options) {
  CheckPlanArguments(rank, world, count, options);
  const Range own = PartOf(count, world, rank);
  PlanBuilder plan(count, own.size(), options);
  if (world == 1) CopyAll(plan, count);
  const int next = (rank + 1) % world;
  const int previous = (rank + world - 1) % world;
  const auto part = [&](int number) { return PartOf(count, world, ((number % world) + world) % world); };
  const Range first = part(rank - 1);
  for (int64_t i = 0; world > 1 && i < plan.Segments(first); ++i) {
    plan.Send(next, plan.Segment(first, i), PlanBuffer::kInput);
  }
  for (int round = 0; round < world - 1; ++round) {
    const Range reduced = part(rank - round - 2);
    const bool final = round == world - 2;
    for (int64_t i = 0; i < plan.Segments(reduced); ++i) {
      const Range segment = plan.Segment(reduced, i);
      const BufferOffset to = final ? BufferOffset{PlanBuffer::kOutput, segment.begin - own.begin}
                                    : BufferOffset{PlanBuffer::kScratch, segment.begin};
      plan.Reduce(previous, {PlanBuffer::kInput, segment.begin}, to, segment.size(), final);
      if (!final) plan.Send(next, segment, PlanBuffer::kScratch);
    }
  }
  return plan.Take();
}

Plan PlanAllGather(int rank, const std::vector<int64_t>& counts, const PlanOptions& options) {
  const int world = static_cast<int>(counts.size());
  std::vector<Range> parts;
  int64_t total = 0;
  for (const int64_t count : counts) {
    CheckPlanArguments(rank, world, count, options);
    parts.push_back({total, total + count});
    total += count;
  }
  CheckPlanArguments(rank, world, total, options);
  const Range own = parts[static_cast<size_t>(rank)];
  PlanBuilder plan(own.size(), total, options);
  plan.Copy({PlanBuffer::kInput, 0}, {PlanBuffer::kOutput, own.begin}, own.size());
  const int next = (rank + 1) % world;
  const int previous = (rank + world - 1) % world;
  for (int64_t i = 0; world > 1 && i < plan.Segments(own); ++i) {
    const Range segment = plan.Segment(own, i);
    plan.Send(next, {PlanBuffer::kInput, segment.begin - own.begin}, segment.size());
  }
  for (int round = 0; round < world - 1; ++round) {
    const Range gathered = parts[static_cast<size_t>((rank - round - 1 + 2 * world) % world)];
    for (int64_t i = 0; i < plan.Segments(gathered); ++i) {
      const Range segment = plan.Segment(gathered, i);
      plan.Receive(previous, segment);
      if (round < world - 2) plan.Send(next, segment, PlanBuffer::kOutput);
    }
  }
  return plan.Take();
}

Plan PlanBroadcast(int rank, int world, int root, int64_t count, const PlanOptions& options) {
  CheckPlanArguments(rank, world, count, options);
  CheckPlanArguments(root, world, count, options);
  PlanBuilder plan(count, count, options);
  const int number = (rank - root + world) % world;  // the root is 0
  int reach = 1;
  while (reach < world && (number & reach) == 0) reach *= 2;
  const int parent = (number - reach + root + world) % world;
  const Range all = {0, count};
  if (number == 0) CopyAll(plan, count);
  for (int64_t i = 0; i < plan.Segments(all); ++i) {
    const Range segment = plan.Segment(all, i);
    if (number != 0) plan.Receive(parent, segment);
    for (int step = reach / 2; step >= 1; step /= 2) {
      if (number + step >= world) continue;
      plan.Send((number + step + root) % world, segment, number == 0 ? PlanBuffer::kInput : PlanBuffer::kOutput);
    }
  }
  return plan.Take();
}

Plan PlanBarrier(int rank, int world) {
  CheckPlanArguments(rank, world, 0, {});
  PlanBuilder plan(0, 0, {});
  for (int distance = 1; distance < world; distance *= 2) {
    plan.Send((rank + distance) % world, {}, PlanBuffer::kInput);
    plan.Receive((rank - distance + world) % world, {});
  }
  return plan.Take();
}

std::string ToString(const Plan& plan) {
  std::ostringstream out;
  for (const PlanStep& step : plan.steps) {
    constexpr const char* kNames[] = {"send", "receive", "reduce", "copy"};
    out << kNames[static_cast<size_t>(step.kind)];
    if (step.peer >= 0) {
      out << " #" << step.sequence << (step.kind == StepKind::kSend ? " to " : " from ") << step.peer;
    }
    out << ": ";
    if (step.kind != StepKind::kReceive) PrintRange(out, step.from, step.count);
    if (step.kind != StepKind::kSend) {
      out << " -> ";
      PrintRange(out, step.to, step.count);
    }
    out << (step.final ? " final\n" : "\n");
  }
  return std::move(out).str();
}

}  // namespace cohort::collective
