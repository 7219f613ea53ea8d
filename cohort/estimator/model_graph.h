// The graph that one call of an Estimator builds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/checkpoint/saver.h"
#include "cohort/estimator/estimator.h"
#include "cohort/ops/variables.h"
#include "cohort/train/monitored_session.h"

namespace cohort::estimator {

// Used by one thread. The graph must live as long as sessions of it, so an Estimator keeps the object until the call
// ends.
struct ModelGraph {
  // For kEval: adds the mean of the loss over all batches to the metrics.
  void AddMeanLoss();
  // Makes the saver, and the scaffold if the model function has given none.
  void MakeScaffold(const RunConfig& config);
  // Takes in `steps` batches, or all, or as many as the hooks allow. Throws FailedPreconditionError if there are none,
  // and CancelledError if the session was told to stop after SIGTERM.
  void RunMetrics(train::MonitoredSession& session, std::optional<int64_t> steps) const;
  // Returns the global step and the values of all metrics; MetricsOf gives names to what a run has fetched for them.
  std::vector<Output> MetricValues() const;
  EvalMetrics MetricsOf(const RunResults& values) const;

  Graph graph;
  ops::Variable global_step;
  EstimatorSpec spec;
  bool endless = false;  // the data never ends
  std::unique_ptr<Saver> saver;
  std::shared_ptr<train::Scaffold> scaffold;
};

// Throws InvalidArgumentError, which names the field, if the spec lacks what the mode needs.
void CheckSpec(const EstimatorSpec& spec, ModeKeys mode);
// Returns the global step in a checkpoint.
int64_t StepOfCheckpoint(const std::string& prefix);
// Appends one Prediction for each row of a batch. Throws InvalidArgumentError, which names both, if two values have
// different numbers of rows.
void AddExamples(const std::map<std::string, Output>& names, const RunResults& batch, std::vector<Prediction>& all);

}  // namespace cohort::estimator
