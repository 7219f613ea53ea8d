#include "cohort/collective/turns/turn_call.h"

#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort::collective {

bool TurnCall::SetTurn() {
  MutexLock lock(mu_);
  if (stage_ != Stage::kBegun) return false;
  stage_ = Stage::kHasTurn;
  return true;
}

bool TurnCall::waits_for_turn() const {
  MutexLock lock(mu_);
  return stage_ == Stage::kBegun;
}

bool TurnCall::Run(const WaitsFor& waits_for, const std::function<void(CollectiveCall&)>& work) {
  {
    MutexLock lock(mu_);
    if (stage_ == Stage::kEnded) return false;
    stage_ = Stage::kRuns;
    waits_for_ = &waits_for;
  }
  work(call_);
  MutexLock lock(mu_);
  waits_for_ = nullptr;
  return true;
}

bool TurnCall::Take(CollectiveCall* call) {
  {
    MutexLock lock(mu_);
    if (stage_ == Stage::kRuns || stage_ == Stage::kEnded) return false;
    stage_ = Stage::kEnded;
  }
  *call = std::move(call_);
  return true;
}

void TurnCall::Fail(const Status& why) {
  {
    MutexLock lock(mu_);
    if (stage_ == Stage::kRuns || stage_ == Stage::kEnded) return;
    stage_ = Stage::kEnded;
  }
  EndCall(call_, members_, why, {});
}

void TurnCall::End(const Status& status, Tensor result) {
  {
    MutexLock lock(mu_);
    if (stage_ == Stage::kEnded) return;
    stage_ = Stage::kEnded;
  }
  EndCall(call_, members_, status, std::move(result));
}

std::optional<uint64_t> TurnCall::Stamp() const {
  MutexLock lock(mu_);
  if (stage_ == Stage::kRuns) return std::nullopt;
  return static_cast<uint64_t>(stage_);
}

std::vector<int> TurnCall::AwaitedRanks() const {
  MutexLock lock(mu_);
  if (stage_ == Stage::kBegun) return {0};
  const int peer = waits_for_ == nullptr ? -1 : (*waits_for_)();
  return peer < 0 ? std::vector<int>() : std::vector<int>{peer};
}

std::string TurnCall::DescribeWait() const {
  MutexLock lock(mu_);
  if (stage_ == Stage::kEnded) return "";
  if (stage_ == Stage::kBegun) return StrCat("waits for ", members_.DescribeRank(0), ", which says when all have come");
  const int peer = waits_for_ == nullptr ? -1 : (*waits_for_)();
  return peer < 0 ? StrCat("is in ", library_, "'s hands")
                  : StrCat("waits for ", members_.DescribeRank(peer), ", in ", library_, "'s hands");
}

}  // namespace cohort::collective
