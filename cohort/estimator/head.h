// Heads: what an estimator makes of the logits of its model. Internal to canned.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cohort/estimator/canned.h"
#include "cohort/estimator/estimator.h"

namespace cohort::estimator {

class Head {
 public:
  virtual ~Head() = default;
  virtual int64_t logits_dimension() const = 0;
  // Returns the spec of the mode. `logits` are float32 [batch, logits_dimension()]. `minimize` returns the node that
  // makes a training step.
  EstimatorSpec Spec(const ModelFnArgs& args, const Output& logits,
                     const std::function<Node*(const Output& loss)>& minimize) const;

 protected:
  // Throws InvalidArgumentError for the reduction kNone.
  Head(std::string weight_column, losses::Reduction reduction);

  // What the labels and the logits make.
  struct Evaluation {
    Output labels;  // as the metrics take them
    Output losses;  // float32 [batch, n]
  };
  using Outputs = std::map<std::string, Output>;
  using Metrics = std::map<std::string, metrics::Metric>;

 private:
  virtual Outputs Predictions(const Output& logits) const = 0;
  virtual std::map<std::string, Outputs> Exports(const Outputs& predictions) const = 0;
  // Throws InvalidArgumentError if the labels do not fit.
  virtual Evaluation Evaluate(const Output& labels, const Output& logits) const = 0;
  virtual void AddMetrics(const Evaluation& evaluation, const Outputs& predictions, const ops::Operand& weights,
                          Metrics& metrics) const = 0;

  const std::string weight_column_;
  const losses::Reduction reduction_;
};

std::unique_ptr<Head> MakeHead(const ClassifierOptions& options);
std::unique_ptr<Head> MakeHead(const RegressorOptions& options);

}  // namespace cohort::estimator
