#include "cohort/backends/cuda/fake/fake_control.h"

#include <algorithm>

#include "cohort/backends/cuda/fake/fake_card_state.h"
#include "cohort/backends/cuda/fake/fake_memory.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {

std::ostream& operator<<(std::ostream& out, const FakeLive& live) {
  return out << live.blocks << " blocks, " << live.pinned << " pinned blocks, " << live.streams << " streams, "
             << live.events << " events, " << live.graphs << " graphs";
}

FakeLive FakeControl::live() const {
  FakeLive live{0, pinned_, 0, events_, graphs_};
  for (const auto& card : cards_) {
    MutexLock lock(card->mu);
    live.blocks += static_cast<int64_t>(card->blocks.size());
    live.streams += static_cast<int64_t>(card->streams.size());
  }
  return live;
}

FakeControl::FakeControl(int cards) {
  for (int i = 0; i < cards; ++i) cards_.push_back(std::make_unique<FakeCardState>());
}

FakeControl::~FakeControl() {
  for (const auto& card : cards_) {
    MutexLock lock(card->mu);
    for (const auto& [data, bytes] : card->blocks) DeleteCardMemory(data, bytes);
  }
}

FakeCardState& FakeControl::State(int card) const {
  if (card < 0 || static_cast<size_t>(card) >= cards_.size()) {
    throw InternalError(StrCat("[fake driver] expected a card from 0 to ", cards_.size() - 1, "; got ", card));
  }
  return *cards_[static_cast<size_t>(card)];
}

bool FakeControl::has_context(int card) const {
  const FakeCardState& state = State(card);
  MutexLock lock(state.mu);
  return state.has_context;
}

size_t FakeControl::bytes_allocated(int card) const {
  const FakeCardState& state = State(card);
  MutexLock lock(state.mu);
  return state.used;
}

int FakeControl::CardOf(const void* data, size_t bytes) const {
  for (size_t card = 0; card < cards_.size(); ++card) {
    const FakeCardState& state = *cards_[card];
    MutexLock lock(state.mu);
    if (Contains(state.blocks, data, bytes)) return static_cast<int>(card);
  }
  return -1;
}

void FakeControl::Join(int card, int peer) {
  MutexLock lock(joined_mu_);
  joined_.insert(std::minmax({card, peer}));
}

void FakeControl::CountDetour(const void* to, const void* from, size_t bytes) {
  const std::pair<int, int> cards = std::minmax({CardOf(to, bytes), CardOf(from, bytes)});
  MutexLock lock(joined_mu_);
  if (cards.first != cards.second && !joined_.contains(cards)) ++detours_;
}

void FakeControl::FailWork(int card, int64_t n) {
  FakeCardState& state = State(card);
  MutexLock lock(state.mu);
  state.work_left = n;
}

void FakeControl::SetFault(int card, CardFault fault) {
  FakeCardState& state = State(card);
  MutexLock lock(state.mu);
  state.fault = fault;
}

void FakeControl::Hold(int card) {
  FakeCardState& state = State(card);
  MutexLock lock(state.mu);
  state.held = true;
}

void FakeControl::HoldGraphs(int card) {
  FakeCardState& state = State(card);
  MutexLock lock(state.mu);
  state.graphs_held = true;
}

void FakeControl::Release(int card) {
  FakeCardState& state = State(card);
  MutexLock lock(state.mu);
  state.held = state.graphs_held = false;
  state.changed.NotifyAll();
}

}  // namespace cohort::cuda
