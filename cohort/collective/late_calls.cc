#include "cohort/collective/late_calls.h"

#include "cohort/core/logging.h"

namespace cohort::collective {

void LateCalls::Look(const std::string& group, std::chrono::milliseconds interval,
                     const std::vector<std::shared_ptr<Pending>>& under_way) {
  std::map<const Pending*, Seen> now;
  std::string first;
  int others = 0;
  for (const auto& call : under_way) {
    const std::string wait = call->DescribeWait();
    if (wait.empty()) continue;
    Seen& seen = now[call.get()];
    const auto before = seen_.find(call.get());
    if (before != seen_.end() && before->second.call.lock() == call) seen = before->second;
    if (seen.call.lock() == nullptr) {
      seen.call = call;
      continue;
    }
    if (++seen.looks < seen.say) continue;
    seen.say *= 2;
    if (!first.empty()) {
      ++others;
      continue;
    }
    first = StrCat(call->Describe(), " of ", group, " has been under way for at least ",
                   static_cast<double>((interval * seen.looks).count()) / 1000.0, " s: it ", wait);
  }
  seen_ = std::move(now);
  if (first.empty()) return;
  LogWarning("collective", first, others == 0 ? "" : StrCat("; so have ", others, " others"));
}

}  // namespace cohort::collective
