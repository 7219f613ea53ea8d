// StepRecordings: runs the steps of a plan from recordings, on a device that can record steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/recorded_step.h"
#include "cohort/device/step.h"
#include "cohort/runtime/plan/plan.h"

namespace cohort {

// Runs the steps of one plan. The first step with feeds of certain shapes is launched: its kernels are called one by
// one. The second one is recorded (RecordedStep), and this step and later ones are enqueued from the recording. At most
// kMostShapes recordings are kept; the one that was used least recently goes first. If recordings serve few steps,
// later ones are made only when more steps of the same shapes have been launched.
//
// A step is launched, too, if it is traced or is an attempt of a closure, if updates are observed, if the update gate
// is closed, if a variable is in use elsewhere, and if config::StepRecordingEnabled() is false. If the plan cannot be
// recorded, or a recording fails, all its steps are launched from then on, and one line of the log says why.
//
// Steps that may use a recording take turns: one ends before the next one begins. So a recording has one place for each
// feed and each fetched value. While one runs, the args of the next one are copied to the device if they are known, and
// if there is free memory for them. Such a copy is for the next step only: later, the program may have written into the
// tensor. The executor of a partition owns the object, and keeps it until all steps have ended. Thread-safe.
class StepRecordings {
 public:
  using Done = std::function<void(const Status&)>;
  // Launches a step on the calling thread. The second form calls its Done once, when the step has ended.
  using LaunchSync = std::function<Status()>;
  using LaunchAsync = std::function<void(StepMode, Done)>;
  // Returns the args that the next step will probably have, or none if they are not known. It must neither wait nor run
  // a step. Nobody may write into the tensors until a later step has ended without an error, or DropNext was called.
  using NextArgs = std::function<std::vector<Tensor>()>;

  static constexpr size_t kMostShapes = 8;

  // Returns null if the device of the plan records no steps. The plan must live longer than the object.
  static std::unique_ptr<StepRecordings> For(const Plan& plan);
  StepRecordings(const Plan& plan, StepRecorder& recorder);
  ~StepRecordings();

  // Runs a step and returns its outcome. Waits for the turn and for the stream; both end, because no kernel of a plan
  // that can be recorded waits. If the step comes from a recording, calls `next`, if it is not empty, on this thread
  // while the step runs. If that throws, or the args cannot be copied, the next step copies its args itself.
  Status Run(const StepInfo& step, const LaunchSync& launch, const NextArgs& next);
  // Starts a step, and calls `done` when it has ended. `step` must be valid until then. In mode kInline the calling
  // thread waits a short time for the stream. In other modes the compute thread does the work. `next` may be null, and
  // is used as by Run, but only in mode kInline, before Start returns, and if no other step has the turn.
  void Start(const StepInfo& step, StepMode mode, Done done, LaunchAsync launch, const NextArgs* next);
  // Says that the args that a NextArgs has returned do not come, or have changed. Frees their copies if no step runs;
  // a step that runs has freed them. Does not wait.
  void DropNext();

 private:
  struct Entry;

  // Returns whether the step may come from a recording, and so has to take its turn.
  bool Wants(const StepInfo& step);
  void Refuse(const std::string& why);
  // Returns "the steps of ..." for the log.
  std::string DescribeSteps() const;

  // Returns true if the caller has the turn now. Otherwise keeps `go`, which gets the turn later: it is then called on
  // the compute thread, or, if it is `direct`, on the thread that ends the turn before it.
  bool TakeTurn(bool direct, std::function<void()> go);
  void EndTurn();

  // The functions below are called by the step that has the turn.

  // Enqueues the step from a recording, and sets current_. Returns false if the step has to be launched.
  bool Enqueue(const StepInfo& step);
  // Begins to copy the args of the next step to the device.
  void CopyAhead(const StepInfo& step, const NextArgs& next);
  // Returns the args of the step, with the copies of CopyAhead in the places of those that they are copies of. Lets go
  // of the other copies. The result is valid until the turn ends.
  std::span<const Tensor> TakeCopies(const StepInfo& step);
  Entry& Find(std::span<const Tensor> args);
  bool Matches(const Entry& entry, std::span<const Tensor> args) const;
  // Records the step. Returns false if that fails.
  bool Record(const StepInfo& step);
  void EnqueueNodes(StepRecorder::Recording& recording, std::span<const Tensor> args) const;
  // Says that a step that was launched has ended.
  void Launched(const Status& status);
  // Called when the event behind a step that was enqueued is reached, or the device has failed.
  Status Ended(const StepInfo& step, const Status& of_device);

  void Begin(const StepInfo& step, StepMode mode, Done done, const LaunchAsync& launch, const NextArgs* next);

  const Plan& plan_;
  StepRecorder& recorder_;
  struct Arg {
    size_t index;  // in StepInfo::args
    bool on_host;  // kernels read its value on the host, so a recording is for one value
  };
  std::vector<Arg> args_;
  std::string why_not_;  // empty: the plan can be recorded
  std::atomic<bool> refused_{false};
  std::atomic<int64_t> steps_{0};  // of a plan that cannot be recorded; counts until the log has said so
  // Grows when copies that were made before must not be used any more: a step was launched without a turn, or DropNext
  // was called.
  std::atomic<int64_t> copies_end_{0};

  Mutex mu_;
  struct Waiting {
    bool direct;
    std::function<void()> go;
  };
  bool taken_ COHORT_GUARDED_BY(mu_) = false;
  std::deque<Waiting> waiting_ COHORT_GUARDED_BY(mu_);

  // Belong to the step that has the turn.
  std::vector<std::unique_ptr<Entry>> entries_;  // the one that was used most recently is the last
  Entry* current_ = nullptr;                     // of the step
  int failures_ = 0;                             // recordings in a row that failed, but may succeed later
  int64_t patience_ = 1;                         // so many steps of an entry are launched before one is recorded
  int64_t records_ = 0;                          // recordings that were made since patience_ has changed
  int64_t replays_ = 0;                          // steps that came from them
  struct Ahead {
    size_t index;  // in StepInfo::args
    Tensor value;
    Tensor copy;  // on the device
  };
  std::vector<Ahead> ahead_;         // for the next step
  int64_t ahead_begin_ = 0;          // copies_end_ before the copies were made
  int without_copies_ = 0;           // so many steps make no copies, because there was too little memory
  bool told_no_room_ = false;        // the log has said so
  std::vector<Tensor> with_copies_;  // TakeCopies
};

}  // namespace cohort
