// Groups for tests. The test's process has all servers and all members of a group. The servers may use any transport.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/cluster/server.h"
#include "cohort/collective/group.h"
#include "cohort/collective/testing/device_members.h"
#include "cohort/core/str_cat.h"
#include "cohort/registration.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::collective::testing {

// The longest time for which a test waits for the outcome of a call, or for a group to form.
inline constexpr auto kPatience = std::chrono::seconds(60);

// The result of one member's call.
struct Outcome {
  Status status;
  Tensor value;
};

// Calls `call`, which begins a collective. The future is ready when the collective has ended.
inline std::future<Outcome> Begin(const std::function<void(Communicator::Done)>& call) {
  auto promise = std::make_shared<std::promise<Outcome>>();
  std::future<Outcome> future = promise->get_future();
  call([promise](const Status& status, Tensor value) { promise->set_value({status, std::move(value)}); });
  return future;
}

// Waits for the outcome. If it has not come after a minute, returns the status kDeadlineExceeded.
inline Outcome Await(std::future<Outcome>& future) {
  if (future.wait_for(kPatience) != std::future_status::ready) {
    return {Status(Code::kDeadlineExceeded, "the test has waited for a minute"), {}};
  }
  return future.get();
}

// Runs work(0) .. work(count - 1), each on a thread of its own, and waits until all have ended. Returns one status for
// each: OK, or the error that it has thrown.
inline std::vector<Status> OnThreads(int count, const std::function<void(int)>& work) {
  std::vector<Status> outcomes(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  threads.reserve(outcomes.size());
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        work(i);
      } catch (...) {
        outcomes[static_cast<size_t>(i)] = Status::FromCurrentException();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// The processes, hosts and devices of a test.
struct Layout {
  std::string transport;  // "local", or a protocol of servers
  int world = 1;
  int per_process = 1;                        // members of each process (the last may have fewer)
  Algorithm algorithm = Algorithm::kAuto;     // of groups whose options name none
  int per_host = 0;                           // processes of each host (the last may have fewer); 0: one host
  std::string device_type = kHostDeviceType;  // each server has a device of this type for each of its members
};

inline std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  out << layout.transport << "_" << layout.world << "_by_" << layout.per_process;
  if (layout.per_host > 0) out << "_hosts_of_" << layout.per_host;
  if (layout.device_type != kHostDeviceType) out << "_" << layout.device_type;
  return layout.algorithm == Algorithm::kAuto ? out : out << "_" << AlgorithmName(layout.algorithm);
}

// Returns `layouts`. If this build has Gloo, also returns the layouts of `with_gloo`, with kGloo as their algorithm.
inline std::vector<Layout> WithGloo(std::vector<Layout> layouts, std::vector<Layout> with_gloo) {
  for (Layout& layout : with_gloo) {
    layout.algorithm = Algorithm::kGloo;
    if (IsBuilt(Algorithm::kGloo)) layouts.push_back(layout);
  }
  return layouts;
}

// Returns all algorithms that a program may ask for in this build, for members on the host's devices. kShared is not
// one of them, because AUTO chooses it. Nor is kNccl, which is for other devices.
inline std::vector<Algorithm> AskableAlgorithms() {
  std::vector<Algorithm> all = AllAlgorithms();
  std::erase_if(all,
                [](Algorithm one) { return !IsBuilt(one) || one == Algorithm::kShared || one == Algorithm::kNccl; });
  return all;
}

// Returns one algorithm for each engine that can serve a group of `layout`. Use it for collectives other than
// all-reduce, which have one implementation in each engine.
inline std::vector<Algorithm> OneAlgorithmPerEngine(const Layout& layout) {
  std::vector<Algorithm> all = {Algorithm::kAuto};
  if (layout.transport == "local") all.push_back(Algorithm::kRing);  // plans inside one process
  if (layout.device_type != kHostDeviceType) return all;
  if (layout.transport != "local" && IsBuilt(Algorithm::kGloo)) all.push_back(Algorithm::kGloo);
  return all;
}

// Starts and owns the servers of a layout. A "local" layout has no servers. The test owns it. The destructor stops the
// servers.
class TestCluster {
 public:
  explicit TestCluster(const Layout& layout, std::chrono::milliseconds silence_limit = std::chrono::seconds(60),
                       ServerOptions options = cohort::testing::LocalCluster::FastOptions())
      : layout_(layout) {
    if (layout.device_type == "GPU") {
      RegisterAll();
      cuda::RegisterGpusForTests();
    }
    if (layout.transport == "local") {
      if (layout.device_type != kHostDeviceType) loose_.emplace(layout.device_type, layout.world);
      return;
    }
    options.protocol = layout.transport;
    options.silence_limit = silence_limit;
    options.config.device_count[layout.device_type] = layout.per_process;
    processes_ = (layout.world + layout.per_process - 1) / layout.per_process;
    servers_.emplace(std::map<std::string, int>{{"worker", processes_}}, options);
  }

  std::vector<DeviceName> Members() const {
    std::vector<DeviceName> members;
    for (int rank = 0; rank < layout_.world; ++rank) {
      const int each = servers_ ? layout_.per_process : layout_.world;
      members.push_back(DeviceName::Parse(
          StrCat("/job:worker/task:", rank / each, "/device:", layout_.device_type, ":", rank % each)));
    }
    return members;
  }
  int processes() const { return processes_; }  // 0 for "local"
  Algorithm algorithm() const { return layout_.algorithm; }
  // Returns what a member of rank `rank` is for the test: `member`, or one that brings its tensors in device memory.
  std::shared_ptr<Communicator> OnDevice(std::shared_ptr<Communicator> member) {
    if (!loose_) return member;
    Device& device = *loose_->devices()[static_cast<size_t>(member->rank())];
    return std::make_shared<DeviceMember>(std::move(member), device);
  }
  // Returns the host name of a process; "" means the machine's own name.
  std::string HostOf(int process) const {
    return layout_.per_host > 0 ? StrCat("host ", process / layout_.per_host) : "";
  }
  Server& server(int i) { return servers_->server("worker", i); }
  void Stop(int i) { servers_->Stop("worker", i); }
  void Restart(int i) { servers_->Restart("worker", i); }  // a new process of the same task

 private:
  const Layout layout_;
  int processes_ = 0;
  std::optional<cohort::testing::LocalCluster> servers_;
  std::optional<LooseDevices> loose_;
};

// Joins the group of all members, and owns the Group of each process. Before a process joins, `adjust` may change its
// options. `adjust` is called on one thread for each process, at the same time; for a "local" layout it is not called.
// If a process cannot join, it has no Group, and its error is in `errors`. The destructor leaves the group. Not
// thread-safe.
class TestGroup {
 public:
  using Adjust = std::function<void(int process, GroupOptions&)>;

  TestGroup(TestCluster& cluster, GroupOptions options, const Adjust& adjust = nullptr) {
    options.members = cluster.Members();
    if (options.algorithm == Algorithm::kAuto) options.algorithm = cluster.algorithm();
    if (cluster.processes() == 0) {
      groups_.push_back(MakeLocalGroup(options));
    } else {
      groups_.resize(static_cast<size_t>(cluster.processes()));
      errors_.resize(groups_.size());
      std::vector<std::thread> threads;
      threads.reserve(groups_.size());
      for (int i = 0; i < cluster.processes(); ++i) {
        threads.emplace_back([this, &cluster, &adjust, i, own = options]() mutable {
          own.host = cluster.HostOf(i);
          if (adjust) adjust(i, own);
          const auto place = static_cast<size_t>(i);
          try {
            groups_[place] = JoinGroup(cluster.server(i), own, std::chrono::steady_clock::now() + kPatience);
          } catch (...) {
            errors_[place] = Status::FromCurrentException();
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    for (const auto& group : groups_) {
      for (size_t i = 0; group != nullptr && i < group->local_ranks().size(); ++i) {
        members_.push_back(cluster.OnDevice(group->communicator(static_cast<int>(i))));
      }
    }
  }

  // Returns whether all processes have joined. If one has not, also fails the test with its error.
  bool joined() const {
    for (const Status& error : errors_) {
      if (!error.ok()) ADD_FAILURE() << error.ToString();
      if (!error.ok()) return false;
    }
    return true;
  }
  const std::vector<Status>& errors() const { return errors_; }
  const std::vector<std::shared_ptr<Communicator>>& members() const { return members_; }  // by rank
  Group& group(int process) { return *groups_[static_cast<size_t>(process)]; }
  // Makes the process leave.
  void Drop(int process) { groups_[static_cast<size_t>(process)].reset(); }

  // Begins `call` for all members, one after another on this thread. Waits for all outcomes.
  std::vector<Outcome> Run(const std::function<void(Communicator&, Communicator::Done)>& call) {
    std::vector<std::future<Outcome>> futures;
    for (const auto& member : members_) {
      futures.push_back(Begin([&](Communicator::Done done) { call(*member, std::move(done)); }));
    }
    std::vector<Outcome> outcomes;
    outcomes.reserve(futures.size());
    for (auto& future : futures) outcomes.push_back(Await(future));
    return outcomes;
  }

 private:
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Status> errors_;
  std::vector<std::shared_ptr<Communicator>> members_;
};

}  // namespace cohort::collective::testing
