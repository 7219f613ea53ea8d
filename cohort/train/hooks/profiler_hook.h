// ProfilerHook: writes timelines of some steps of its session.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/timeline.h"
#include "cohort/train/hooks/step_timer.h"
#include "cohort/train/session_run_hook.h"

namespace cohort::train {

// Traces a run as often as `every` says, and writes its timeline as OUTPUT_DIR/timeline-STEP.json (ChromeTraceFormat),
// where STEP is the global step after the run. The timeline has the run of this session on all of its tasks, and
// nothing of other workers. The first run is not traced: the steps, or the time, are counted from it. It follows
// TensorFlow's tf.train.ProfilerHook, but does not write the trace to an event file.
class COHORT_EXPORT ProfilerHook final : public SessionRunHook {
 public:
  struct Options {
    Every every;  // TensorFlow's save_steps and save_secs: exactly one of the two must be set
    std::string output_dir = ".";
    bool show_dataflow = true;
    bool show_memory = false;
  };
  // Throws InvalidArgumentError if output_dir is "", and what StepTimer throws.
  explicit ProfilerHook(Options options);
  void Begin(Graph& graph) override;
  SessionRunArgs BeforeRun(SessionRunContext& context) override;
  // Throws what writing the file throws.
  void AfterRun(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  const Options options_;
  StepTimer timer_;
  ops::Variable global_step_;
  bool asked_ = false;      // this run is traced
  int64_t next_step_ = -1;  // the global step after the next run, if only this worker trains; -1: no run has ended
};

}  // namespace cohort::train
