// PlanRun: one member's part in one execution of a collective - its plan, its memory, the messages that wait for it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/call.h"
#include "cohort/collective/plan.h"
#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"

namespace cohort::collective {

// What a run needs of its group. Thread-safe; outlives the run's work.
class RunHost {
 public:
  virtual ~RunHost() = default;
  virtual int size() const = 0;
  // "rank 2 (/job:worker/replica:0/task:2/device:CPU:0)".
  virtual std::string DescribeRank(int rank) const = 0;
  virtual void Post(int from, int to, const CallId& call, int32_t sequence, const Signature& signature,
                    uint64_t schedule, Tensor tensor) = 0;
  // Runs it on a thread that may compute for long.
  virtual void Schedule(std::function<void()> work) = 0;
  // ScheduleBook::Agree. Where it is false and the group goes on, CheckSchedules is called later.
  virtual bool Agree(int rank, uint64_t ours, int other, uint64_t theirs) = 0;
  // The group fails, and with it every run.
  virtual void Fail(const Status& why) = 0;
  // Why nothing more comes from a member; ok while something may.
  virtual Status WhyGone(int rank) const = 0;
  // The run has ended; called before its `done`.
  virtual void Retire(int rank, const CallId& call) = 0;
};

// Thread-safe. Begins as a box for messages that come early.
class PlanRun final : public Pending, public std::enable_shared_from_this<PlanRun> {
 public:
  using Clock = std::chrono::steady_clock;

  PlanRun(RunHost& host, int rank, const CallId& call) : host_(host), rank_(rank), call_(call) {}

  // What this member brings. The plan's counts fit `input`.
  struct Job {
    std::string name;
    Signature signature;
    std::shared_ptr<const Plan> plan;
    Tensor input;
    Shape output_shape;
    Communicator::Done done;
    uint64_t schedule = 0;  // fingerprint; 0: none
  };
  // At most once.
  void Start(Job job);
  // A message from a peer, before or after Start. `here`: what it allows may be computed on this thread, where that is
  // little.
  void Deliver(int from, int32_t sequence, const Signature& signature, uint64_t schedule, Tensor tensor, bool here);
  // Fails the group where this run waits for a member that is gone.
  void CheckPeers() EXCLUDES(mu_);
  // A member's schedule has been found to agree: what has waited for that goes on.
  void CheckSchedules() EXCLUDES(mu_);
  // Ends a run that has been started, unless it has ended; a step that is being computed ends first.
  void Fail(const Status& why);

  std::string Describe() const override EXCLUDES(mu_);
  std::string DescribeWait() const override EXCLUDES(mu_);

 private:
  using Key = std::pair<int, int32_t>;  // sender, sequence
  struct Early {
    int from;
    Signature signature;
    uint64_t schedule;
  };
  // A member with another schedule: the run does not end before the two have been found to agree.
  struct Doubt {
    int from;
    uint64_t schedule;
    Status different;  // what is wrong where they agree
  };

  std::string DescribeLocked() const REQUIRES(mu_);
  void FailGroup(const Status& why) EXCLUDES(mu_);
  // Where a peer brings something else. Where it runs by another schedule too this is left for when schedules have been
  // compared, which names their first difference: ok then, and `left` is set.
  Status Compare(const Early& theirs, bool* left) REQUIRES(mu_);
  void SettleDoubts() EXCLUDES(mu_);
  bool CanMove() const REQUIRES(mu_);
  // Here or on a thread of the host.
  void PumpSomewhere(bool here) EXCLUDES(mu_);
  void Pump() EXCLUDES(mu_);
  // The sends that nothing has to come before.
  void SendFirst() EXCLUDES(mu_);
  void PrepareMemory();
  void Execute(const PlanStep& step, Tensor received);
  void Reduce(const PlanStep& step, const Tensor& received);
  Tensor View(const Place& place, int64_t count) const;
  char* Address(const Place& place) const;
  DType TypeIn(Space space) const;
  void End(const Status& status);

  RunHost& host_;
  const int rank_;
  const CallId call_;

  mutable Mutex mu_;
  std::map<Key, Tensor> inbox_ GUARDED_BY(mu_);
  std::vector<Early> early_ GUARDED_BY(mu_);  // of messages before Start
  std::vector<Doubt> doubts_ GUARDED_BY(mu_);
  bool started_ GUARDED_BY(mu_) = false;
  bool running_ GUARDED_BY(mu_) = false;  // a thread is in Pump, or on its way there
  bool ended_ GUARDED_BY(mu_) = false;
  Status failed_ GUARDED_BY(mu_);
  size_t next_ GUARDED_BY(mu_) = 0;

  // Set by Start, then of the thread that pumps.
  Job job_;
  bool large_ = false;
  Tensor output_;
  Tensor scratch_;
};

}  // namespace cohort::collective
