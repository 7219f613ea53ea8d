// ProgressWatch: fails the steps of a session that make no progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/core/process/hung_thread.h"
#include "cohort/runtime/step_call.h"

namespace cohort {

// Looks at the steps of one session every quarter of the limit. A step makes progress if a kernel of it starts or ends
// on any of its tasks, or if bytes of it arrive. If a step has made none for the limit, and does not only wait for
// other steps (WaitsForOthers), the watch asks the tasks what they do, and fails the step with their answers. A kernel
// of this process that does not return cannot be ended: if the step was started with a StepCall, the call ends without
// it, a second later. If the calling thread itself runs the kernel, its run ends when the kernel returns; the log has
// the error. The Master owns it. Thread-safe. Stop or the destructor ends it.
class ProgressWatch {
 public:
  using Calls = std::function<std::vector<std::shared_ptr<StepCall>>()>;

  // If `limit` is 0, nothing is watched. `started_calls` returns the calls of Session::RunAsync that have not ended.
  ProgressWatch(std::chrono::milliseconds limit, Calls started_calls);
  // Calls Stop and joins the thread, unless the caller is the thread.
  ~ProgressWatch();
  ProgressWatch(const ProgressWatch&) = delete;
  ProgressWatch& operator=(const ProgressWatch&) = delete;

  // Starts the thread, if it does not run. From now on, watches also the steps of `inline_part`
  // (Executable::RunInline), if that is not empty.
  void Watch(const std::weak_ptr<Executable>& inline_part) COHORT_EXCLUDES(mu_);
  // Makes the thread end, but does not wait for it. Later calls of Watch do nothing.
  void Stop() COHORT_EXCLUDES(mu_);

  // Watches a call of Session::Run as long as the scope exists.
  class Scope {
   public:
    Scope(ProgressWatch& watch, const std::shared_ptr<StepCall>& call) : watch_(watch), call_(*call) {
      watch_.Add(call);
    }
    ~Scope() { watch_.Remove(call_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ProgressWatch& watch_;
    const StepCall& call_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  // What is known of a step.
  struct Track {
    bool asked = false;  // `stamp` is set
    uint64_t stamp = 0;
    Clock::time_point progress;   // the time of the look that has found the stamp
    Clock::time_point failed_at;  // when the watch has failed it; time_point(): it has not
    Status why;
    bool abandoned = false;
    std::shared_ptr<HungThread> hung;  // set if the thread that called Run does not return
  };
  using Tracks = std::map<int64_t, Track>;  // by the number of the step

  void Add(const std::shared_ptr<StepCall>& call) COHORT_EXCLUDES(mu_);
  void Remove(const StepCall& call) COHORT_EXCLUDES(mu_);
  void Loop() COHORT_EXCLUDES(mu_);
  // Looks at all steps. `before` is what the last look has found.
  Tracks Look(const Tracks& before) COHORT_EXCLUDES(mu_);
  void LookAtCall(const std::shared_ptr<StepCall>& call, Track* track);
  void LookAtInline(const std::shared_ptr<Executable>& executable, const RunningStep& step, Track* track);
  // Records the stamp. Returns whether the step is late.
  bool IsLate(uint64_t stamp, Track* track) const;
  std::string LateText(int64_t step, const Track& track) const;
  bool stopped() COHORT_EXCLUDES(mu_);

  const std::chrono::milliseconds limit_;
  const std::chrono::milliseconds period_;
  const Calls started_calls_;
  Mutex mu_;
  CondVar changed_;
  std::vector<std::shared_ptr<StepCall>> calls_ COHORT_GUARDED_BY(mu_);  // of Session::Run
  std::vector<std::weak_ptr<Executable>> inline_parts_ COHORT_GUARDED_BY(mu_);
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
  std::thread thread_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
