// Group: devices, of one process or of several, that run collectives together. Each process of a group has one Group
// object, and a Communicator for each of its members in it.
//
// The states of a group and of its processes have these names, in code, errors and documents:
// - A process has *joined* when its peers have its join message. The group has *formed* when all processes have joined.
// - A process *leaves* when its Group is destroyed or its server stops. Unless the group has failed, it sends its peers
//   a leave message. At a peer it has *left* when that message has come. Everything that the process sent before has
//   then come, too.
// - A process is *lost* if its connection closes and it has not left.
// - A process is *gone* if it has left or is lost. It will send nothing more. If a process that has joined is lost, the
//   group fails. If a process has left, the group fails only if a peer still waits for one of its messages.
// - The group has *failed* at a process if a collective cannot be completed. All its calls fail from then on. A process
//   that fails sends the cause to its peers. They fail with the same cause, unless they have failed before. A group
//   never recovers; its members join a later generation.
// - A group is *closed* in a process when its Group is destroyed. Its threads then end.
// - A *farewell* is the answer to a process that leaves. It says that no call in which that process takes part runs at
//   the peer any more. Only groups with connections of their own (Gloo) wait for farewells before they close these
//   connections, for at most 5 s.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
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

// The members of a group, and how it runs collectives.
struct GroupOptions {
  int64_t key = 1;  // distinguishes the groups of a program
  // Must be larger each time that the members join again, after a failure or with other members. A process that joins
  // an earlier generation than one of its peers gets AbortedError.
  int64_t generation = 1;
  // The devices by rank, equal at all members: "/job:worker/replica:0/task:1/device:CPU:0". Missing parts are replica
  // 0, task 0 and CPU 0.
  std::vector<DeviceName> members;
  // The collectives that will run, in a fixed order. Members compare them when they join. A collective that is not
  // listed is compared when it runs.
  std::vector<ScheduleEntry> schedule;
  // The algorithm of all-reduces; it must be equal at all members. With kGloo, Gloo runs all collectives if the members
  // are in several processes.
  Algorithm algorithm = Algorithm::kAuto;
  // The name of this process's host. Processes with equal names are on one host, which kHierarchical and kAuto use. "":
  // derived from the machine and its network (cluster/host_identity.h).
  std::string host;
  int64_t segment_bytes = 0;  // the largest message; 0: 512 KiB
  // If a collective takes longer than this, the group fails with DeadlineExceededError. 0: no limit.
  std::chrono::milliseconds timeout{0};
  // If a collective makes no progress for this time (no member begins it, and no message of it comes), the group fails
  // with DeadlineExceededError. The error says what the member that it waits for does, and where its threads are. While
  // Gloo moves bytes, Gloo's own limit of a minute holds instead. The limit holds also for a program that calls nothing
  // after a group of it has failed (docs/reliability.md, "A task that hangs"). 0: no limit. If not set: as many seconds
  // as COHORT_PROGRESS_LIMIT says, or else 10 minutes.
  std::optional<std::chrono::milliseconds> progress_limit;
  // A collective that takes longer than this is logged with the members that it waits for. It is logged again each time
  // that its age has doubled. 0: nothing is logged.
  std::chrono::milliseconds late_interval{10000};
};

class GroupCore;

// One process's handle to a group. The caller of JoinGroup or MakeLocalGroup owns it. Thread-safe. The destructor
// leaves the group: unfinished collectives fail here, and the group fails at peers that wait for this process. The
// destructor waits until the group's threads have ended (unless it runs on one of them), and with Gloo up to 5 s for
// farewells.
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
  // Returns the communicator of local_ranks()[local]. The caller may keep it after the group is destroyed; its calls
  // then fail. Throws OutOfRangeError if there is no such member.
  std::shared_ptr<Communicator> communicator(int local = 0) const;
  // Returns why the group has failed, or ok if it has not.
  Status status() const;
  // Publishes the communicators of this process's members to the kernels of its task. If a later group with the same
  // key is published, it replaces this one. The communicators stay published after this object is destroyed, and their
  // calls then fail. Requires: `resources` are the task's.
  void Publish(ResourceManager& resources);

 private:
  std::shared_ptr<GroupCore> core_;
};

// Joins the group with the members on `node`'s task. Waits until all processes have joined, and logs the missing
// processes every missing_interval (ServerOptions). Throws
// - DeadlineExceededError that names the processes that have not joined by `deadline`, or a process that says that it
//   hangs, has not joined after progress_limit, and is not ended by a launcher;
// - UnavailableError that names a process which was connected, is lost, and was not heard from for 3 s. This is so only
//   in generation 1: a later generation waits until `deadline`, because the process may be restarting;
// - InvalidArgumentError if no member is on this task, if a device is a member twice, or if processes differ in
//   members, algorithm or schedule; it names the first difference;
// - AlreadyExistsError if this process is already in the group;
// - AbortedError if a member is in a later generation, or has joined this one before and was restarted. In generation 1
//   also if this process still has groups that were formed with an earlier process of a member's task, and none with
//   the one that runs now;
// - FailedPreconditionError if the server was made before RegisterAll();
// - UnimplementedError if this build does not have the library of the algorithm;
// - PermissionDeniedError if the server has TLS, the algorithm is kGloo, whose connections are not encrypted, and
//   ServerOptions::allow_insecure_collectives is false;
// - UnavailableError if Gloo cannot listen or connect; it tries for 30 s, whatever `deadline` is;
// - the errors of connecting to the cluster's tasks;
// - the error with which the group fails before it has formed, such as UnavailableError if a process that has joined is
//   lost, or the error that is given to FailGroups.
std::unique_ptr<Group> JoinGroup(ClusterNode& node, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline);
// Does the same for a server of this process. Throws FailedPreconditionError also if the server is not started or was
// stopped.
std::unique_ptr<Group> JoinGroup(const Server& server, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline);
// Fails all groups with this key that the server has joined, with `why`, at all members. Returns false if the server
// has joined no such group. Throws FailedPreconditionError if the server is not started.
bool FailGroups(const Server& server, int64_t key, const Status& why);
// Returns a group whose members are all devices of this process. It needs no cluster. Throws InvalidArgumentError if
// there is no member or if a device is a member twice, and FailedPreconditionError before RegisterAll().
std::unique_ptr<Group> MakeLocalGroup(const GroupOptions& options);

// Returns whether this build can run groups by `algorithm`. It is false only for an algorithm whose library is absent.
bool IsBuilt(Algorithm algorithm);

}  // namespace collective
}  // namespace cohort
