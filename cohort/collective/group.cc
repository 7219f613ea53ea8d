#include "cohort/collective/group.h"

#include <algorithm>
#include <numeric>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/collective/group_core.h"
#include "cohort/collective/group_registry.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// Of one attempt to reach a process that listens and does not answer: twice as long each time. Meanwhile nobody hears
// what the others say.
constexpr std::chrono::seconds kFirstAttempt{1};
constexpr std::chrono::seconds kLongestAttempt{4};

}  // namespace

Group::Group(std::shared_ptr<GroupCore> core) : core_(std::move(core)) { core_->StartWatching(); }

Group::~Group() { core_->Close(Status(Code::kCancelled, "[collective] this member has left the group")); }

int Group::size() const { return core_->size(); }

const std::vector<int>& Group::local_ranks() const { return core_->local_ranks(); }

std::shared_ptr<Communicator> Group::communicator(int local) const {
  if (local < 0 || static_cast<size_t>(local) >= core_->local_ranks().size()) {
    throw OutOfRangeError(
        StrCat("[collective] expected a local member in [0,", core_->local_ranks().size(), "); got ", local));
  }
  return MakeCommunicator(core_, static_cast<size_t>(local));
}

Status Group::status() const { return core_->status(); }

void Group::Publish(ResourceManager& resources) {
  for (size_t local = 0; local < core_->local_ranks().size(); ++local) {
    const std::string& device = core_->device(core_->local_ranks()[local]);
    resources
        .LookupOrCreate<CommunicatorSlot>(kCommunicatorContainer, CommunicatorName(core_->options().key, device),
                                          [] { return std::make_shared<CommunicatorSlot>(); })
        ->Set(MakeCommunicator(core_, local));
  }
}

std::shared_ptr<Communicator> CommunicatorSlot::Get() const {
  MutexLock lock(mu_);
  return communicator_;
}

void CommunicatorSlot::Set(std::shared_ptr<Communicator> communicator) {
  MutexLock lock(mu_);
  communicator_ = std::move(communicator);
}

std::unique_ptr<Group> JoinGroup(ClusterNode& node, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline) {
  GroupRegistry* registry = GroupRegistry::Of(node);
  if (registry == nullptr) {
    throw FailedPreconditionError("[collective] the server was made before RegisterAll() (cohort/registration.h)");
  }
  const auto core = std::make_shared<GroupCore>(options, node.task().ToString());
  core->OpenGloo(ParseAddress(node.identity().address).host);
  auto group = std::make_unique<Group>(core);  // leaves again where something throws
  core->KnowGone([&node](const std::string& task) { return node.GoneSince(task); });
  registry->Add(core);
  // The later of two processes connects to the earlier one, which answers. One that cannot be reached keeps nobody from
  // the others, who may know that the group has failed.
  std::vector<int> earlier(static_cast<size_t>(core->own_process()));
  std::iota(earlier.begin(), earlier.end(), 0);
  auto attempt = kFirstAttempt;
  const auto reach = [&] {
    std::erase_if(earlier, [&](int process) {
      if (!core->status().ok()) return false;
      const auto task = DeviceName::Parse(core->tasks()[static_cast<size_t>(process)]);
      const auto connection = node.TryReach(task, std::min(deadline, std::chrono::steady_clock::now() + attempt));
      if (connection != nullptr) core->SendJoin(process, connection);
      return connection != nullptr;
    });
    attempt = std::min(2 * attempt, kLongestAttempt);
    return earlier.empty();
  };
  core->AwaitAll(reach, deadline, node.missing_interval());
  core->ConnectGloo();
  return group;
}

std::unique_ptr<Group> JoinGroup(const Server& server, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline) {
  const auto node = ServerDirectory::Global().Find(server.Target());
  if (node == nullptr) throw FailedPreconditionError(StrCat("[collective] ", server.Target(), " was stopped"));
  return JoinGroup(*node, options, deadline);
}

bool FailGroups(const Server& server, int64_t key, const Status& why) {
  const auto node = ServerDirectory::Global().Find(server.Target());
  GroupRegistry* registry = node == nullptr ? nullptr : GroupRegistry::Of(*node);
  return registry != nullptr && registry->Fail(key, why);
}

std::unique_ptr<Group> MakeLocalGroup(const GroupOptions& options) {
  return std::make_unique<Group>(std::make_shared<GroupCore>(options, ""));
}

}  // namespace cohort::collective
