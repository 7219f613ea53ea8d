// Strategy: scopes, variables, Run, and sums over replicas. Gradients and Minimize are in strategy_training.cc,
// gathered rows in sparse_gradients.cc. Several groups of collectives exist: one of all replicas, one of the first
// replicas of all processes, and one of the processes' meeting. Their keys follow from their members (KeyOf).
#include "cohort/distribute/strategy.h"

#include <algorithm>
#include <optional>
#include <set>

#include "cohort/cluster/server.h"
#include "cohort/collective/gradient_reduction.h"
#include "cohort/collective/group.h"
#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device_config.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/variable_parts.h"

namespace cohort::distribute {
namespace {

// The collection of the values of trainable variables that were made in a strategy's scope.
constexpr char kTrainable[] = "trainable variables of strategies";

// Scopes that this thread has open.
thread_local std::vector<std::pair<const Graph*, const Strategy*>> open_scopes;

// The key of a group follows from its members and purpose, so that several groups of one process do not mix.
int64_t KeyOf(const char* purpose, const std::vector<std::string>& members) {
  return int64_t{1} + crc32c::Value(StrCat(purpose, ":", StrJoin(members, ",")));
}

ops::CollectiveKeys KeysOf(const char* purpose, const std::vector<std::string>& members,
                           const CommunicationOptions& options) {
  ops::CollectiveKeys keys;
  keys.group_key = KeyOf(purpose, members);
  keys.members = members;
  keys.timeout = options.timeout;
  keys.progress_limit = options.progress_limit;
  keys.communication_hint = CommunicationHint(options);
  return keys;
}

std::vector<std::string> FirstDevices(const StrategyLayout& layout) {
  std::vector<std::string> first;
  for (size_t i = 0; i < layout.members.size(); i += layout.devices.size()) first.push_back(layout.members[i]);
  return first;
}

StrategyLayout Checked(StrategyLayout layout) {
  const size_t replicas = layout.devices.size() * static_cast<size_t>(std::max(0, layout.num_workers));
  if (layout.devices.empty() || layout.members.size() != replicas || layout.worker < 0 ||
      layout.worker >= layout.num_workers) {
    throw InvalidArgumentError(StrCat("[distribute] expected the devices of ", layout.num_workers, " workers x ",
                                      layout.devices.size(), " replicas; got ", layout.members.size(),
                                      " members for worker ", layout.worker));
  }
  const std::set<std::string> unique(layout.members.begin(), layout.members.end());
  if (unique.size() != layout.members.size()) {
    throw InvalidArgumentError(StrCat("[distribute] ", layout.name, " expected a device of its own for each replica; ",
                                      "got ", StrJoin(layout.members, ", ")));
  }
  CheckCommunication(layout.communication);
  return layout;
}

std::string TargetOf(const StrategyLayout& layout) {
  return layout.server == nullptr ? layout.target : layout.server->Target();
}

}  // namespace

int ReplicaContext::replica_id_in_sync_group() const { return strategy_.first_replica() + local_; }
int ReplicaContext::num_replicas_in_sync() const { return strategy_.num_replicas_in_sync(); }

ops::Variable ReplicaContext::Local(const ops::Variable& variable) const { return strategy_.Local(variable, local_); }

Output ReplicaContext::AllReduce(Reduction reduction, Output value) {
  if (num_replicas_in_sync() == 1) return value;
  if (next_call_ == calls_->instance_keys.size()) calls_->instance_keys.push_back(ops::NextInstanceKey(graph_));
  ops::CollectiveKeys keys = strategy_.replica_keys();
  keys.instance_key = calls_->instance_keys[next_call_++];
  const DeviceScope device(graph_, strategy_.devices()[static_cast<size_t>(local_)]);
  const ColocateWith nowhere(graph_, nullptr);
  return ops::CollectiveReduce(value, keys, "Add", reduction == Reduction::kMean ? "Div" : "Id", "all_reduce");
}

Output ReplicaContext::MeanOfGlobalBatch(Output values) {
  const Output count = AllReduce(Reduction::kSum, ops::Size(values, DType::kInt64));
  return ops::Div(ops::Sum(values), ops::Cast(count, values.dtype()));
}

StrategyScope::StrategyScope(const Strategy& strategy, Graph& graph) {
  for (const auto& [other_graph, other] : open_scopes) {
    if (other_graph != &graph || other == &strategy) continue;
    throw FailedPreconditionError(StrCat("[distribute] expected one strategy's scope at a time; ", strategy.name(),
                                         "'s is opened inside that of ", other->name()));
  }
  entry_ = {&graph, &strategy};
  if (std::find(open_scopes.begin(), open_scopes.end(), entry_) == open_scopes.end()) {
    creator_ = std::make_unique<VariableCreatorScope>(
        graph, [&strategy, &graph](const VariableMaker& next, const VariableRequest& request) {
          return strategy.Create(graph, next, request);
        });
  }
  open_scopes.push_back(entry_);
}

StrategyScope::~StrategyScope() {
  const auto own = std::find(open_scopes.rbegin(), open_scopes.rend(), entry_);
  if (own != open_scopes.rend()) open_scopes.erase(std::next(own).base());
}

Strategy::Strategy(StrategyLayout layout, std::unique_ptr<const VariablePlacer> placer)
    : layout_(Checked(std::move(layout))),
      placer_(std::move(placer)),
      meeting_(std::make_unique<WorkerMeeting>(worker_keys(), TargetOf(layout_), layout_.devices[0])) {}

Strategy::~Strategy() = default;

std::string Strategy::session_target() const { return TargetOf(layout_); }

SessionConfig Strategy::session_config(SessionConfig config) const {
  if (!session_target().empty()) return config;
  std::vector<std::string> devices = layout_.devices;
  for (const std::string& device : placer_->devices()) devices.push_back(device);
  for (const std::string& device : devices) {
    const DeviceName name = DeviceName::Parse(device);
    // Settings of the program stay. If it has too few devices, placement throws.
    if (!name.type || config::DeviceConfig::Global().IsSet(*name.type)) continue;
    int& count = config.device_count[*name.type];
    count = std::max(count, name.id.value_or(0) + 1);
  }
  return config;
}

std::unique_ptr<Session> Strategy::OpenSession(const Graph& graph, const SessionConfig& config) const {
  return std::make_unique<Session>(graph, session_target(), session_config(config));
}

std::string Strategy::DeviceOfCopy(int copy) const {
  return has_copies() ? layout_.devices.at(static_cast<size_t>(copy)) : placer_->shared_device();
}

ops::CollectiveKeys Strategy::replica_keys() const {
  return KeysOf("replicas", layout_.members, layout_.communication);
}

ops::CollectiveKeys Strategy::worker_keys() const {
  return KeysOf("workers", FirstDevices(layout_), layout_.communication);
}

void Strategy::Fail(const Status& why) const {
  if (num_workers() == 1) return;
  const Status told(why.code(), meeting().FailureOf(worker(), why.message()));
  collective::FailGroups(*layout_.server, replica_keys().group_key, told);
  // If the processes have not met yet, the others learn of the failure at the first meeting.
  if (!collective::FailGroups(*layout_.server, worker_keys().group_key, told)) meeting().AnnounceFailure(why);
}

VariableInfo* Strategy::Create(Graph& graph, const VariableMaker& next, const VariableRequest& request) const {
  if (request.local) return next(request);
  VariableInfo* made = placer_->Create(*this, graph, next, request);
  if (request.trainable) graph.AddToCollection(kTrainable, made->value);
  return made;
}

ops::Variable Strategy::Local(const ops::Variable& variable, int local) const {
  return local == 0 || !has_copies() ? variable : placer_->CopyOf(*this, variable, local);
}

std::vector<ops::Variable> Strategy::VariablesOf(Graph& graph, const std::vector<ops::Variable>& given) const {
  std::vector<ops::Variable> whole = given;
  if (given.empty()) {
    const std::vector<Output> trainable = graph.collection(kTrainable);
    for (VariableInfo* info : graph.variables()) {
      if (std::find(trainable.begin(), trainable.end(), info->value) != trainable.end()) whole.emplace_back(info);
    }
  }
  return ops::PartsOf(whole);
}

PerReplica<std::vector<Output>> Strategy::Run(Graph& graph,
                                              const std::function<std::vector<Output>(ReplicaContext&)>& fn) const {
  PerReplica<std::vector<Output>> results;
  ReplicaCalls calls;
  for (int local = 0; local < num_local_replicas(); ++local) {
    std::optional<DeviceScope> device;
    std::optional<NameScope> name;
    if (!layout_.devices[static_cast<size_t>(local)].empty())
      device.emplace(graph, layout_.devices[static_cast<size_t>(local)]);
    if (local > 0) name.emplace(graph, StrCat("replica_", local));
    ReplicaContext context(*this, graph, local, &calls);
    results.push_back(fn(context));
    if (context.calls() == calls.instance_keys.size()) continue;
    throw FailedPreconditionError(StrCat("[distribute] expected the same all-reduces of every replica; replica 0 has ",
                                         calls.instance_keys.size(), ", replica ", local, " has ", context.calls()));
  }
  return results;
}

PerReplica<Output> Strategy::Run(Graph& graph, const std::function<Output(ReplicaContext&)>& fn) const {
  PerReplica<Output> results;
  Run(graph, [&](ReplicaContext& replica) {
    results.push_back(fn(replica));
    return std::vector<Output>();
  });
  return results;
}

Output Strategy::SumHere(const PerReplica<Output>& values) const {
  if (values.size() == 1) return values[0];
  Graph& graph = values[0].graph();
  const ColocateWith nowhere(graph, nullptr);
  const DeviceScope device(graph, layout_.devices[0]);
  return ops::AddN(values);
}

Output Strategy::Reduce(Reduction reduction, const PerReplica<Output>& values) const {
  if (values.size() != layout_.devices.size()) {
    throw InvalidArgumentError(StrCat("[distribute] expected a value of each of the ", layout_.devices.size(),
                                      " replicas of this process; got ", values.size()));
  }
  if (num_replicas_in_sync() == 1) return values[0];
  Output sum = SumHere(values);
  Graph& graph = sum.graph();
  const ColocateWith nowhere(graph, nullptr);
  const DeviceScope device(graph, layout_.devices[0]);
  if (num_workers() > 1) {
    ops::CollectiveKeys keys = KeysOf("first replicas", FirstDevices(layout_), layout_.communication);
    keys.instance_key = ops::NextInstanceKey(graph);
    sum = ops::CollectiveReduce(sum, keys, "Add", "Id", "reduce");
  }
  if (reduction == Reduction::kSum) return sum;
  return ops::Div(sum, ops::ScalarLike(sum, num_replicas_in_sync()));
}

PerReplica<std::vector<Output>> Strategy::SumOverReplicas(const PerReplica<std::vector<Output>>& values) const {
  if (num_replicas_in_sync() == 1 || values.empty() || values[0].empty()) return values;
  if (has_copies()) {
    collective::GradientReduction how;
    how.keys = replica_keys();
    how.bytes_per_pack = layout_.communication.bytes_per_pack;
    how.devices = layout_.devices;
    return collective::ReduceGradients(values, how);
  }
  Graph& graph = values[0][0].graph();
  const ColocateWith nowhere(graph, nullptr);
  const DeviceScope device(graph, placer_->shared_device());
  std::vector<Output> sums;
  for (size_t i = 0; i < values[0].size(); ++i) {
    std::vector<Output> all;
    for (const std::vector<Output>& replica : values) all.push_back(replica.at(i));
    sums.push_back(ops::AddN(all));
  }
  return PerReplica<std::vector<Output>>(values.size(), sums);
}

std::pair<int64_t, int64_t> Strategy::RowsOf(int64_t rows, int replica, int num_replicas) {
  const int64_t each = rows / num_replicas;
  const int64_t more = rows % num_replicas;
  const int64_t begin = each * replica + std::min<int64_t>(replica, more);
  return {begin, begin + each + (replica < more ? 1 : 0)};
}

}  // namespace cohort::distribute
