// Scaffold: the ops that a training session needs beside the model: to initialize it, to know that it is ready, to save
// and to summarize it. It follows TensorFlow's tf.train.Scaffold.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "cohort/checkpoint/saver.h"
#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"

namespace cohort::train {

// The ops that the program gives to a Scaffold. If an op is not given, Finalize makes TensorFlow's default.
struct COHORT_EXPORT ScaffoldOptions {
  Node* init_op = nullptr;                // default: the initializers of all variables that are not local
  FeedList init_feed;                     // fed to init_op
  std::function<void(Session&)> init_fn;  // called after init_op; not called if a checkpoint was restored
  Node* local_init_op = nullptr;          // default: ops::LocalVariablesInitializer
  // Gives string [n]: the names of the variables that have no value. The default checks all variables, also local ones.
  Output ready_op;
  Saver* saver = nullptr;  // not owned; default: one for all variables that are not local
  // Default: an op that merges all summaries of the graph. Set it to Output() for no summaries.
  std::optional<Output> summary_op;
  ops::Variable global_step;  // default: the graph's global step, if it has one
};

// The ops of one graph. The program or its Supervisor owns it. Only one thread may use it until Finalize has returned.
// After that it does not change, and any thread may call its const methods.
class COHORT_EXPORT Scaffold {
 public:
  explicit Scaffold(ScaffoldOptions options = {}) : options_(std::move(options)) {}

  // Adds the ops that were not given, and finalizes the graph. The device scopes and control dependencies of the caller
  // do not apply to these ops. `writes` says if this process saves checkpoints and summaries. If it does not, there is
  // no saver and no summary op, even if they were given. `summaries` says when the summary op runs. Throws
  // FailedPreconditionError if it was called before. Throws what making the ops throws.
  enum class Summaries {
    kByThemselves,  // in steps of their own, so a summary that needs a fed value is not recorded
    kWithTheStep,   // in the program's steps, with what the program feeds
  };
  void Finalize(Graph& graph, bool writes, Summaries summaries = Summaries::kByThemselves);

  bool finalized() const { return graph_ != nullptr; }
  Node* init_op() const { return options_.init_op; }
  const FeedList& init_feed() const { return options_.init_feed; }
  const std::function<void(Session&)>& init_fn() const { return options_.init_fn; }
  Node* local_init_op() const { return options_.local_init_op; }
  Output ready_op() const { return options_.ready_op; }
  // Returns null if this process does not save, or if no saver was given and all variables of the graph are local.
  Saver* saver() const { return options_.saver; }
  // Returns an Output that is not valid() if this process does not write, if there are no summaries, or if the op runs
  // by itself but needs a fed value (Finalize then logs a warning).
  Output summary_op() const { return options_.summary_op.value_or(Output()); }
  // Returns a variable that is not valid() if the graph has no global step.
  const ops::Variable& global_step() const { return options_.global_step; }

  // Reads the global step with one call of session.Run and returns it, or 0 if there is none.
  int64_t Step(Session& session) const;
  // Runs ready_op and returns the names of the variables that have no value yet. If `with_local` is false, leaves out
  // the names of local variables. Requires: Finalize was called.
  std::vector<std::string> Missing(Session& session, bool with_local) const;

 private:
  void ChooseSummaries(Graph& graph, Summaries summaries);

  ScaffoldOptions options_;
  const Graph* graph_ = nullptr;
  std::unique_ptr<Saver> own_saver_;
};

}  // namespace cohort::train
