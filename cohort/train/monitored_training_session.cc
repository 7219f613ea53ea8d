#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/graph_iterator.h"
#include "cohort/train/hooks/hooks.h"
#include "cohort/train/hooks/input_pipeline_hook.h"
#include "cohort/train/monitored_session.h"

namespace cohort::train {
namespace {

using Hooks = std::vector<std::shared_ptr<SessionRunHook>>;

// Returns what `steps` and `interval` mean together; neither field is set if both are off.
Every Resolve(const std::string& what, std::optional<int64_t> steps, std::optional<std::chrono::milliseconds> interval,
              const Every& standard) {
  if (!steps && !interval) return standard;
  if (steps.value_or(0) < 0 || interval.value_or(std::chrono::milliseconds(0)).count() < 0) {
    throw InvalidArgumentError(StrCat("[MonitoredTrainingSession] expected ", what, "_steps and ", what,
                                      "_interval of at least 0; got ", steps.value_or(0), " and ",
                                      interval.value_or(std::chrono::milliseconds(0)).count(), " ms"));
  }
  if (steps && *steps == 0) steps.reset();
  if (interval && interval->count() == 0) interval.reset();
  if (steps && interval) {
    throw InvalidArgumentError(StrCat("[MonitoredTrainingSession] expected one of ", what, "_steps and ", what,
                                      "_interval; got both: ", *steps, " and ", interval->count(), " ms"));
  }
  return {steps, interval};
}

bool IsOn(const Every& every) { return every.steps.has_value() || every.interval.has_value(); }

// Adds the hook that saves positions of input, if this process needs one.
void AddInputHook(const Graph& graph, const MonitoredTrainingSessionOptions& options, Hooks* hooks) {
  if (!options.save_input_positions || options.checkpoint_dir.empty()) return;
  if (!options.is_chief && options.server == nullptr) return;
  if (data::GraphIteratorHandles(graph).empty()) return;
  for (const Hooks* given : {&options.hooks, &options.chief_only_hooks}) {
    for (const auto& hook : *given) {
      if (std::dynamic_pointer_cast<CheckpointInputPipelineHook>(hook) != nullptr) return;
    }
  }
  const Server* server = options.server;
  hooks->push_back(std::make_shared<CheckpointInputPipelineHook>(CheckpointInputPipelineHook::Options{
      .checkpoint_dir = options.checkpoint_dir,
      .task = server == nullptr ? "" : StrCat("/job:", server->job(), "/task:", server->task()),
      .is_chief = options.is_chief}));
}

Hooks HooksOfChief(const Graph& graph, const MonitoredTrainingSessionOptions& options,
                   const std::shared_ptr<Scaffold>& scaffold) {
  const Every checkpoints = Resolve("save_checkpoint", options.save_checkpoint_steps, options.save_checkpoint_interval,
                                    {.interval = std::chrono::minutes(10)});
  const Every summaries =
      Resolve("save_summaries", options.save_summaries_steps, options.save_summaries_interval, {.steps = 100});
  Hooks hooks = options.chief_only_hooks;
  const std::string& summary_dir = options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir;
  std::shared_ptr<EventWriter> writer;
  if (!summary_dir.empty()) {
    writer = std::make_shared<EventWriter>(summary_dir);
    if (options.log_step_count_steps > 0) {
      hooks.push_back(std::make_shared<StepCounterHook>(
          StepCounterHook::Options{.every = {.steps = options.log_step_count_steps}, .summary_writer = writer}));
    }
    if (IsOn(summaries)) {
      hooks.push_back(std::make_shared<SummarySaverHook>(
          SummarySaverHook::Options{.every = summaries, .summary_writer = writer, .scaffold = scaffold}));
    }
  }
  if (!options.checkpoint_dir.empty() && IsOn(checkpoints)) {
    hooks.push_back(std::make_shared<CheckpointSaverHook>(
        CheckpointSaverHook::Options{.checkpoint_dir = options.checkpoint_dir,
                                     .every = checkpoints,
                                     .scaffold = scaffold,
                                     .save_graph_def = options.save_graph_def,
                                     .summary_writer = summary_dir == options.checkpoint_dir ? writer : nullptr}));
    AddInputHook(graph, options, &hooks);
  }
  hooks.insert(hooks.end(), options.hooks.begin(), options.hooks.end());
  return hooks;
}

}  // namespace

MonitoredSession MonitoredTrainingSession(Graph& graph, const MonitoredTrainingSessionOptions& options) {
  SessionCreatorOptions creator{
      .scaffold = options.scaffold != nullptr ? options.scaffold : std::make_shared<Scaffold>(),
      .master = options.master,
      .config = options.config,
      .checkpoint_dir = options.checkpoint_dir,
      .max_wait = options.max_wait,
      .chief_wait = options.chief_wait,
      .server = options.server};
  MonitoredSessionOptions session{.hooks = {}, .stops_on_sigterm = true, .stop_grace = options.stop_grace};
  if (!options.is_chief) {
    AddInputHook(graph, options, &session.hooks);
    session.hooks.insert(session.hooks.end(), options.hooks.begin(), options.hooks.end());
    return MonitoredSession(graph, std::make_unique<WorkerSessionCreator>(graph, std::move(creator)),
                            std::move(session));
  }
  session.hooks = HooksOfChief(graph, options, creator.scaffold);
  session.writes = !options.checkpoint_dir.empty() || !options.summary_dir.empty();
  return MonitoredSession(graph, std::make_unique<ChiefSessionCreator>(graph, std::move(creator)), std::move(session));
}

}  // namespace cohort::train
