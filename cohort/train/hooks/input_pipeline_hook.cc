#include "cohort/train/hooks/input_pipeline_hook.h"

#include <utility>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::train {

CheckpointInputPipelineHook::CheckpointInputPipelineHook(Options options) : options_(std::move(options)) {
  if (options_.checkpoint_dir.empty()) {
    throw InvalidArgumentError("[CheckpointInputPipelineHook] expected the folder of the checkpoints; got \"\"");
  }
  if (options_.look_interval.count() < 0) {
    throw InvalidArgumentError(StrCat("[CheckpointInputPipelineHook] expected a look_interval of at least 0; got ",
                                      options_.look_interval.count(), " ms"));
  }
}

void CheckpointInputPipelineHook::Begin(Graph& graph) {
  saver_ = std::make_unique<IteratorSaver>(graph,
                                           IteratorSaverOptions{.task = options_.task, .is_chief = options_.is_chief});
  if (saver_->iterators().empty()) {
    LogInfo("train", "CheckpointInputPipelineHook: the graph has no iterator of this process ('", options_.task,
            "'), so no position is saved");
  }
}

void CheckpointInputPipelineHook::AfterCreateSession(Session& session, Coordinator&) {
  const CheckpointCandidates candidates = FindCheckpoints(options_.checkpoint_dir);
  for (const auto* list : {&candidates.named, &candidates.others}) {
    for (const std::string& prefix : *list) {
      if (!saver_->Restore(session, prefix)) continue;
      LogInfo("train", "Input goes on at the positions beside ", prefix);
      saved_ = prefix;
      return Look(session);
    }
  }
  Look(session);
}

void CheckpointInputPipelineHook::AfterRun(SessionRunContext& context, const SessionRunValues&) {
  if (Clock::now() - last_look_ >= options_.look_interval) Look(context.session());
}

void CheckpointInputPipelineHook::End(Session& session) { Look(session); }

void CheckpointInputPipelineHook::Look(Session& session) {
  last_look_ = Clock::now();
  const std::string newest = LatestCheckpoint(options_.checkpoint_dir);
  if (newest.empty() || newest == saved_) return;
  saver_->Save(session, newest);
  saved_ = newest;
}

}  // namespace cohort::train
