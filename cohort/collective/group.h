// Group: devices, of one process or of several, that run collectives together. Each process of a group has one Group
// object, and a Communicator for each of its members in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/messages.h"
#include "cohort/device/communicator.h"
#include "cohort/graph/device_name.h"

namespace cohort {

class ClusterNode;
class ResourceManager;
class Server;

namespace collective {

struct GroupOptions {
  int64_t key = 1;         // one program may have several groups
  int64_t generation = 1;  // new at any change of members; messages of another generation are not taken
  // Full names, "/job:worker/replica:0/task:1/device:CPU:0", by rank; equal at all members. Missing parts are replica
  // 0, task 0 and CPU 0.
  std::vector<DeviceName> members;
  // The collectives that will run, in a fixed order; compared when the group is joined. What it lacks is compared when
  // it runs.
  std::vector<ScheduleEntry> schedule;
  // Of all-reduces. kGloo: of all collectives between processes; where all members are of one process Gloo does
  // nothing. The same at all members.
  Algorithm algorithm = Algorithm::kAuto;
  // Names the host of this process: processes that name the same one are of one host for kHierarchical and kAuto. "":
  // by the machine and its network (host_identity.h).
  std::string host;
  int64_t segment_bytes = 0;             // of one message at most; 0: by what was measured
  std::chrono::milliseconds timeout{0};  // of each collective; 0: none
  // A collective that takes longer is told in the log, with whom it waits for, and again each time that its age has
  // doubled; 0: never.
  std::chrono::milliseconds late_interval{10000};
};

class GroupCore;

// Thread-safe.
class Group {
 public:
  explicit Group(std::shared_ptr<GroupCore> core);
  // Leaves the group: at other members what is under way, or begins later, fails.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int size() const;
  // Ranks of this process.
  const std::vector<int>& local_ranks() const;
  // Of the n-th local rank; lives as long as the caller holds it, but fails all calls once the group is gone.
  std::shared_ptr<Communicator> communicator(int local = 0) const;
  // Why the group has failed; ok while it has not.
  Status status() const;
  // Lets the kernels on this process's members find their communicators (CommunicatorSlot). The latest group of a key
  // counts. `resources` outlives the group.
  void Publish(ResourceManager& resources);

 private:
  std::shared_ptr<GroupCore> core_;
};

// Joins the group as the members on `node`'s task; returns when all processes have joined. Says every
// missing_interval (ServerOptions) who is missing. Throws DeadlineExceededError that names who has not come,
// UnavailableError that names who was there before, is lost, and has not been heard of for 3 s (in the first
// generation; a later one waits for members that are started again), InvalidArgumentError where no member is on this
// task or members do not agree on who they are or on the schedule (and names the first difference), AlreadyExistsError
// for a group that this process is in, AbortedError where a member is in a later generation, and what connecting
// throws. With kGloo also UnimplementedError where it is not built, UnavailableError where it cannot listen or connect
// (`deadline` or not, it tries for 30 s).
std::unique_ptr<Group> JoinGroup(ClusterNode& node, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline);
// The same for a server that was started in this process.
std::unique_ptr<Group> JoinGroup(const Server& server, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline);
// Fails the groups of this key that the server's process is in, at all members and for good. False where there is none.
bool FailGroups(const Server& server, int64_t key, const Status& why);
// A group whose members are all devices of this process; needs no cluster.
std::unique_ptr<Group> MakeLocalGroup(const GroupOptions& options);

// Where a kernel finds the communicator of its device: in the ResourceManager, container kCommunicatorContainer, under
// CommunicatorName(key, device). Thread-safe.
class CommunicatorSlot final : public Resource {
 public:
  std::string Describe() const override { return "a place for a communicator"; }
  // Null where no group was joined.
  std::shared_ptr<Communicator> Get() const;
  void Set(std::shared_ptr<Communicator> communicator);

 private:
  mutable Mutex mu_;
  std::shared_ptr<Communicator> communicator_ GUARDED_BY(mu_);
};

}  // namespace collective
}  // namespace cohort
