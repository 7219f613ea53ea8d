#include "cohort/train/device_setter.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"

namespace cohort::train {
namespace {

void CheckTasks(const char* what, int num_tasks) {
  if (num_tasks < 1) {
    throw InvalidArgumentError(StrCat("[device_setter] expected at least one task for ", what, "; got ", num_tasks));
  }
}

class GreedyLoads {
 public:
  explicit GreedyLoads(int num_tasks) : loads_(static_cast<size_t>(num_tasks), 0.0) {}

  int Place(double load) {
    MutexLock lock(mu_);
    const auto least = std::min_element(loads_.begin(), loads_.end());
    *least += load;
    return static_cast<int>(least - loads_.begin());
  }

 private:
  Mutex mu_;
  std::vector<double> loads_ COHORT_GUARDED_BY(mu_);
};

class Setter {
 public:
  Setter(const ReplicaDeviceSetterOptions& options, int ps_tasks)
      : ps_tasks_(ps_tasks),
        ps_(DeviceName::Parse(options.ps_device)),
        worker_(DeviceName::Parse(options.worker_device)),
        merge_(options.merge_devices),
        ps_ops_(options.ps_ops.begin(), options.ps_ops.end()),
        strategy_(options.ps_strategy ? options.ps_strategy : RoundRobin(ps_tasks)) {}

  std::string operator()(const NodeDraft& draft) const {
    if (!merge_ && !draft.device.empty()) return draft.device;
    const DeviceName current = DeviceName::Parse(draft.device);
    if (!ps_ops_.contains(draft.op)) return worker_.OverriddenBy(current).ToString();
    DeviceName ps = ps_;
    if (ps.job && (!current.job || *current.job == *ps.job)) ps.task = ChooseTask(draft);
    return ps.OverriddenBy(current).ToString();
  }

 private:
  int ChooseTask(const NodeDraft& draft) const {
    const int task = strategy_(draft);
    if (task < 0 || task >= ps_tasks_) {
      throw InvalidArgumentError(StrCat("[device_setter] expected a task below ", ps_tasks_, " from ps_strategy; got ",
                                        task, " for '", draft.name, "'"));
    }
    return task;
  }

  const int ps_tasks_;
  const DeviceName ps_;
  const DeviceName worker_;
  const bool merge_;
  const std::set<std::string, std::less<>> ps_ops_;
  const PsStrategy strategy_;
};

int PsTasks(const ReplicaDeviceSetterOptions& options) {
  if (options.cluster) {
    const std::optional<std::string> job = DeviceName::Parse(options.ps_device).job;
    return job && options.cluster->has_job(*job) ? options.cluster->num_tasks(*job) : 0;
  }
  if (options.ps_tasks < 0) {
    throw InvalidArgumentError(StrCat("[device_setter] expected ps_tasks >= 0; got ", options.ps_tasks));
  }
  return options.ps_tasks;
}

}  // namespace

PsStrategy RoundRobin(int num_tasks) {
  CheckTasks("RoundRobin", num_tasks);
  auto next = std::make_shared<std::atomic<unsigned>>(0);
  return [next, num_tasks](const NodeDraft&) {
    return static_cast<int>(next->fetch_add(1) % static_cast<unsigned>(num_tasks));
  };
}

double ByteSizeLoad(const NodeDraft& draft) {
  const int64_t elements = draft.shape.num_elements();
  if (elements < 0) {
    throw InvalidArgumentError(StrCat("[device_setter] expected a fully known shape to balance '", draft.name, "' (",
                                      draft.op, ") by bytes; got ", draft.shape));
  }
  return static_cast<double>(elements) * static_cast<double>(DTypeSize(draft.dtype));
}

PsStrategy GreedyLoadBalancingStrategy(int num_tasks, PsLoad load) {
  CheckTasks("GreedyLoadBalancingStrategy", num_tasks);
  auto loads = std::make_shared<GreedyLoads>(num_tasks);
  return [loads, load = std::move(load)](const NodeDraft& draft) { return loads->Place(load(draft)); };
}

std::vector<std::string> DefaultPsOps() {
  return {"Variable",
          "VariableV2",
          "AutoReloadVariable",
          "MutableHashTable",
          "MutableHashTableV2",
          "MutableHashTableOfTensors",
          "MutableHashTableOfTensorsV2",
          "MutableDenseHashTable",
          "MutableDenseHashTableV2",
          "VarHandleOp"};
}

DeviceFunction ReplicaDeviceSetter(const ReplicaDeviceSetterOptions& options) {
  const int ps_tasks = PsTasks(options);
  if (ps_tasks == 0) return [](const NodeDraft& draft) { return draft.device; };
  const auto setter = std::make_shared<const Setter>(options, ps_tasks);
  return [setter](const NodeDraft& draft) { return (*setter)(draft); };
}

}  // namespace cohort::train
