// Runs the plans of all members in one thread and checks properties that must hold in any order of execution:
// - Each message is received as it was sent, and no member waits for ever.
// - Nothing is read before it is written, and no contribution is added twice.
// - No step overwrites memory that a receiver may not have read yet. For this check, messages refer to their sender's
//   memory, and vector clocks record which member knows of which event.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/plan/plan.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective::testing {

// The simulated value of an element: its index, and a bit for each rank whose contribution is in it.
struct Element {
  int64_t index = -1;
  uint32_t parts = 0;
  friend bool operator==(const Element&, const Element&) = default;
};

// Simulates the members of one group. Not thread-safe: it runs all members on the thread that calls Run.
class PlanSimulator {
 public:
  // `first[rank]` is the Element::index of the first input element of the member `rank`. If `in_place` is true, each
  // member's input and output are the same memory.
  PlanSimulator(std::vector<Plan> plans, const std::vector<int64_t>& first, bool in_place)
      : plans_(std::move(plans)), in_place_(in_place), members_(plans_.size()) {
    for (size_t rank = 0; rank < plans_.size(); ++rank) {
      Member& member = members_[rank];
      const Plan& plan = plans_[rank];
      member.clock.resize(plans_.size());
      for (int64_t i = 0; i < plan.input_count; ++i) member.memory[0].push_back({first[rank] + i, 1u << rank});
      member.memory[1].resize(static_cast<size_t>(plan.output_count));
      member.memory[2].resize(static_cast<size_t>(plan.scratch_count));
      EXPECT_TRUE(!in_place || plan.input_count == plan.output_count);
    }
  }

  // Runs all plans until they have ended or none can go on. Returns a description of the first error, or "". Call it
  // once.
  std::string Run() {
    for (bool moved = true; moved && problem_.empty();) {
      moved = false;
      for (size_t rank = 0; rank < members_.size(); ++rank) {
        while (problem_.empty() && Step(static_cast<int>(rank))) moved = true;
      }
    }
    for (size_t rank = 0; rank < members_.size() && problem_.empty(); ++rank) {
      if (members_[rank].next < plans_[rank].steps.size()) {
        Fail(static_cast<int>(rank), StrCat("waits for ever at step ", members_[rank].next));
      }
    }
    for (const auto& [pair, queue] : wires_) {
      if (problem_.empty() && !queue.empty())
        Fail(pair.first, StrCat("what it sent to ", pair.second, " is not received"));
    }
    return problem_;
  }

  const std::vector<Element>& output(int rank) { return MemoryOf(rank, PlanBuffer::kOutput); }

 private:
  struct Sent {
    BufferOffset from;
    int64_t count;
    int peer;
    int64_t read_at = 0;  // on the receiver's clock; 0: not yet
  };
  struct Letter {
    size_t record;  // in the sender's `sent`
    int32_t sequence;
    std::vector<int64_t> clock;
  };
  struct Member {
    std::vector<Element> memory[3];
    std::vector<int64_t> clock;
    std::vector<Sent> sent;
    size_t next = 0;
  };

  PlanBuffer Real(PlanBuffer space) const {
    return in_place_ && space == PlanBuffer::kOutput ? PlanBuffer::kInput : space;
  }
  std::vector<Element>& MemoryOf(int rank, PlanBuffer space) {
    return members_[static_cast<size_t>(rank)].memory[static_cast<size_t>(Real(space))];
  }
  void Fail(int rank, const std::string& what) {
    if (problem_.empty()) {
      problem_ = StrCat("rank ", rank, " ", what, "\n", ToString(plans_[static_cast<size_t>(rank)]));
    }
  }
  Element Read(int rank, const BufferOffset& place, int64_t i) {
    const auto& memory = MemoryOf(rank, place.buffer);
    const int64_t at = place.begin + i;
    if (at < 0 || at >= static_cast<int64_t>(memory.size())) {
      Fail(rank, StrCat("reads beyond its memory: element ", at));
      return {};
    }
    if (memory[static_cast<size_t>(at)].index < 0)
      Fail(rank, StrCat("reads element ", at, ", which nobody has written"));
    return memory[static_cast<size_t>(at)];
  }
  void Write(int rank, const BufferOffset& place, const std::vector<Element>& values) {
    Member& member = members_[static_cast<size_t>(rank)];
    auto& memory = MemoryOf(rank, place.buffer);
    const auto count = static_cast<int64_t>(values.size());
    if (place.begin < 0 || place.begin + count > static_cast<int64_t>(memory.size())) {
      return Fail(rank, StrCat("writes beyond its memory: element ", place.begin + count));
    }
    for (const Sent& sent : member.sent) {
      const bool overlaps = Real(sent.from.buffer) == Real(place.buffer) && sent.from.begin < place.begin + count &&
                            place.begin < sent.from.begin + sent.count;
      if (overlaps && (sent.read_at == 0 || member.clock[static_cast<size_t>(sent.peer)] < sent.read_at)) {
        Fail(rank, StrCat("writes over what ", sent.peer, " may not have read yet, at step ", member.next));
      }
    }
    std::copy(values.begin(), values.end(), memory.begin() + place.begin);
  }

