// Executable: what one task runs of one (feeds, fetches) signature of a session - a partition for each of its devices -
// and the steps of it that are under way.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/device.h"
#include "cohort/runtime/execution/executor.h"
#include "cohort/runtime/execution/step_rendezvous.h"

namespace cohort {

struct ExecutableKey {
  uint64_t session = 0;
  int32_t id = 0;
  // clang-tidy 14 takes the 0 in a comparison by <=> for a pointer.
  friend auto operator<=>(const ExecutableKey&, const ExecutableKey&) = default;  // NOLINT(modernize-use-nullptr)
};

struct ExecutableSpec {
  struct Part {
    std::string device;            // full name
    std::unique_ptr<Graph> graph;  // with _Arg, _Retval, _Send, _Recv
  };
  ExecutableKey key;
  ClientId client;                 // the master of the session; LocalTask::Register puts in its own if it is empty
  std::vector<std::string> tasks;  // "/job:ps/replica:0/task:0", what EdgeRoute's indices mean
  int self = 0;                    // index of the task that runs it
  std::vector<EdgeRoute> edges;
  std::vector<Part> partitions;
  int num_args = 0;
  int num_rets = 0;
};

// Thread-safe.
class Executable {
 public:
  using StepDone = std::function<void(const Status&, std::vector<Tensor> rets)>;

  // Compiles. `sender` takes what steps send to other tasks; it is null if no edge leaves this task. Throws what
  // kernels throw; NotFoundError for a device that is not in `devices`.
  Executable(ExecutableSpec spec, const DeviceSet& devices, std::unique_ptr<ValueSender> sender);
  // No step may be under way.
  ~Executable();

  const ExecutableKey& key() const { return key_; }
  const std::vector<std::string>& tasks() const { return tasks_; }
  int num_args() const { return num_args_; }

  // `done` is called once, on any thread, perhaps before StartStep returns. Throws InvalidArgumentError for a wrong
  // number of args, AlreadyExistsError for a step that is under way.
  void StartStep(int64_t step, std::vector<Tensor> args, Executor::Mode mode, StepDone done);
  // Whether a step runs from its start to its end without another task and without a kernel that waits.
  bool runs_inline() const { return executors_.size() == 1 && edges_.empty() && executors_.front()->is_synchronous(); }
  // Runs a step of such an executable and returns its results; throws what made it fail. `fill` puts the args in.
  using FillArgs = std::function<void(std::vector<Tensor>& args)>;
  std::vector<Tensor> RunInline(int64_t step, const FillArgs& fill);
  // A value from another task; may come before the step starts. Ignored for a step that has failed.
  void Deliver(int64_t step, EdgeId edge, const Tensor& value);
  // Cancels a step that is under way. One that has not been started is not known: whoever starts steps cancels later.
  void CancelStep(int64_t step, const Status& why);
  // Cancels all, and whatever starts later.
  void CancelAll(const Status& why);
  // Whether a partition of the signature runs on `task`.
  bool UsesTask(const std::string& task) const;
  // Returns when no step is under way; false after `timeout`.
  bool WaitIdle(std::chrono::milliseconds timeout);
  // "step 12: waits for 'dense/MatMul:0' from /job:worker/replica:0/task:1", one line a step under way.
  std::vector<std::string> DescribeSteps();

 private:
  struct Step;
  using StepPtr = std::shared_ptr<Step>;
  StepPtr FindStep(int64_t step) const COHORT_REQUIRES(mu_);  // null where there is none
  StepPtr NewStep(int64_t step) COHORT_REQUIRES(mu_);
  StepPtr FindOrMakeStep(int64_t step) COHORT_REQUIRES(mu_);
  void RetireStep(Step* step) COHORT_REQUIRES(mu_);
  void PartitionDone(Step* step, const Status& status);
  void EndStep(Step* step);
  static void CancelOne(Step& step, const Status& why);

  const ExecutableKey key_;
  const StepOrigin origin_;
  const std::vector<std::string> tasks_;
  const int self_;
  const std::vector<EdgeRoute> edges_;
  const int num_args_;
  const int num_rets_;
  const std::unique_ptr<ValueSender> sender_;
  std::vector<std::unique_ptr<Executor>> executors_;

  Mutex mu_;
  CondVar idle_;
  std::vector<StepPtr> steps_ COHORT_GUARDED_BY(mu_);  // under way, or mentioned before their start: few at a time
  std::vector<StepPtr> pool_ COHORT_GUARDED_BY(mu_);   // nobody else holds these
  std::set<int64_t> failed_ COHORT_GUARDED_BY(mu_);    // the latest ones: their late values are dropped
  Status cancelled_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
