// HeldResources: counts the threads and the descriptors of the process. Tests use it to see that nothing was left
// behind.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "cohort/core/str_cat.h"

namespace cohort::testing {

// For each kind of thread or descriptor: how many there are.
using Kinds = std::map<std::string, int>;

// Counts the threads of the process by name. Leaves out the threads of gRPC's pools, because the sizes of the pools
// depend on the load.
inline Kinds CountThreads() {
  static const std::set<std::string> pools{"default-executo", "event_engine", "grpc_global_tim", "resolver-execut",
                                           "timer_manager"};
  Kinds kinds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm") >> std::ws, name);
    if (!name.empty() && pools.count(name) == 0) ++kinds[name];  // "": the thread has just ended
  }
  return kinds;
}

// Counts the descriptors of the process by kind: "socket", "anon_inode" (event and epoll descriptors), or a path.
inline Kinds CountDescriptors() {
  Kinds kinds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (!error && target.rfind("/proc/", 0) != 0) ++kinds[target.substr(0, target.find(":["))];
  }
  return kinds;
}

// The threads and descriptors of the process at the time when the object was made.
struct HeldResources {
  Kinds threads = CountThreads();
  Kinds descriptors = CountDescriptors();

  // Returns the counts that were taken before any test ran.
  static const HeldResources& AtStart() {
    static const HeldResources held;
    return held;
  }
};
inline const bool kStartIsCounted = !HeldResources::AtStart().threads.empty();  // counted before any test runs

// Returns a text with the kinds of which `now` has more than `before`; "" if there are none.
inline std::string AddedKinds(const Kinds& before, const Kinds& now) {
  std::string added;
  for (const auto& [kind, count] : now) {
    const auto old = before.find(kind);
    const int had = old == before.end() ? 0 : old->second;
    if (count > had) added += StrCat(" ", kind, " (", count, ", before ", had, ")");
  }
  return added;
}

// Waits until the process has, of each kind, at most as many threads and descriptors as in `before`. Fails the test if
// this takes longer than 30 s. (It waits because the end of a connection takes some time on both sides.)
inline void ExpectNothingAdded(const HeldResources& before) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::string threads, descriptors;
  do {
    const HeldResources now;
    threads = AddedKinds(before.threads, now.threads);
    descriptors = AddedKinds(before.descriptors, now.descriptors);
    if (threads.empty() && descriptors.empty()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } while (std::chrono::steady_clock::now() < deadline);
  ADD_FAILURE() << "threads stay:" << threads << "; descriptors stay:" << descriptors;
}

}  // namespace cohort::testing
