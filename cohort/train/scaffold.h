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

// Ops that the program gives to a Scaffold. The others get TensorFlow's default.
struct COHORT_EXPORT ScaffoldOptions {
  Node* init_op = nullptr;                // default: the initializers of all variables that are not local
  FeedList init_feed;                     // fed to init_op
  std::function<void(Session&)> init_fn;  // called after init_op; not called if a checkpoint was restored
  Node* local_init_op = nullptr;          // default: the initializers of the local variables
  Output ready_op;                        // string [n], the names of variables without a value; default: checks all
  Saver* saver = nullptr;                 // not owned; default: one for all variables
  // Default: an op that merges all summaries of the graph. Output(): no summaries.
  std::optional<Output> summary_op;
  ops::Variable global_step;  // default: the graph's global step, if it has one
};

// The ops of one graph. The program or its Supervisor owns it. Not thread-safe; it does not change after Finalize.
class COHORT_EXPORT Scaffold {
 public:
  explicit Scaffold(ScaffoldOptions options = {}) : options_(std::move(options)) {}

  // Adds the ops that were not given, outside of all scopes, and finalizes the graph. `writes` says whether this
  // process saves checkpoints and summaries. If it does not, no saver and no summary op are made. Requires: it was not
  // called before. Throws what the ops throw.
  void Finalize(Graph& graph, bool writes);

  bool finalized() const { return graph_ != nullptr; }
  Node* init_op() const { return options_.init_op; }
  const FeedList& init_feed() const { return options_.init_feed; }
  const std::function<void(Session&)>& init_fn() const { return options_.init_fn; }
  Node* local_init_op() const { return options_.local_init_op; }
  Output ready_op() const { return options_.ready_op; }
  // Returns null if this process does not save, or if the graph has no variables.
  Saver* saver() const { return options_.saver; }
  // Returns an invalid Output if there is none, or if it needs a value to be fed.
  Output summary_op() const { return options_.summary_op.value_or(Output()); }
  // Returns an invalid variable if the graph has no global step.
  const ops::Variable& global_step() const { return options_.global_step; }

  // Returns the value of the global step, or 0 if there is none.
  int64_t Step(Session& session) const;
  // Returns the names of variables that have no value yet. If `with_local`, also those of local variables.
  std::vector<std::string> Missing(Session& session, bool with_local) const;

 private:
  void ChooseSummaries(Graph& graph);

  ScaffoldOptions options_;
  const Graph* graph_ = nullptr;
  std::unique_ptr<Saver> own_saver_;
};

}  // namespace cohort::train
