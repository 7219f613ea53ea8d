// MultiWorkerMirrored: replicas in several processes, each with a copy of every variable.
#include <algorithm>

#include "cohort/cluster/roles.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device_config.h"
#include "cohort/distribute/mirrored_variables.h"
#include "cohort/distribute/strategies.h"
#include "cohort/distribute/strategy_layouts.h"
#include "cohort/ops/collective.h"

namespace cohort::distribute {
namespace {

// All copies begin with the value that the chief's first replica, which is rank 0, computes.
class MirroredAcrossWorkers final : public MirroredVariables {
 protected:
  InitialValues InitialValuesOf(const Strategy& strategy, Graph& graph, const VariableRequest& request) const override {
    ops::CollectiveKeys keys = strategy.replica_keys();
    keys.instance_key = ops::NextInstanceKey(graph);
    return [&strategy, &graph, &request, keys](int local, const VariableInfo* /*first*/) {
      const bool sends = strategy.first_replica() + local == 0;
      if (sends) return ops::CollectiveBcastSend(request.initial_value(), keys, "broadcast");
      return ops::CollectiveBcastRecv(graph, request.dtype, request.shape, keys, "broadcast");
    };
  }
};

// Processes that train, the chief first.
std::vector<std::string> Workers(const ClusterSpec& cluster) {
  std::vector<std::string> tasks;
  for (const char* job : {"chief", "worker"}) {
    if (!cluster.has_job(job)) continue;
    for (const int index : cluster.task_indices(job)) tasks.push_back(StrCat("/job:", job, "/replica:0/task:", index));
  }
  return tasks;
}

// The devices of this process's replicas. Those of the other processes have the same type and number.
struct Replicas {
  std::string type;
  int count = 0;
};

Replicas ReplicasPerWorker(const MultiWorkerOptions& options) {
  if (options.replicas_per_worker < 0 || options.replicas_per_worker > kMostReplicas) {
    throw InvalidArgumentError(StrCat("[distribute] expected replicas_per_worker from 0 to ", kMostReplicas, "; got ",
                                      options.replicas_per_worker));
  }
  const std::string type = config::DeviceConfig::Global().ReplicaType();
  if (options.replicas_per_worker > 0 && type == kHostDeviceType) return {type, options.replicas_per_worker};
  const std::vector<config::LogicalDevice> devices = config::ListLogicalDevices(type);
  const int most = static_cast<int>(devices.size());
  if (options.replicas_per_worker <= most) {
    return {type, options.replicas_per_worker > 0 ? options.replicas_per_worker : most};
  }
  std::vector<std::string> names;
  for (const config::LogicalDevice& device : devices) names.push_back(device.name);
  throw InvalidArgumentError(StrCat("[distribute] expected replicas_per_worker of at most ", most, "; got ",
                                    options.replicas_per_worker, "; this process has the devices ",
                                    StrJoin(names, ", "), " (config::SetLogicalDevices divides a device)"));
}

StrategyPtr AloneInItsCluster(const MultiWorkerOptions& options, const Replicas& replicas) {
  std::vector<std::string> devices = DevicesOf("", replicas.type, replicas.count);
  LogWarning("distribute", "MultiWorkerMirroredStrategy finds no other worker in TF_CONFIG and trains alone");
  LogInfo("distribute", "Single-worker MultiWorkerMirroredStrategy with local_devices = ", Quoted(devices),
          ", communication = ", ImplementationText(options.communication.implementation));
  return std::make_shared<const Strategy>(
      LayoutOf("MultiWorkerMirroredStrategy", std::move(devices), options.communication),
      std::make_unique<MirroredVariables>());
}

}  // namespace

StrategyPtr MultiWorkerMirrored(const MultiWorkerOptions& options) {
  const Replicas replicas = ReplicasPerWorker(options);
  const ClusterSpec cluster = options.resolver.cluster_spec();
  if (cluster.empty()) return AloneInItsCluster(options, replicas);
  const std::optional<std::string> type = options.resolver.task_type();
  const std::optional<int> id = options.resolver.task_id();
  if (!type || !id) {
    throw InvalidArgumentError(
        StrCat("[distribute] expected \"task\" with type and index in TF_CONFIG, which has ", cluster.ToString()));
  }
  CheckRole(cluster, *type, *id);
  if (*type != "chief" && *type != "worker") {
    throw InvalidArgumentError(
        StrCat("[distribute] expected a chief or a worker for MultiWorkerMirrored; this is ", TaskName(*type, *id)));
  }
  const std::vector<std::string> workers = Workers(cluster);
  if (workers.size() == 1) return AloneInItsCluster(options, replicas);

  ServerOptions server = options.server;
  int& count = server.config.device_count[replicas.type];
  count = std::max(count, replicas.count);
  StrategyLayout layout;
  layout.name = "MultiWorkerMirroredStrategy";
  layout.num_workers = static_cast<int>(workers.size());
  layout.worker = IdInCluster(cluster, *type, *id);
  layout.is_chief = layout.worker == 0;  // also if the cluster has no worker 0
  layout.communication = options.communication;
  layout.devices = DevicesOf(workers[static_cast<size_t>(layout.worker)], replicas.type, replicas.count);
  for (const std::string& worker : workers) {
    for (const std::string& device : DevicesOf(worker, replicas.type, replicas.count)) layout.members.push_back(device);
  }
  CheckCommunication(layout.communication);
  layout.server = std::make_shared<Server>(cluster, *type, *id, server);
  LogInfo("distribute", "MultiWorkerMirroredStrategy with cluster_spec = ", cluster.ToString(), ", task_type = '",
          *type, "', task_id = ", *id, ", num_workers = ", workers.size(), ", local_devices = ", Quoted(layout.devices),
          ", communication = ", ImplementationText(layout.communication.implementation));
  return std::make_shared<const Strategy>(std::move(layout), std::make_unique<MirroredAcrossWorkers>());
}

}  // namespace cohort::distribute
