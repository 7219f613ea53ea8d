// Exporters: what TrainAndEvaluate exports after evaluations. They follow tf.estimator.Exporter and its subclasses.
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/estimator/estimator.h"

namespace cohort::estimator {

// What is exported after evaluations.
class COHORT_EXPORT Exporter {
 public:
  virtual ~Exporter() = default;
  virtual std::string name() const = 0;
  // Called after each evaluation; `is_final` is true after the last one. Writes into a new folder below `export_path`
  // (model_dir/export/<name>), and returns it. Returns nullopt if it exports nothing now.
  virtual std::optional<std::string> Export(Estimator& estimator, const std::string& export_path,
                                            const std::string& checkpoint_path, const EvalMetrics& metrics,
                                            bool is_final) = 0;
};

// Exports the model once, after the last evaluation. If an export with the same files is there already, which an
// evaluator has made that was killed before it could end, returns that one.
class COHORT_EXPORT FinalExporter final : public Exporter {
 public:
  FinalExporter(std::string name, Estimator::ServingInputFn serving_input_fn);
  std::string name() const override { return name_; }
  std::optional<std::string> Export(Estimator& estimator, const std::string& export_path,
                                    const std::string& checkpoint_path, const EvalMetrics& metrics,
                                    bool is_final) override;

 private:
  const std::string name_;
  const Estimator::ServingInputFn serving_input_fn_;
};

// Exports the model after each evaluation, and keeps the newest exports.
class COHORT_EXPORT LatestExporter final : public Exporter {
 public:
  // Throws InvalidArgumentError if `exports_to_keep` is less than 1.
  LatestExporter(std::string name, Estimator::ServingInputFn serving_input_fn, int exports_to_keep = 5);
  std::string name() const override { return name_; }
  std::optional<std::string> Export(Estimator& estimator, const std::string& export_path,
                                    const std::string& checkpoint_path, const EvalMetrics& metrics,
                                    bool is_final) override;

 private:
  const std::string name_;
  const Estimator::ServingInputFn serving_input_fn_;
  const int exports_to_keep_;
};

}  // namespace cohort::estimator
