// GroupDirectory: the groups that one cluster node has joined. Internal to collective/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/cluster/node_service.h"
#include "cohort/collective/group.h"
#include "cohort/collective/messages.h"
#include "cohort/core/mutex.h"
#include "cohort/device/resource.h"

namespace cohort::collective {

class GroupCore;
class GroupFailures;

// Delivers the messages of groups to their GroupCores. Answers a join with an error if the group has failed here, or if
// this process is in a later generation of the group. The ClusterNode owns it; it refers to the groups weakly.
// Thread-safe; messages come on network threads. After OnStop no group can be added.
class GroupDirectory final : public NodeService {
 public:
  explicit GroupDirectory(ClusterNode& node);
  // Returns the directory that `node` owns, or null if the node was made before RegisterCollectiveService.
  static GroupDirectory* Of(ClusterNode& node);

  // Adds `core`. From now on `core` gets the messages of its group, also the joins that came earlier. Fails earlier
  // generations of the group; if a peer has joined a later one, fails `core`. Throws AlreadyExistsError if this process
  // is already in the group, and the `why` of OnStop if the node has stopped.
  void Add(const std::shared_ptr<GroupCore>& core);
  // Fails the groups with this key, with `why`. Returns false if there is none.
  bool Fail(int64_t key, const Status& why);

  // Returns an error if `peer` is not the process of its task that generation 1 of the group `ref` needs. It is not if
  // this process still has groups that were formed with an earlier process of the task, and none that was formed with
  // `peer`. Then `peer` begins the program anew and never comes to the group. A later generation takes any process.
  Status CheckProcess(const GroupRef& ref, const TaskIdentity& peer) COHORT_EXCLUDES(mu_);

  // Returns whether the task with these resources has a cluster node, through which its kernels can join groups.
  static bool CanJoin(ResourceManager& resources);
  // Joins a group on a new thread, with the node's connect_timeout as the limit. Calls `joined` once, on that thread,
  // with the group or with the error that JoinGroup throws. If the node has stopped, calls it on this thread with
  // kUnavailable. Requires: CanJoin returns true.
  using Joined = std::function<void(const Status&, std::unique_ptr<Group>)>;
  static void JoinAsync(ResourceManager& resources, GroupOptions options, Joined joined);

  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) override;
  void AppendWaits(std::vector<CollectiveWait>* waits) override;
  // Leaves all groups. Waits for the threads of JoinAsync, whose joins fail because the node stops.
  void OnStop(const Status& why) override;

 private:
  class Joiner;  // the threads of JoinAsync
  struct EarlyJoin {
    std::shared_ptr<Connection> connection;
    JoinMessage join;
  };

  void OnJoin(const std::shared_ptr<Connection>& connection, JoinMessage join);
  std::shared_ptr<GroupCore> Find(const GroupRef& ref) COHORT_EXCLUDES(mu_);
  std::vector<std::shared_ptr<GroupCore>> All() COHORT_EXCLUDES(mu_);
  // Fails the groups that have the key of `ref` and an earlier generation. The error says that the task `who` is in the
  // generation of `ref`.
  void FailEarlierGenerations(const GroupRef& ref, const std::string& who) COHORT_EXCLUDES(mu_);
  // Drops the early joins that came over `connection`: those of the group `ref`, or all if `ref` is null.
  void ForgetEarlyJoins(const std::shared_ptr<Connection>& connection, const GroupRef* ref) COHORT_EXCLUDES(mu_);

  const std::shared_ptr<Joiner> joiner_;  // null if the node runs no task
  const std::shared_ptr<GroupFailures> failures_;
  Mutex mu_;
  std::map<GroupRef, std::weak_ptr<GroupCore>> groups_ COHORT_GUARDED_BY(mu_);
  std::vector<EarlyJoin> early_joins_ COHORT_GUARDED_BY(mu_);  // of groups that this process has not joined yet
  Status stopped_ COHORT_GUARDED_BY(mu_);                      // why no group can be joined any more
};

// Gives every ClusterNode that is made afterwards a GroupDirectory.
void RegisterCollectiveService();

}  // namespace cohort::collective
