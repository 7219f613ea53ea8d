// Makes strategies, with TensorFlow's names and semantics. All of them but ParameterServerStrategy are synchronous: N
// replicas make the same update as one replica with the whole global batch, except for rounding. The functions that
// take devices throw InvalidArgumentError if a device's name lacks the type or the number ("/cpu:0" has both), if a
// device is of another process, or if a device is given twice.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/core/export.h"
#include "cohort/distribute/partitioners.h"
#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

// One replica. The graph's scopes decide its device.
COHORT_EXPORT StrategyPtr Default();
// One replica on a cluster: the graph's scopes may name devices of all its tasks, so that the layers of a model stand
// on several of them (model parallelism). Starts the server of this process's task, which ends with the strategy; the
// other tasks run Server(...).Join(). Throws InvalidArgumentError if the resolver does not know which task this process
// is, and what Server's constructor throws.
COHORT_EXPORT StrategyPtr Default(const ClusterResolver& resolver, const ServerOptions& options = {});
// One replica. The replica and all its variables are on `device` ("/cpu:0").
COHORT_EXPORT StrategyPtr OneDevice(const std::string& device);

struct COHORT_EXPORT MirroredOptions {
  // The devices of the replicas, in this process. Empty: all logical GPUs of the visible physical ones, or all logical
  // CPUs if there is no visible GPU. A process has one logical device of each physical device unless
  // config::SetLogicalDevices was called.
  std::vector<std::string> devices = {};
  CommunicationOptions communication = {};
};
// Each device has a copy of each variable. Gradients are summed over all devices.
COHORT_EXPORT StrategyPtr Mirrored(const MirroredOptions& options = {});
COHORT_EXPORT StrategyPtr Mirrored(const std::vector<std::string>& devices);
// As Mirrored, with this number of replicas, each on a logical CPU of its own. The sessions that the strategy opens
// have at least so many logical CPUs, unless the program has called config::SetLogicalDevices. Throws
// InvalidArgumentError unless the number is in [1, 1024].
COHORT_EXPORT StrategyPtr MirroredOnCpus(int replicas);

struct COHORT_EXPORT CentralStorageOptions {
  std::vector<std::string> compute_devices = {};  // as MirroredOptions::devices
  std::string parameter_device = std::string("/device:") + kHostDeviceType + ":0";
  CommunicationOptions communication = {};
};
// Each variable exists once, on the parameter device. Gradients are summed and applied there, once.
COHORT_EXPORT StrategyPtr CentralStorage(const CentralStorageOptions& options = {});

struct COHORT_EXPORT MultiWorkerOptions {
  CommunicationOptions communication = {};
  TFConfigClusterResolver resolver = {};  // the tasks of the cluster, and which of them this process is
  // The number of replicas of this process, each on a logical device: on a GPU, or on a CPU if no GPU is visible. All
  // processes must have the same number and type. 0: as many as there are logical devices of that type.
  int replicas_per_worker = 0;
  ServerOptions server = {};  // options of this process's server
};
// As Mirrored, with the replicas of all processes of the cluster (its chief and workers). Starts this process's server,
// which ends with the strategy. The chief's first replica computes the initial values of variables. If there is no
// cluster, or if it has no other chief or worker than this process, this process trains alone: it starts no server, and
// logs a warning. Throws InvalidArgumentError if there are fewer logical GPUs than replicas_per_worker, if there is a
// cluster, but the resolver does not know which task this process is. Throws InvalidArgumentError also if this process
// is a task that does not train (ps, evaluator). Throws what Server's constructor throws.
COHORT_EXPORT StrategyPtr MultiWorkerMirrored(const MultiWorkerOptions& options = {});

struct COHORT_EXPORT ParameterServerOptions {
  ServerOptions server = {};  // of the chief's server; the resolver's rpc_layer, if any, replaces `protocol`
  // The most steps of a Keras model that each worker runs at the same time. All of them read the weights before the
  // others have updated them, so a larger number means older gradients. TensorFlow's number is 1.
  int steps_in_flight = 1;
  // For Keras models: if no worker has answered for worker_timeout, or a parameter server cannot be reached for
  // ps_timeout, Fit and the other calls fail with UnavailableError. If a parameter server was started again before
  // that, they fail with AbortedError. Both name the task.
  std::chrono::milliseconds worker_timeout = std::chrono::hours(1);
  std::chrono::milliseconds ps_timeout = std::chrono::seconds(60);
};
// Variables are on parameter servers, and each worker computes on its own with the values that it reads. A
// ClusterCoordinator (cluster_coordinator.h) sends functions to the workers; Keras models make one for themselves. The
// strategy runs in one process, the chief. It starts the server of the job "chief". If the cluster has no such job, its
// sessions go through the first parameter server. Workers and parameter servers run Server(...).Join().
// Whole variables go to the parameter servers in turn, in the order in which they are made in a graph. If there is a
// `partitioner`, variables that it cuts consist of parts "<name>/part_<i>". Each part goes to the parameter server that
// has the fewest bytes of the graph's variables so far. The initial values of the parts are slices of the initial value
// of the whole. Scalars and variables of unknown shape are not cut. The constructor of such a variable throws
// InvalidArgumentError if the partitioner cuts another axis than 0, or wants more parts than there are rows.
// Throws InvalidArgumentError if the cluster has no worker or no ps, or if the resolver says that this process is
// another task than the chief. Throws what Server's constructor throws. Does not wait for the other tasks.
COHORT_EXPORT StrategyPtr ParameterServerStrategy(const ClusterResolver& resolver, Partitioner partitioner = nullptr,
                                                  const ParameterServerOptions& options = {});

// Returns the bytes of all variables of a graph, by the device that they request. Elements of strings count nothing.
COHORT_EXPORT std::map<std::string, int64_t> BytesByDevice(const Graph& graph);

}  // namespace cohort::distribute
