// Estimators whose model functions are here: DNNClassifier, DNNRegressor, LinearClassifier, LinearRegressor, and
// DNNLinearCombinedClassifier and DNNLinearCombinedRegressor (wide and deep). They are those of
// tf.compat.v1.estimator: names and defaults of the options, names of variables, losses, metrics and predictions, so
// that checkpoints of one are read by the other. (The slots of the optimizers, too, of wide and deep models; those of
// the others have other names in TensorFlow.)
//
//   namespace fc = cohort::feature_column;
//   estimator::DNNClassifier model({.hidden_units = {64, 32}, .feature_columns = {fc::NumericColumn("age"), ...}},
//                                  {.model_dir = "model"});
//   model.Train([] { return estimator::Input(dataset, {"age", "job"}); }, {.steps = 1000});
//
// The input function gives the names of the features. Labels are [batch] or [batch, 1]; those of a regressor with
// label_dimension n > 1 are [batch, n]. With two classes they may be any numbers in [0, 1].
//
// A training writes the summaries "loss" and "average_loss". Those of layers, which TensorFlow has, are not written.
//
// Predictions of classifiers: "logits", "probabilities", "class_ids", "classes" (strings), "all_class_ids" and
// "all_classes"; with two classes, also "logistic". Of regressors: "predictions". Metrics of all: "average_loss"; of
// classifiers "accuracy"; with two classes, also "accuracy_baseline", "auc", "auc_precision_recall", "precision",
// "recall", "prediction/mean" and "label/mean"; of regressors the last two.
//
// ExportModel writes the signatures "serving_default" and "predict", and "classification" (outputs "classes" and
// "scores") or "regression" (output "outputs"), or both with two classes. Their inputs are the features, and a server
// calls all of them by Predict.
//
// In a cluster with several parameter servers, tables of 128 MiB and more are cut into parts of at least 64 MiB, which
// go to the servers in turn.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/estimator/estimator.h"
#include "cohort/estimator/feature_columns.h"
#include "cohort/ops/partitioned_variables.h"
#include "cohort/train/optimizer.h"

namespace cohort::estimator {

// Makes an optimizer for the graph of one training: [](Graph&) { return std::make_shared<train::AdamOptimizer>(1e-3); }
using OptimizerFn = std::function<std::shared_ptr<train::Optimizer>(Graph& graph)>;
using feature_column::ColumnPtr;

// What a classifier makes of its logits. The constructors throw InvalidArgumentError for n_classes < 2, and for a
// vocabulary of another length than n_classes, or with equal entries.
struct COHORT_EXPORT ClassifierOptions {
  int64_t n_classes = 2;
  std::string weight_column;                  // a feature with the weight of each example; "": all are 1
  std::vector<std::string> label_vocabulary;  // labels are these strings; empty: they are integers below n_classes
  losses::Reduction loss_reduction = losses::Reduction::kSum;
};
struct COHORT_EXPORT RegressorOptions {
  int64_t label_dimension = 1;
  std::string weight_column;  // [batch], [batch, 1] or [batch, label_dimension]
  losses::Reduction loss_reduction = losses::Reduction::kSum;
};

// Dense layers over an InputLayer. Variables: "dnn/input_from_feature_columns/input_layer/...",
// "dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_0/bias", ..., "dnn/logits/kernel" and "dnn/logits/bias".
struct COHORT_EXPORT DNNOptions {
  std::vector<int64_t> hidden_units;  // of each layer
  std::vector<ColumnPtr> feature_columns;
  OptimizerFn optimizer;  // null: Adagrad with the learning rate 0.05
  keras::ActivationFunction activation_fn = "relu";
  double dropout = 0.0;                      // of the output of each hidden layer, in training
  bool batch_norm = false;                   // behind each hidden layer, with the momentum 0.999
  ops::Partitioner input_layer_partitioner;  // of the tables; null: see above
};
class COHORT_EXPORT DNNClassifier final : public Estimator {
 public:
  DNNClassifier(const DNNOptions& options, const RunConfig& config, const ClassifierOptions& classifier = {},
                std::optional<WarmStartSettings> warm_start_from = std::nullopt);
};
class COHORT_EXPORT DNNRegressor final : public Estimator {
 public:
  DNNRegressor(const DNNOptions& options, const RunConfig& config, const RegressorOptions& regressor = {},
               std::optional<WarmStartSettings> warm_start_from = std::nullopt);
};

// A LinearModel. Variables: "linear/linear_model/<column>/weights" and "linear/linear_model/bias_weights".
struct COHORT_EXPORT LinearOptions {
  std::vector<ColumnPtr> feature_columns;
  OptimizerFn optimizer;  // null: FTRL with the learning rate min(0.2, 1 / sqrt(number of columns))
  std::string sparse_combiner = "sum";
  ops::Partitioner partitioner;  // null: see above
};
class COHORT_EXPORT LinearClassifier final : public Estimator {
 public:
  LinearClassifier(const LinearOptions& options, const RunConfig& config, const ClassifierOptions& classifier = {},
                   std::optional<WarmStartSettings> warm_start_from = std::nullopt);
};
class COHORT_EXPORT LinearRegressor final : public Estimator {
 public:
  LinearRegressor(const LinearOptions& options, const RunConfig& config, const RegressorOptions& regressor = {},
                  std::optional<WarmStartSettings> warm_start_from = std::nullopt);
};

// Both, with one logit: the sum. At least one of the two has columns.
struct COHORT_EXPORT DNNLinearCombinedOptions {
  std::vector<ColumnPtr> linear_feature_columns;
  OptimizerFn linear_optimizer;  // null: FTRL with the learning rate min(0.005, 1 / sqrt(number of columns))
  std::string linear_sparse_combiner = "sum";
  std::vector<ColumnPtr> dnn_feature_columns;
  OptimizerFn dnn_optimizer;  // null: Adagrad with the learning rate 0.001
  std::vector<int64_t> dnn_hidden_units;
  keras::ActivationFunction dnn_activation_fn = "relu";
  double dnn_dropout = 0.0;
  bool batch_norm = false;
  ops::Partitioner input_layer_partitioner;  // of the tables of both parts; null: see above
};
class COHORT_EXPORT DNNLinearCombinedClassifier final : public Estimator {
 public:
  DNNLinearCombinedClassifier(const DNNLinearCombinedOptions& options, const RunConfig& config,
                              const ClassifierOptions& classifier = {},
                              std::optional<WarmStartSettings> warm_start_from = std::nullopt);
};
class COHORT_EXPORT DNNLinearCombinedRegressor final : public Estimator {
 public:
  DNNLinearCombinedRegressor(const DNNLinearCombinedOptions& options, const RunConfig& config,
                             const RegressorOptions& regressor = {},
                             std::optional<WarmStartSettings> warm_start_from = std::nullopt);
};

}  // namespace cohort::estimator
