#include "cohort/train/hooks/profiler_hook.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/train/hooks/hook_values.h"

namespace cohort::train {

ProfilerHook::ProfilerHook(Options options) : options_(std::move(options)), timer_(options_.every, "ProfilerHook") {
  if (options_.output_dir.empty()) {
    throw InvalidArgumentError("[ProfilerHook] expected the folder of the timelines in output_dir; got \"\"");
  }
}

void ProfilerHook::Begin(Graph& graph) {
  next_step_ = -1;
  global_step_ = RequireGlobalStep(graph, name());
}

SessionRunArgs ProfilerHook::BeforeRun(SessionRunContext&) {
  asked_ = next_step_ >= 0 && timer_.ShouldTrigger(next_step_);
  SessionRunArgs args{.fetches = {global_step_.value()}};
  if (asked_) args.options.trace_level = TraceLevel::kFullTrace;
  return args;
}

void ProfilerHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  const int64_t before = StepOf(values.results.front());
  int64_t step = before + 1;
  if (next_step_ < 0) (void)timer_.Update(before);
  if (asked_) {
    step = ReadStep(context.session(), global_step_);
    (void)timer_.Update(step);
    CreateDirectories(options_.output_dir);
    const std::string path = StrCat(options_.output_dir, "/timeline-", step, ".json");
    WriteFileAtomically(path, ChromeTraceFormat(values.results.run_metadata().step_stats,
                                                {options_.show_dataflow, options_.show_memory}));
    LogInfo("train", "Saved timeline for ", step, " into '", path, "'.");
  }
  next_step_ = step + 1;
}

}  // namespace cohort::train
