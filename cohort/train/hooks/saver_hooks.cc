// The hooks that write files: checkpoints and summaries.
#include <utility>

#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/train/hooks/hook_values.h"
#include "cohort/train/hooks/hooks.h"
#include "cohort/train/session/written_graph.h"

namespace cohort::train {
namespace {

std::string PathIn(const std::string& dir, const std::string& name) {
  if (dir.empty()) throw InvalidArgumentError("[CheckpointSaverHook] expected a folder for checkpoints; got \"\"");
  return dir.ends_with('/') ? dir + name : StrCat(dir, "/", name);
}

}  // namespace

CheckpointSaverHook::CheckpointSaverHook(Options options)
    : options_(std::move(options)),
      path_(PathIn(options_.checkpoint_dir, options_.checkpoint_basename)),
      timer_(options_.every, "CheckpointSaverHook"),
      attempts_(options_.max_save_failures, "CheckpointSaverHook") {
  LogInfo("train", "Create CheckpointSaverHook.");
}

void CheckpointSaverHook::Begin(Graph& graph) {
  global_step_ = RequireGlobalStep(graph, name());
  if (options_.saver == nullptr && options_.scaffold == nullptr) own_saver_ = std::make_unique<Saver>(graph);
  CreateDirectories(options_.checkpoint_dir);
  if (options_.summary_writer == nullptr) {
    options_.summary_writer = std::make_shared<EventWriter>(options_.checkpoint_dir);
  }
  for (const auto& listener : options_.listeners) listener->Begin(graph);
}

Saver& CheckpointSaverHook::saver() const {
  if (options_.saver != nullptr) return *options_.saver;
  if (own_saver_ != nullptr) return *own_saver_;
  if (options_.scaffold->saver() != nullptr) return *options_.scaffold->saver();
  throw FailedPreconditionError(
      "[CheckpointSaverHook] the scaffold has no saver: the graph has no variables, or the session was made with "
      "writes = false");
}

void CheckpointSaverHook::AfterCreateSession(Session& session, Coordinator& coordinator) {
  const int64_t step = ReadStep(session, global_step_);
  if (!std::exchange(wrote_graph_, true) && options_.save_graph_def) {
    WriteFileAtomically(PathIn(options_.checkpoint_dir, "graph.pbtxt"), TextForTensorFlow(session.graph()));
    options_.summary_writer->Graph(BytesForTensorBoard(session.graph()));
  }
  if (timer_.last_step() == step) return;  // a recovery that has lost no step
  if (Save(session, step, /*must=*/false)) coordinator.RequestStop();
}

SessionRunArgs CheckpointSaverHook::BeforeRun(SessionRunContext&) { return {.fetches = {global_step_.value()}}; }

void CheckpointSaverHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  if (!timer_.ShouldTrigger(StepOf(values.results.front()) + 1)) return;
  const int64_t step = ReadStep(context.session(), global_step_);
  if (!timer_.ShouldTrigger(step)) return;
  if (Save(context.session(), step, /*must=*/false)) context.RequestStop();
}

void CheckpointSaverHook::End(Session& session) {
  const int64_t step = ReadStep(session, global_step_);
  if (timer_.last_step() != step || !saved_) Save(session, step, /*must=*/true);
  for (const auto& listener : options_.listeners) listener->End(session, step);
  options_.summary_writer->Flush();
}

bool CheckpointSaverHook::Save(Session& session, int64_t step, bool must) {
  timer_.Update(step);
  LogInfo("train", "Calling checkpoint listeners before saving checkpoint ", step, "...");
  for (const auto& listener : options_.listeners) listener->BeforeSave(session, step);
  LogInfo("train", "Saving checkpoints for ", step, " into ", path_, ".");
  std::string prefix;
  const auto write = [&] { prefix = saver().Save(session, path_, step); };
  if (must) {
    write();
  } else {
    saved_ = attempts_.Try(write);
    if (!saved_) return false;
  }
  options_.summary_writer->SessionLog(SessionStatus::kCheckpoint, step, prefix);
  LogInfo("train", "Calling checkpoint listeners after saving checkpoint ", step, "...");
  bool stop = false;
  for (const auto& listener : options_.listeners) {
    if (!listener->AfterSave(session, step)) continue;
    LogInfo("train", "A CheckpointSaverListener requested that training be stopped.");
    stop = true;
  }
  return stop;
}

SummarySaverHook::SummarySaverHook(Options options)
    : options_(std::move(options)), timer_(options_.every, "SummarySaverHook") {
  if (options_.summary_writer == nullptr && options_.output_dir.empty()) {
    throw InvalidArgumentError("[SummarySaverHook] expected output_dir or summary_writer; got none");
  }
  if (!options_.summary_op.valid() && options_.scaffold == nullptr) {
    throw InvalidArgumentError("[SummarySaverHook] expected summary_op or scaffold; got none");
  }
}

void SummarySaverHook::Begin(Graph& graph) {
  global_step_ = RequireGlobalStep(graph, name());
  if (options_.summary_writer == nullptr) options_.summary_writer = std::make_shared<EventWriter>(options_.output_dir);
}

Output SummarySaverHook::summary() const {
  return options_.summary_op.valid() ? options_.summary_op : options_.scaffold->summary_op();
}

SessionRunArgs SummarySaverHook::BeforeRun(SessionRunContext&) {
  asked_ = timer_.ShouldTrigger(next_step_);
  SessionRunArgs args{.fetches = {global_step_.value()}};
  if (asked_ && summary().valid()) args.fetches.push_back(summary());
  return args;
}

void SummarySaverHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  const int64_t before = StepOf(values.results.front());
  next_step_ = before + 2;  // of the next run, which adds 1 to the step after this run
  if (!asked_) return;
  const int64_t step = ReadStep(context.session(), global_step_);
  if (std::exchange(first_, false)) options_.summary_writer->SessionLog(SessionStatus::kStart, step);
  timer_.Update(step);
  next_step_ = step + 1;
  if (values.results.size() > 1) options_.summary_writer->Summary(values.results[1].scalar<std::string>(), step);
}

void SummarySaverHook::End(Session&) { options_.summary_writer->Flush(); }

}  // namespace cohort::train
