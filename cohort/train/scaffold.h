// Scaffold: the ops around a model that a training session needs - to initialize it, to know that it is ready, to save
// and to summarize it. After TensorFlow's tf.train.Scaffold.
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

// What a program gives to a Scaffold; everything else gets TensorFlow's default.
struct COHORT_EXPORT ScaffoldOptions {
  Node* init_op = nullptr;                // default: the initializers of all variables that are not local
  FeedList init_feed;                     // fed to init_op
  std::function<void(Session&)> init_fn;  // called after init_op; not called if a checkpoint was restored
  Node* local_init_op = nullptr;          // default: the initializers of the local variables
  Output ready_op;                        // string [n], names of what is missing; default: variables without a value
  Saver* saver = nullptr;                 // not owned; default: one for all variables
  // Default: all summaries of the graph merged into one. Output(): none.
  std::optional<Output> summary_op;
  ops::Variable global_step;  // default: the graph's global step, if it has one
};

// One a graph. Not thread-safe; constant after Finalize.
class COHORT_EXPORT Scaffold {
 public:
  explicit Scaffold(ScaffoldOptions options = {}) : options_(std::move(options)) {}

  // Adds the ops that were not given, outside of all scopes, and finalizes the graph. `writes`: whether this process
  // saves checkpoints and summaries; if not, no saver and no summary op are made. Requires: not called before. Throws
  // what the ops throw.
  void Finalize(Graph& graph, bool writes);

  bool finalized() const { return graph_ != nullptr; }
  Node* init_op() const { return options_.init_op; }
  const FeedList& init_feed() const { return options_.init_feed; }
  const std::function<void(Session&)>& init_fn() const { return options_.init_fn; }
  Node* local_init_op() const { return options_.local_init_op; }
  Output ready_op() const { return options_.ready_op; }
  // Null if this process does not save, or the graph has no variables.
  Saver* saver() const { return options_.saver; }
  // Invalid if there is none, or if it needs a value to be fed.
  Output summary_op() const { return options_.summary_op.value_or(Output()); }
  // Invalid if the graph has none.
  const ops::Variable& global_step() const { return options_.global_step; }

  // The value of the global step; 0 if there is none.
  int64_t Step(Session& session) const;
  // The names of what has no value yet; `with_local`: also of local variables.
  std::vector<std::string> Missing(Session& session, bool with_local) const;

 private:
  void ChooseSummaries(Graph& graph);

  ScaffoldOptions options_;
  const Graph* graph_ = nullptr;
  std::unique_ptr<Saver> own_saver_;
};

}  // namespace cohort::train