  bool Step(int rank) {
    Member& member = members_[static_cast<size_t>(rank)];
    const Plan& plan = plans_[static_cast<size_t>(rank)];
    if (member.next == plan.steps.size()) return false;
    const PlanStep& step = plan.steps[member.next];
    if (step.kind == StepKind::kReceive || step.kind == StepKind::kReduce) {
      if (wires_[{step.peer, rank}].empty()) return false;
      Take(rank, step);
    } else if (step.kind == StepKind::kSend) {
      Post(rank, step);
    } else {
      ++member.clock[static_cast<size_t>(rank)];
      std::vector<Element> values;
      for (int64_t i = 0; i < step.count; ++i) values.push_back(Read(rank, step.from, i));
      if (Real(step.from.buffer) != Real(step.to.buffer)) Write(rank, step.to, values);
    }
    ++member.next;
    return true;
  }

  void Post(int rank, const PlanStep& step) {
    Member& member = members_[static_cast<size_t>(rank)];
    if (step.peer == rank || step.peer < 0 || step.peer >= static_cast<int>(plans_.size())) {
      return Fail(rank, StrCat("sends to rank ", step.peer));
    }
    for (int64_t i = 0; i < step.count; ++i) Read(rank, step.from, i);
    ++member.clock[static_cast<size_t>(rank)];
    member.sent.push_back({step.from, step.count, step.peer});
    wires_[{rank, step.peer}].push_back({member.sent.size() - 1, step.sequence, member.clock});
  }

  void Take(int rank, const PlanStep& step) {
    Member& member = members_[static_cast<size_t>(rank)];
    auto& queue = wires_[{step.peer, rank}];
    const Letter letter = queue.front();
    queue.pop_front();
    Sent& sent = members_[static_cast<size_t>(step.peer)].sent[letter.record];
    if (sent.count != step.count || letter.sequence != step.sequence ||
        letter.sequence != taken_[{step.peer, rank}]++) {
      return Fail(rank, StrCat("expects message ", step.sequence, " of ", step.count, " from ", step.peer, "; gets ",
                               letter.sequence, " of ", sent.count));
    }
    std::vector<Element> values;
    for (int64_t i = 0; i < step.count; ++i) {
      Element value = Read(step.peer, sent.from, i);
      if (step.kind == StepKind::kReduce) {
        const Element own = Read(rank, step.from, i);
        if (own.index != value.index || (own.parts & value.parts) != 0) {
          Fail(rank,
               StrCat("adds element ", value.index, " to ", own.index, ", parts ", value.parts, " to ", own.parts));
        }
        value.parts |= own.parts;
        const bool all = value.parts == (1u << plans_.size()) - 1;
        if (all != step.final) Fail(rank, StrCat("says that a sum is ", step.final ? "" : "not ", "final"));
      }
      values.push_back(value);
    }
    for (size_t i = 0; i < member.clock.size(); ++i) member.clock[i] = std::max(member.clock[i], letter.clock[i]);
    sent.read_at = ++member.clock[static_cast<size_t>(rank)];
    Write(rank, step.to, values);
  }

  const std::vector<Plan> plans_;
  const bool in_place_;
  std::vector<Member> members_;
  std::map<std::pair<int, int>, std::deque<Letter>> wires_;
  std::map<std::pair<int, int>, int32_t> taken_;
  std::string problem_;
};

}  // namespace cohort::collective::testing
