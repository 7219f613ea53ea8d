// The kinds of strategies, with TensorFlow's names and semantics: all of them synchronous. N replicas make the same
// update, to rounding, as one with the whole global batch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/server.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/core/export.h"
#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

// One replica wherever the graph's scopes put it.
COHORT_EXPORT StrategyPtr Default();
// One replica with all its variables on `device` ("/cpu:0").
COHORT_EXPORT StrategyPtr OneDevice(const std::string& device);

struct COHORT_EXPORT MirroredOptions {
  // Of the replicas, in this process; empty: all logical CPUs (config::SetLogicalDevices), which is one if nothing else
  // was set.
  std::vector<std::string> devices = {};
  CommunicationOptions communication = {};
};
// A copy of each variable on every device; gradients are summed over all.
COHORT_EXPORT StrategyPtr Mirrored(const MirroredOptions& options = {});
COHORT_EXPORT StrategyPtr Mirrored(const std::vector<std::string>& devices);
// So many replicas on logical CPUs.
COHORT_EXPORT StrategyPtr MirroredOnCpus(int replicas);

struct COHORT_EXPORT CentralStorageOptions {
  std::vector<std::string> compute_devices = {};  // as in MirroredOptions
  std::string parameter_device = std::string("/device:") + kHostDeviceType + ":0";
  CommunicationOptions communication = {};
};
// One copy of each variable, on the parameter device, where gradients are summed and applied once.
COHORT_EXPORT StrategyPtr CentralStorage(const CentralStorageOptions& options = {});

struct COHORT_EXPORT MultiWorkerOptions {
  CommunicationOptions communication = {};
  TFConfigClusterResolver resolver = {};  // who is in the cluster, and which task this is
  // Replicas of this process, one a logical CPU; 0: as config:: says. The same at all processes.
  int replicas_per_worker = 0;
  ServerOptions server = {};  // of this process's task
};
// As Mirrored, over the replicas of all processes of the cluster (its chief and workers). Starts this process's server,
// which ends with the strategy; initial values are the chief's. Without a cluster, or alone in it, this process trains
// by itself, and a warning says so. Throws InvalidArgumentError where TF_CONFIG does not say which task this is, and
// for a task that does not train (ps, evaluator); what Server throws.
COHORT_EXPORT StrategyPtr MultiWorkerMirrored(const MultiWorkerOptions& options = {});

}  // namespace cohort::distribute
