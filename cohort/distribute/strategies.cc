#include "cohort/distribute/strategies.h"

#include <algorithm>

#include "cohort/cluster/roles.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/logical_devices.h"

namespace cohort::distribute {
namespace {

constexpr int kMostReplicas = 1024;

// Names in one form, so that equal devices are equal texts.
std::vector<std::string> LocalDevices(const std::vector<std::string>& given) {
  std::vector<std::string> devices;
  for (const std::string& device : given) {
    const DeviceName name = DeviceName::Parse(device);
    if (!name.type || !name.id) {
      throw InvalidArgumentError(StrCat("[distribute] expected devices with a type and a number, as \"/",
                                        kHostDeviceType, ":0\"; got '", device, "'"));
    }
    if (name.job && *name.job != "localhost") {
      throw InvalidArgumentError(StrCat("[distribute] expected devices of this process; got '", device,
                                        "': MultiWorkerMirrored() trains on several processes"));
    }
    DeviceName here;
    here.type = name.type;
    here.id = name.id;
    devices.push_back(here.ToString());
  }
  if (!devices.empty()) return devices;
  for (const config::LogicalDevice& device : config::ListLogicalDevices(kHostDeviceType))
    devices.push_back(device.name);
  return devices;
}

StrategyLayout LayoutOf(const char* name, std::vector<std::string> devices, const CommunicationOptions& communication) {
  StrategyLayout layout;
  layout.name = name;
  layout.devices = std::move(devices);
  layout.members = layout.devices;
  layout.communication = communication;
  return layout;
}

std::string Quoted(const std::vector<std::string>& names) { return StrCat("('", StrJoin(names, "', '"), "')"); }

// Processes that train, the chief first.
std::vector<std::string> Workers(const ClusterSpec& cluster) {
  std::vector<std::string> tasks;
  for (const char* job : {"chief", "worker"}) {
    if (!cluster.has_job(job)) continue;
    for (const int index : cluster.task_indices(job)) tasks.push_back(StrCat("/job:", job, "/replica:0/task:", index));
  }
  return tasks;
}

std::vector<std::string> DevicesOf(const std::string& task, int replicas) {
  std::vector<std::string> devices;
  devices.reserve(static_cast<size_t>(replicas));
  for (int i = 0; i < replicas; ++i) devices.push_back(StrCat(task, "/device:", kHostDeviceType, ":", i));
  return devices;
}

int ReplicasPerWorker(const MultiWorkerOptions& options) {
  if (options.replicas_per_worker < 0 || options.replicas_per_worker > kMostReplicas) {
    throw InvalidArgumentError(StrCat("[distribute] expected replicas_per_worker from 0 to ", kMostReplicas, "; got ",
                                      options.replicas_per_worker));
  }
  if (options.replicas_per_worker > 0) return options.replicas_per_worker;
  return static_cast<int>(config::ListLogicalDevices(kHostDeviceType).size());
}

StrategyPtr AloneInItsCluster(const MultiWorkerOptions& options, int replicas) {
  std::vector<std::string> devices = DevicesOf("", replicas);
  LogWarning("distribute", "MultiWorkerMirroredStrategy finds no other worker in TF_CONFIG and trains alone");
  LogInfo("distribute", "Single-worker MultiWorkerMirroredStrategy with local_devices = ", Quoted(devices));
  return std::make_shared<const Strategy>(
      LayoutOf("MultiWorkerMirroredStrategy", std::move(devices), options.communication));
}

}  // namespace

StrategyPtr Default() {
  StrategyLayout layout = LayoutOf("DefaultStrategy", {""}, {});
  return std::make_shared<const Strategy>(std::move(layout));
}

StrategyPtr OneDevice(const std::string& device) {
  return std::make_shared<const Strategy>(LayoutOf("OneDeviceStrategy", LocalDevices({device}), {}));
}

StrategyPtr Mirrored(const MirroredOptions& options) {
  StrategyLayout layout = LayoutOf("MirroredStrategy", LocalDevices(options.devices), options.communication);
  LogInfo("distribute", "Using MirroredStrategy with devices ", Quoted(layout.devices));
  return std::make_shared<const Strategy>(std::move(layout));
}

StrategyPtr Mirrored(const std::vector<std::string>& devices) { return Mirrored(MirroredOptions{.devices = devices}); }

StrategyPtr MirroredOnCpus(int replicas) {
  if (replicas < 1 || replicas > kMostReplicas) {
    throw InvalidArgumentError(
        StrCat("[distribute] expected a number of replicas from 1 to ", kMostReplicas, "; got ", replicas));
  }
  return Mirrored(DevicesOf("", replicas));
}

StrategyPtr CentralStorage(const CentralStorageOptions& options) {
  StrategyLayout layout =
      LayoutOf("CentralStorageStrategy", LocalDevices(options.compute_devices), options.communication);
  layout.parameter_device = LocalDevices({options.parameter_device}).front();
  LogInfo("distribute", "CentralStorageStrategy with compute_devices = ", Quoted(layout.devices),
          ", variable_device = '", layout.parameter_device, "'");
  return std::make_shared<const Strategy>(std::move(layout));
}

StrategyPtr MultiWorkerMirrored(const MultiWorkerOptions& options) {
  const int replicas = ReplicasPerWorker(options);
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
  int& cpus = server.config.device_count[kHostDeviceType];
  cpus = std::max(cpus, replicas);
  StrategyLayout layout;
  layout.name = "MultiWorkerMirroredStrategy";
  layout.num_workers = static_cast<int>(workers.size());
  layout.worker = IdInCluster(cluster, *type, *id);
  layout.is_chief = layout.worker == 0;  // also where there is no worker 0
  layout.mirrors_across_workers = true;
  layout.communication = options.communication;
  layout.devices = DevicesOf(workers[static_cast<size_t>(layout.worker)], replicas);
  for (const std::string& worker : workers) {
    for (const std::string& device : DevicesOf(worker, replicas)) layout.members.push_back(device);
  }
  CheckCommunication(layout.communication);
  layout.server = std::make_shared<Server>(cluster, *type, *id, server);
  LogInfo("distribute", "MultiWorkerMirroredStrategy with task_type = '", *type, "', task_id = ", *id,
          ", num_workers = ", workers.size(), ", local_devices = ", Quoted(layout.devices));
  return std::make_shared<const Strategy>(std::move(layout));
}

}  // namespace cohort::distribute
