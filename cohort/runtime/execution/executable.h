// Executable: the part of one signature that one task runs. If nodes of the signature are placed on a device of the
// task, the executable has a partition for this device. It also knows the steps that are running.
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
#include "cohort/runtime/running_step.h"

namespace cohort {

// Identifies an executable: the session, and a number within the session.
struct ExecutableKey {
  uint64_t session = 0;
  int32_t id = 0;
  // clang-tidy 14 takes the 0 in a comparison by <=> for a pointer.
  friend auto operator<=>(const ExecutableKey&, const ExecutableKey&) = default;  // NOLINT(modernize-use-nullptr)
};

// The description from which a task makes an Executable. A SignatureBuilder makes it and gives it to
// TaskClient::Register.
struct ExecutableSpec {
  struct Part {
    std::string device;            // a full name
    std::unique_ptr<Graph> graph;  // with _Arg, _Retval, _Send, _Recv
  };
  ExecutableKey key;
  ClientId client;                 // the process of the session's master; empty: the task's own process
  std::vector<std::string> tasks;  // "/job:ps/replica:0/task:0"; EdgeRoute has indices into it
  int self = 0;                    // index of the task that runs it
  std::vector<EdgeRoute> edges;
  std::vector<Part> partitions;
  int num_args = 0;
  int num_rets = 0;
};

// The part of one signature that one task runs. A LocalTask owns it until the session closes. A step or a caller may
// keep it longer, perhaps longer than the devices live, so the LocalTask calls Discard when it gives the executable up.
// Thread-safe.
class Executable {
 public:
  using StepDone = std::function<void(const Status&, std::vector<Tensor> rets)>;

  // Compiles the partitions. `sender` sends values of steps to other tasks. It is null if no edge leaves this task.
  // Throws what CompilePlan throws, such as errors of kernels' constructors, and NotFoundError if `devices` lacks a
  // device. `devices` must live until Discard has returned, or longer than the executable.
  Executable(ExecutableSpec spec, const DeviceSet& devices, std::unique_ptr<ValueSender> sender);
  // Requires: no step is running.
  ~Executable();

  const ExecutableKey& key() const { return key_; }
  const std::vector<std::string>& tasks() const { return tasks_; }
  int num_args() const { return num_args_; }
  // Returns the process of the session's master.
  const ClientId& client() const { return origin_.client; }

  // Starts a step. Calls `done` once, on any thread, perhaps before StartStep returns. Throws InvalidArgumentError if
  // the number of args is wrong, and AlreadyExistsError if a step of this number is running. If it throws, it does not
  // call `done`. If `start.repeat`, runs the step again each time it has ended without an error, until it fails or is
  // cancelled, and then calls `done`. Throws InvalidArgumentError if such a step has arguments or results, or if there
  // is more than one partition or an edge.
  void StartStep(const StepStart& start, std::vector<Tensor> args, Executor::Mode mode, StepDone done);
  // Returns whether RunInline can run the steps. It can if there is one partition, no edge to or from another
  // partition, and no kernel that waits.
  bool runs_inline() const { return runs_inline_; }
  // Runs a step, waits for its end and returns its results. Calls `fill` first, on the calling thread, to add the
  // arguments. `next` is as in StepRecordings::Run. Throws the error that made the step fail, or the error that was
  // given to CancelAll. Requires: runs_inline().
  using FillArgs = std::function<void(std::vector<Tensor>& args)>;
  std::vector<Tensor> RunInline(int64_t step, const FillArgs& fill, const Executor::NextArgs& next = {});
  // Does what StepRecordings::DropNext does, for all partitions.
  void DropNext() COHORT_EXCLUDES(mu_);
  // Gives a value from another task to a step. The value may come before the step starts. Ignores the value if the step
  // has failed or CancelAll was called. Throws InvalidArgumentError if the edge does not end at this task, and
  // InternalError if the value comes a second time.
  void Deliver(int64_t step, EdgeId edge, const Tensor& value);
  // Cancels a step that is running. Does nothing if the step has not started, so the caller must start steps before it
  // cancels them.
  void CancelStep(int64_t step, const Status& why);
  // Cancels all steps that are running. Steps that start later fail with the `why` of the first call of CancelAll.
  void CancelAll(const Status& why);
  // Returns whether the signature has a partition on the task with this name. It may be this task or another task.
  bool UsesTask(const std::string& task) const;
  // Waits until no step is running and no value for a later step is kept. Returns false if this takes longer than
  // `timeout`.
  bool WaitIdle(std::chrono::milliseconds timeout);
  // Frees what uses the devices: plans, kernels, and the memory of steps. Requires: CancelAll was called, and then
  // WaitIdle returned true. So no step runs, and none starts any more.
  void Discard();
  // Returns one line for each step that is running or for which a value has come: "step 12: running", or "step 12:
  // waits for dense/MatMul:0". A step that has a value but was not started also shows "running".
  std::vector<std::string> DescribeSteps();
  // Adds the steps that have started and not ended to `steps`, with `since` and `progress` unset. Waits for no kernel.
  void AppendRunning(std::vector<RunningStep>* steps) COHORT_EXCLUDES(mu_);
  // Returns how many steps have ended, also those that have failed.
  int64_t num_ended_steps();

 private:
  struct Step;
  using StepPtr = std::shared_ptr<Step>;
  StepPtr FindStep(int64_t step) const COHORT_REQUIRES(mu_);  // null if there is none
  const StepPtr& NewStep(int64_t step) COHORT_REQUIRES(mu_);  // valid until steps_ changes
  StepPtr FindOrMakeStep(int64_t step) COHORT_REQUIRES(mu_);
  void RetireStep(Step* step) COHORT_REQUIRES(mu_);
  // Tells the resources of the task that the step, which still runs, has failed.
  void TellFailure(int64_t step);
  // Starts all partitions of a step that was made ready. If the step ends at once and is repeated, starts it again.
  void RunPartitions(Step* step, Executor::Mode mode, const Executor::NextArgs* next);
  // Returns whether the step's last partition has ended. Then the caller must end the step, or run it again.
  static bool PartitionDone(Step* step, const Status& status);
  // Returns whether the step, which has ended, is to run again. If not, the caller must end the step.
  bool RunsAgain(Step* step) COHORT_EXCLUDES(mu_);
  void EndStep(Step* step);
  static void CancelOne(Step& step, const Status& why);
  RunningOperation OperationOf(const RunLook::Doing& doing, const std::string& device) const;

  const ExecutableKey key_;
  const StepOrigin origin_;
  const std::vector<std::string> tasks_;
  const int self_;
  const std::vector<EdgeRoute> edges_;
  const int num_args_;
  const int num_rets_;
  const std::unique_ptr<ValueSender> sender_;
  // Constant until Discard, which holds mu_ when it changes it. So the thread of a step needs no lock, and other
  // threads need mu_.
  std::vector<std::unique_ptr<Executor>> executors_;
  bool runs_inline_ = false;

  Mutex mu_;
  CondVar idle_;
  std::vector<StepPtr> steps_ COHORT_GUARDED_BY(mu_);  // running, or with an early value
  std::vector<StepPtr> pool_ COHORT_GUARDED_BY(mu_);   // steps that can be used again; nothing else holds them
  std::set<int64_t> failed_ COHORT_GUARDED_BY(mu_);    // the latest failed steps, whose late values are ignored
  Status cancelled_ COHORT_GUARDED_BY(mu_);
  int64_t ended_steps_ COHORT_GUARDED_BY(mu_) = 0;
};

}  // namespace cohort
