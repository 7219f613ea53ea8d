// Group: devices, of one process or of several, that run collectives together. Each process of a group has one Group
// object, and a Communicator for each of its members in it.
//
// The states of a group and of its processes have these names, in code, errors and documents:
//   - A process has *joined* when its peers have its join message. The group has *formed* when all processes have
//   joined.
//   - A process *leaves* when its Group is destroyed or its server stops; it tells its peers so. At a peer it has
//   *left*
//     when that message has come, and with it everything that the process sent before.
//   - A process is *lost* if its connection closes and it has not left.
//   - A process is *gone* if it has left or is lost: nothing more will come from it. A peer that still waits for
//     something from it fails the group.
//   - The group has *failed* at a process if a collective cannot be completed: all its calls fail, now and later. Every
//     failure is told to all peers, so all of them name the same cause. A group never recovers; its members join a
//     later generation.
//   - A group is *closed* in a process when its Group is destroyed: its threads end.
//   - A *farewell* is the answer to a process that leaves: no call runs at the peer any more in which that process
//   takes
//     part. Only groups with connections of their own (Gloo) send and await it, before they close these connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/algorithm.h"
#include "cohort/collective/schedule.h"
#include "cohort/device/communicator.h"
#include "cohort/graph/device_name.h"

namespace cohort {

class ClusterNode;
class ResourceManager;
class Server;

namespace collective {

struct GroupOptions {
  int64_t key = 1;         // tells the groups of a program apart
  int64_t generation = 1;  // has to be larger after each change of members; messages of other generations are refused
  // The devices by rank, the same at all members: "/job:worker/replica:0/task:1/device:CPU:0". Missing parts are
  // replica 0, task 0 and CPU 0.
  std::vector<DeviceName> members;
  // The collectives that will run, in a fixed order. Members compare them when they join. A collective that is not
  // listed is compared when it runs.
  std::vector<ScheduleEntry> schedule;
  // The algorithm of all-reduces. kGloo: Gloo runs all collectives, if the members are of several processes. It has to
  // be the same at all members.
  Algorithm algorithm = Algorithm::kAuto;
  // Names the host of this process. Processes with equal names are of one host, which kHierarchical and kAuto take into
  // account. "": by the machine and its network (cluster/host_identity.h).
  std::string host;
  int64_t segment_bytes = 0;             // the largest message; 0: the size that was measured to be best
  std::chrono::milliseconds timeout{0};  // of each collective; 0: none
  // A collective that takes longer is reported in the log with the member that it waits for, and reported again each
  // time that its age has doubled. 0: never.
  std::chrono::milliseconds late_interval{10000};
};

class GroupCore;

// One process's handle to a group. The caller owns it. Thread-safe. Its destructor leaves the group: what has not ended
// fails here, and peers that wait for this process fail.
class Group {
 public:
  // Use JoinGroup or MakeLocalGroup.
  explicit Group(std::shared_ptr<GroupCore> core);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int size() const;
  // Returns the ranks of this process, in order.
  const std::vector<int>& local_ranks() const;
  // Returns the communicator of local_ranks()[local]. The caller may hold it longer than the group; its calls then
  // fail. Throws OutOfRangeError if there is no such member.
  std::shared_ptr<Communicator> communicator(int local = 0) const;
  // Returns why the group has failed, ok if it has not.
  Status status() const;
  // Makes the kernels of this task find the communicators of its members. A later group of the same key replaces this
  // one. Requires: `resources` are the task's, and outlive the group.
  void Publish(ResourceManager& resources);

 private:
  std::shared_ptr<GroupCore> core_;
};

// Joins the group with the members on `node`'s task. Waits until all processes have joined; logs every missing_interval
// (ServerOptions) which processes are missing. Throws
//   - DeadlineExceededError that names the processes that have not joined by `deadline`;
//   - UnavailableError that names a process which was connected to this one, is lost, and was not heard from for 3 s.
//     Only in generation 1: a later generation waits for processes that are being restarted until `deadline`;
//   - InvalidArgumentError if no member is on this task, if a device is a member twice, or if processes do not agree on
//     members, algorithm or schedule; it names the first difference;
//   - AlreadyExistsError if this process is in the group;
//   - AbortedError if a member is in a later generation, or has joined this one before and was restarted;
//   - FailedPreconditionError if the server was made before RegisterAll();
//   - with an algorithm that needs another library, UnimplementedError if this build does not have it; with kGloo also
//     UnavailableError if Gloo cannot listen or connect (it tries for 30 s, whatever `deadline` is);
//   - what connecting to the cluster's tasks throws.
std::unique_ptr<Group> JoinGroup(ClusterNode& node, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline);
// The same for a server that was started in this process. Throws FailedPreconditionError if it was stopped.
std::unique_ptr<Group> JoinGroup(const Server& server, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline);
// Fails all groups of this key in which the server's process is, at all members. Returns false if there is none.
bool FailGroups(const Server& server, int64_t key, const Status& why);
// Returns a group whose members are all devices of this process. It needs no cluster. Throws InvalidArgumentError as
// JoinGroup does.
std::unique_ptr<Group> MakeLocalGroup(const GroupOptions& options);

// Returns whether this build can run groups by `algorithm`. Only algorithms of other libraries may be absent.
bool IsBuilt(Algorithm algorithm);

}  // namespace collective
}  // namespace cohort
