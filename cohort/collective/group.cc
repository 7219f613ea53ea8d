#include "cohort/collective/group.h"

#include <algorithm>
#include <numeric>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cluster/status/late_task.h"
#include "cohort/collective/group_core.h"
#include "cohort/collective/group_directory.h"
#include "cohort/collective/kernel_group.h"
#include "cohort/collective/member_communicator.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/local_task.h"

namespace cohort::collective {
namespace {

// The time limit of one attempt to reach a process that listens but does not answer. It doubles each time. During an
// attempt this process does not handle messages of other processes.
constexpr std::chrono::seconds kFirstAttempt{1};
constexpr std::chrono::seconds kLongestAttempt{4};

}  // namespace

Group::Group(std::shared_ptr<GroupCore> core) : core_(std::move(core)) { core_->Start(); }

Group::~Group() { core_->Close(Status(Code::kCancelled, "[collective] this member has left the group")); }

int Group::size() const { return core_->members().size(); }

const std::vector<int>& Group::local_ranks() const { return core_->members().local_ranks(); }

std::shared_ptr<Communicator> Group::communicator(int local) const {
  if (local < 0 || static_cast<size_t>(local) >= local_ranks().size()) {
    throw OutOfRangeError(
        StrCat("[collective] expected a local member in [0,", local_ranks().size(), "); got ", local));
  }
  return core_->communicator(static_cast<size_t>(local));
}

Status Group::status() const {
  const Status status = core_->status();
  if (!status.ok()) core_->OnProgramTold();
  return status;
}

void Group::Publish(ResourceManager& resources) {
  const MemberList& members = core_->members();
  const auto kernel_group = KernelGroup::Of(resources, core_->options().key);
  for (size_t local = 0; local < members.local_ranks().size(); ++local) {
    kernel_group->SetCommunicator(members.devices()[static_cast<size_t>(members.local_ranks()[local])],
                                  core_->communicator(local));
  }
}

namespace {

bool Runs(ClusterNode& node, const std::string& task) {
  try {
    Status why_not;
    const auto deadline = std::chrono::steady_clock::now() + kFirstAttempt;
    return node.peers().TryReach(DeviceName::Parse(task), deadline, &why_not) != nullptr;
  } catch (...) {
    return false;  // such as a process of another version
  }
}

// Returns what a HangWatch asks the node. The node may end meanwhile.
HangWatch::Node QuestionsFor(ClusterNode& node) {
  const std::weak_ptr<ClusterNode> weak = node.weak_from_this();
  HangWatch::Node questions;
  questions.describe_hang = [weak](const std::string& task) {
    const auto here = weak.lock();
    return here == nullptr ? "" : DescribeHang(*here, task);
  };
  questions.runs = [weak](const std::string& task) {
    const auto here = weak.lock();
    return here != nullptr && Runs(*here, task);
  };
  questions.training_done = [weak] {
    const auto here = weak.lock();
    return here == nullptr || here->chief().training_done();
  };
  return questions;
}

// `held_by_program`: the caller is the program, and not a kernel.
std::unique_ptr<Group> Join(ClusterNode& node, const GroupOptions& options,
                            std::chrono::steady_clock::time_point deadline, bool held_by_program) {
  GroupDirectory* directory = GroupDirectory::Of(node);
  if (directory == nullptr) {
    throw FailedPreconditionError("[collective] the server was made before RegisterAll() (cohort/registration.h)");
  }
  const auto core =
      std::make_shared<GroupCore>(options, node.task().ToString(), ParseAddress(node.identity().address).host,
                                  node.local_task() == nullptr ? nullptr : node.local_task()->device_set(),
                                  node.options().only_protected_collectives);
  auto group = std::make_unique<Group>(core);  // leaves the group if something below throws
  core->membership().SetLastHeardLookup([&node](const std::string& task) { return node.GoneSince(task); });
  core->SetQuestions([&node](const std::string& task) { return DescribeLateTask(node, task); }, QuestionsFor(node),
                     held_by_program);
  directory->Add(core);
  // Of two processes, the one with the larger number connects, and the other one answers. If a process cannot be
  // reached, tries the others too: they may know that the group has failed.
  const MemberList& members = core->members();
  std::vector<int> earlier(static_cast<size_t>(members.own_process()));
  std::iota(earlier.begin(), earlier.end(), 0);
  auto attempt = kFirstAttempt;
  const auto is_right = [&](const std::shared_ptr<Connection>& connection) {
    const Status wrong = directory->CheckProcess(core->membership().ref(), connection->peer());
    if (!wrong.ok()) core->Fail(wrong);
    return wrong.ok();
  };
  const auto reach = [&] {
    std::erase_if(earlier, [&](int process) {
      if (!core->status().ok()) return false;
      const auto task = DeviceName::Parse(members.tasks()[static_cast<size_t>(process)]);
      const auto connection = node.TryReach(task, std::min(deadline, std::chrono::steady_clock::now() + attempt));
      if (connection == nullptr || !is_right(connection)) return false;
      core->SendJoin(process, connection);
      return true;
    });
    // A process that connects to this one sends its joins in its own order, perhaps none of this group.
    for (size_t later = static_cast<size_t>(members.own_process()) + 1; later < members.tasks().size(); ++later) {
      const auto connection = node.peers().Find(members.tasks()[later]);
      if (connection != nullptr && !is_right(connection)) break;
    }
    attempt = std::min(2 * attempt, kLongestAttempt);
    return earlier.empty();
  };
  core->AwaitFormed(reach, deadline, node.missing_interval());
  return group;
}

}  // namespace

std::unique_ptr<Group> JoinGroup(ClusterNode& node, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline) {
  return Join(node, options, deadline, false);
}

std::unique_ptr<Group> JoinGroup(const Server& server, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline) {
  const auto node = ServerDirectory::Global().Find(server.Target());
  if (node == nullptr) throw FailedPreconditionError(StrCat("[collective] ", server.Target(), " was stopped"));
  return Join(*node, options, deadline, true);
}

bool FailGroups(const Server& server, int64_t key, const Status& why) {
  const auto node = ServerDirectory::Global().Find(server.Target());
  GroupDirectory* directory = node == nullptr ? nullptr : GroupDirectory::Of(*node);
  return directory != nullptr && directory->Fail(key, why);
}

std::unique_ptr<Group> MakeLocalGroup(const GroupOptions& options) {
  return std::make_unique<Group>(std::make_shared<GroupCore>(options, "", ""));
}

}  // namespace cohort::collective
