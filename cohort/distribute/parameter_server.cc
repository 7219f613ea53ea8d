// ParameterServerStrategy: variables on parameter servers. Workers compute on their own (cluster_coordinator.h), with
// one set of variables that all of them share.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/logical_devices.h"
#include "cohort/distribute/strategies.h"
#include "cohort/distribute/strategy_layouts.h"
#include "cohort/distribute/variable_placer.h"

namespace cohort::distribute {
namespace {

// The collection of the handles of variables that took a turn of the round robin.
constexpr char kTurns[] = "variables placed on parameter servers in turn";

std::string FullNameOf(const std::string& job, int task) { return StrCat("/job:", job, "/replica:0/task:", task); }
std::string DeviceOfTask(const std::string& job, int task) {
  return StrCat(FullNameOf(job, task), "/device:", kHostDeviceType, ":0");
}

class OnParameterServers final : public VariablePlacer {
 public:
  OnParameterServers(std::vector<std::string> devices, Partitioner partitioner)
      : devices_(std::move(devices)), partitioner_(std::move(partitioner)) {}

  VariableInfo* Create(const Strategy& /*strategy*/, Graph& graph, const VariableMaker& next,
                       const VariableRequest& request) const override {
    const int64_t parts = ops::NumberOfParts(partitioner_, request);
    if (parts > 1) return CreateInParts(graph, next, request, Placed(graph, request, parts));
    const ColocateWith nowhere(graph, nullptr);
    const DeviceScope device(graph, devices_[graph.collection(kTurns).size() % devices_.size()]);
    VariableInfo* made = next(request);
    graph.AddToCollection(kTurns, made->value);
    return made;
  }
  bool makes_copies() const override { return false; }
  std::string shared_device() const override { return devices_[0]; }

 private:
  // Places each part on the parameter server that has the fewest bytes so far.
  std::vector<VariablePart> Placed(const Graph& graph, const VariableRequest& request, int64_t parts) const {
    const std::map<std::string, int64_t> known = BytesByDevice(graph);
    std::vector<int64_t> bytes;
    for (const std::string& device : devices_) {
      const auto found = known.find(device);
      bytes.push_back(found == known.end() ? 0 : found->second);
    }
    const int64_t row = request.shape.num_elements() / request.shape.dim(0) *
                        static_cast<int64_t>(std::max<size_t>(1, DTypeSize(request.dtype)));
    std::vector<VariablePart> placed;
    for (const int64_t rows : PartSizes(request.shape.dim(0), parts)) {
      const auto least = std::min_element(bytes.begin(), bytes.end());
      *least += rows * row;
      placed.push_back({rows, devices_[static_cast<size_t>(least - bytes.begin())]});
    }
    return placed;
  }

  const std::vector<std::string> devices_;
  const Partitioner partitioner_;
};

std::vector<std::string> DevicesOfJob(const ClusterSpec& cluster, const std::string& job) {
  std::vector<std::string> devices;
  if (!cluster.has_job(job)) return devices;
  for (const int task : cluster.task_indices(job)) devices.push_back(DeviceOfTask(job, task));
  return devices;
}

void CheckCoordinator(const ClusterResolver& resolver, const ClusterSpec& cluster) {
  const std::string where = StrCat("; the cluster is ", cluster.ToString());
  if (!cluster.has_job("worker") || cluster.task_indices("worker").empty()) {
    throw InvalidArgumentError(StrCat("[distribute] There must be at least one worker.", where));
  }
  if (DevicesOfJob(cluster, "ps").empty()) {
    throw InvalidArgumentError(StrCat("[distribute] There must be at least one ps.", where));
  }
  if (cluster.has_job("chief") && cluster.num_tasks("chief") > 1) {
    throw InvalidArgumentError(StrCat("[distribute] ParameterServerStrategy expected one task of job 'chief'", where));
  }
  const std::string type = resolver.task_type().value_or("chief");
  if (type != "chief") {
    throw InvalidArgumentError(
        StrCat("[distribute] ParameterServerStrategy expected to run in the coordinator, which is the job 'chief'; ",
               "this is ", TaskName(type, resolver.task_id().value_or(0)),
               ": workers and parameter servers run Server(...).Join()"));
  }
}

}  // namespace

std::map<std::string, int64_t> BytesByDevice(const Graph& graph) {
  std::map<std::string, int64_t> bytes;
  for (const VariableInfo* variable : graph.variables()) {
    if (!variable->handle.valid() || !variable->shape.IsFullyDefined()) continue;
    bytes[variable->handle.node->device()] +=
        variable->shape.num_elements() * static_cast<int64_t>(DTypeSize(variable->dtype));
  }
  return bytes;
}

StrategyPtr ParameterServerStrategy(const ClusterResolver& resolver, Partitioner partitioner,
                                    const ParameterServerOptions& options) {
  const ClusterSpec cluster = resolver.cluster_spec();
  CheckCoordinator(resolver, cluster);
  if (options.steps_in_flight < 1) {
    throw InvalidArgumentError(
        StrCat("[distribute] expected steps_in_flight of at least 1; got ", options.steps_in_flight));
  }
  LogInfo("distribute",
          "`tf.distribute.experimental.ParameterServerStrategy` is initialized with cluster_spec: ", cluster);
  LogInfo("distribute", "ParameterServerStrategyV2 is now connecting to cluster with cluster_spec: ", cluster);
  StrategyLayout layout = LayoutOf("ParameterServerStrategy", {""}, {});
  // They name no device, so that closures compute on GPUs of workers that have some.
  for (const int task : cluster.task_indices("worker")) layout.closure_workers.push_back(FullNameOf("worker", task));
  layout.steps_in_flight = options.steps_in_flight;
  layout.worker_timeout = options.worker_timeout;
  layout.ps_timeout = options.ps_timeout;
  const std::string protocol = resolver.rpc_layer().value_or(options.server.protocol);
  if (cluster.has_job("chief")) {
    ServerOptions server = options.server;
    server.protocol = protocol;
    layout.server = std::make_shared<Server>(cluster, "chief", cluster.task_indices("chief").front(), server);
  } else {
    layout.target = StrCat(protocol, "://", cluster.task_address("ps", cluster.task_indices("ps").front()));
  }
  const std::string here = cluster.has_job("chief") ? DeviceOfTask("chief", 0) : DevicesOfJob(cluster, "ps").front();
  LogInfo("distribute", "ParameterServerStrategy (CentralStorageStrategy if you are using a single machine) with ",
          "compute_devices = ['", here, "'], variable_device = '", here, "'");
  auto placer = std::make_unique<OnParameterServers>(DevicesOfJob(cluster, "ps"), std::move(partitioner));
  return std::make_shared<const Strategy>(std::move(layout), std::move(placer));
}

}  // namespace cohort::distribute
