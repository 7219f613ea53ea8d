#include "cohort/collective/late_calls.h"

#include <set>

#include "cohort/core/logging.h"

namespace cohort::collective {

void LateCalls::Look(const std::string& group, std::chrono::milliseconds interval,
                     const std::vector<std::shared_ptr<Pending>>& under_way) {
  std::map<const Pending*, Seen> now;
  std::string first;
  std::set<std::string> told;  // members of this process may all wait in one collective
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
    told.insert(call->Describe());
    if (!first.empty()) continue;
    first = StrCat(call->Describe(), " of ", group, " has been under way for at least ",
                   static_cast<double>((interval * seen.looks).count()) / 1000.0, " s: it ", wait);
  }
  seen_ = std::move(now);
  if (first.empty()) return;
  LogWarning("collective", first, told.size() == 1 ? "" : StrCat("; and ", told.size() - 1, " more"));
}

}  // namespace cohort::collective
