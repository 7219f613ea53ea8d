// GroupRegistry: the groups of one ClusterNode; hands them the messages of their members. Internal to collective/.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/cluster/node_service.h"
#include "cohort/collective/messages.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

class GroupCore;
class GroupJoiner;

// Why groups of this process have failed: those who join later are told. Thread-safe.
class FailedGroups {
 public:
  void Add(const GroupRef& ref, const Status& why);
  void Forget(const GroupRef& ref);
  // ok where it has not failed.
  Status Find(const GroupRef& ref) const;

 private:
  mutable Mutex mu_;
  std::map<GroupRef, Status> failed_ GUARDED_BY(mu_);  // the latest generations
};

// Thread-safe.
class GroupRegistry final : public NodeService {
 public:
  explicit GroupRegistry(ClusterNode& node);
  // Null where the module is not registered.
  static GroupRegistry* Of(ClusterNode& node);

  // From now on the group gets its messages, and those that have come before it; earlier generations of it fail. Throws
  // AlreadyExistsError for one that is there.
  void Add(const std::shared_ptr<GroupCore>& core);
  // Fails the groups of this key. False where there is none.
  bool Fail(int64_t key, const Status& why);

  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) override;
  void OnStop(const Status& why) override;

 private:
  struct Early {
    std::shared_ptr<Connection> connection;
    JoinMessage join;
  };

  void OnJoin(const std::shared_ptr<Connection>& connection, JoinMessage join);
  std::shared_ptr<GroupCore> Find(const GroupRef& ref) EXCLUDES(mu_);
  std::vector<std::shared_ptr<GroupCore>> All() EXCLUDES(mu_);
  // Fails the generations before `ref`, of which `who` is a member.
  void EndEarlier(const GroupRef& ref, const std::string& who) EXCLUDES(mu_);
  void ForgetEarly(const std::shared_ptr<Connection>& connection, const GroupRef* ref) EXCLUDES(mu_);

  const std::shared_ptr<GroupJoiner> joiner_;  // null where the node runs no task
  const std::shared_ptr<FailedGroups> failed_ = std::make_shared<FailedGroups>();
  Mutex mu_;
  std::map<GroupRef, std::weak_ptr<GroupCore>> groups_ GUARDED_BY(mu_);
  std::vector<Early> early_ GUARDED_BY(mu_);  // joins of groups that are not there yet; few a connection
  Status stopped_ GUARDED_BY(mu_);            // why no group can be joined any more
};

// Makes every ClusterNode that is made afterwards have one.
void RegisterCollectiveService();

}  // namespace cohort::collective
