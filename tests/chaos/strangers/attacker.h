// Attacker: strangers that flood tasks. Imitator: the same strangers beside tasks that they leave alone, to see what
// the strangers' own work costs a training on the same machine.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/chaos/strangers/attacks.h"

namespace cohort::testing {

// What strangers did, since they began.
struct Work {
  int64_t connections = 0;
  double processor_seconds = 0;
  double seconds = 0;
  // Returns what they did since `earlier`.
  Work Since(const Work& earlier) const {
    return {connections - earlier.connections, processor_seconds - earlier.processor_seconds,
            seconds - earlier.seconds};
  }
};

// Owned by a test, in whose process the strangers are. They attack the addresses until it is destroyed. Once all
// connections that are held are there, a thread opens one in a while. Thread-safe.
class Attacker {
 public:
  Attacker(const Attack& attack, const std::vector<std::string>& addresses);
  ~Attacker();
  Work work() const;

 private:
  void Run(const std::string& address);

  const Talk talk_;
  const size_t held_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<bool> end_{false};
  std::atomic<int64_t> connections_{0};
  std::atomic<int64_t> processor_ns_{0};
  std::vector<std::thread> threads_;
};

// Owned by a test. Until it is destroyed, `threads` threads together connect to a process that closes each connection
// at once, as often in a second as in `work`, and use as much processor time.
class Imitator {
 public:
  Imitator(const Work& work, int threads);
  ~Imitator();

 private:
  void Run(std::chrono::nanoseconds interval, int64_t processor_ns);

  pid_t pid_ = -1;
  std::string address_;
  std::atomic<bool> end_{false};
  std::vector<std::thread> threads_;
};

}  // namespace cohort::testing
