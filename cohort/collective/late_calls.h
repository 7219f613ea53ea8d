// LateCalls: says in the log which collectives do not end, and whom they wait for. Internal to collective/.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/call.h"

namespace cohort::collective {

// Not thread-safe.
class LateCalls {
 public:
  // To be called every `interval` with all that is under way at `group`. What was there before and still waits is told,
  // and again each time that its age has doubled; of several the first alone, with their number.
  void Look(const std::string& group, std::chrono::milliseconds interval,
            const std::vector<std::shared_ptr<Pending>>& under_way);

 private:
  struct Seen {
    std::weak_ptr<Pending> call;
    int64_t looks = 0;  // after the first
    int64_t say = 1;    // when `looks` is that many
  };
  std::map<const Pending*, Seen> seen_;  // at the last look
};

}  // namespace cohort::collective
