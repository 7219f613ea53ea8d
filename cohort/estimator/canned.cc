#include "cohort/estimator/canned.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/partitioners.h"
#include "cohort/estimator/head.h"
#include "cohort/estimator/layers.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/variables.h"

namespace cohort::estimator {
namespace {

constexpr double kDnnRate = 0.05, kLinearRate = 0.2;  // of models alone
constexpr double kDnnRateOfCombination = 0.001, kLinearRateOfCombination = 0.005;

// Returns what cuts the tables of a model.
ops::Partitioner PartitionerOf(const ModelFnArgs& args, const ops::Partitioner& given) {
  constexpr int64_t kLeastBytes = int64_t{64} << 20;
  if (given) return given;
  return distribute::MinMaxVariablePartitioner(std::max(1, RoleOf(args.config).num_ps_replicas), 0, kLeastBytes);
}

Output DnnLogits(const ModelFnArgs& args, const DNNOptions& options, int64_t units) {
  Graph& graph = args.graph;
  const bool training = args.mode == ModeKeys::kTrain;
  const NameScope scope(graph, "dnn/");  // exactly, also if a placeholder has the name
  Output net;
  {
    const NameScope input(graph, "input_from_feature_columns");
    const ops::PartitionerScope parts(graph, PartitionerOf(args, options.input_layer_partitioner));
    net = feature_column::InputLayer(args.named_features, options.feature_columns);
  }
  for (size_t i = 0; i < options.hidden_units.size(); ++i) {
    const std::string name = StrCat("hiddenlayer_", i);
    net = layers::Dense(net, options.hidden_units[i], {.activation = options.activation_fn, .name = name});
    if (training && options.dropout > 0) net = layers::Dropout(net, {.rate = options.dropout, .training = true});
    if (options.batch_norm) {
      net = layers::BatchNormalization(
          net, {.momentum = 0.999, .training = training, .name = StrCat(name, "/batchnorm_", i)});
    }
  }
  return layers::Dense(net, units, {.name = "logits"});
}

Output LinearLogits(const ModelFnArgs& args, const LinearOptions& options, int64_t units) {
  const NameScope scope(args.graph, "linear/");
  const ops::PartitionerScope parts(args.graph, PartitionerOf(args, options.partitioner));
  return feature_column::LinearModel(args.named_features, options.feature_columns,
                                     {.units = units, .sparse_combiner = options.sparse_combiner});
}

void CheckColumns(const std::vector<ColumnPtr>& columns, const char* option) {
  if (columns.empty()) {
    throw InvalidArgumentError(StrCat("[estimator] expected at least one column in ", option, "; got none"));
  }
  for (const ColumnPtr& column : columns) feature_column::NameOf(column);  // throws for null
}

void CheckDnn(const DNNOptions& options) {
  if (options.hidden_units.empty()) {
    throw InvalidArgumentError("[estimator] expected hidden_units of at least one layer; got none");
  }
  for (const int64_t units : options.hidden_units) {
    if (units < 1) throw InvalidArgumentError(StrCat("[estimator] expected at least 1 hidden unit; got ", units));
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    throw InvalidArgumentError(StrCat("[estimator] expected a dropout in [0, 1); got ", options.dropout));
  }
}

OptimizerFn Adagrad(double rate) {
  return [rate](Graph&) { return std::make_shared<train::AdagradOptimizer>(static_cast<float>(rate)); };
}
OptimizerFn Ftrl(double most, size_t columns) {
  const auto rate = static_cast<float>(std::min(most, 1 / std::sqrt(static_cast<double>(columns))));
  return [rate](Graph&) { return std::make_shared<train::FtrlOptimizer>(rate); };
}

std::shared_ptr<train::Optimizer> Made(const OptimizerFn& make, Graph& graph) {
  std::shared_ptr<train::Optimizer> optimizer = make(graph);
  if (optimizer != nullptr) return optimizer;
  throw InvalidArgumentError("[estimator] expected an optimizer from the function `optimizer`; got null");
}

// One part of a model: its logits, and what trains its variables.
struct Part {
  std::function<Output(const ModelFnArgs& args, int64_t units)> logits;
  OptimizerFn optimizer;
};

Part DnnPart(const DNNOptions& options, double rate, const char* columns) {
  CheckColumns(options.feature_columns, columns);
  CheckDnn(options);
  return {[options](const ModelFnArgs& args, int64_t units) { return DnnLogits(args, options, units); },
          options.optimizer ? options.optimizer : Adagrad(rate)};
}

Part LinearPart(const LinearOptions& options, double rate, const char* columns) {
  CheckColumns(options.feature_columns, columns);
  return {[options](const ModelFnArgs& args, int64_t units) { return LinearLogits(args, options, units); },
          options.optimizer ? options.optimizer : Ftrl(rate, options.feature_columns.size())};
}

// The model function of parts whose logits add up. Each part's optimizer trains the part's variables.
ModelFn Model(const std::vector<Part>& parts, std::shared_ptr<const Head> head) {
  return [parts, head = std::move(head)](const ModelFnArgs& args) {
    Output logits;
    std::vector<std::vector<ops::Variable>> variables;  // the trainable ones of each part
    for (const Part& part : parts) {
      const size_t before = args.graph.variables().size();
      const Output its = part.logits(args, head->logits_dimension());
      logits = logits.valid() ? ops::Add(logits, its) : its;
      const std::vector<VariableInfo*> all = args.graph.variables();
      std::vector<ops::Variable>& of_part = variables.emplace_back();
      for (size_t i = before; i < all.size(); ++i) {
        if (all[i]->trainable) of_part.emplace_back(all[i]);
      }
    }
    return head->Spec(args, logits, [&](const Output& loss) {
      const ControlDependencies after_updates(args.graph, layers::UpdateOps(args.graph));
      std::vector<Node*> steps;
      for (size_t i = 0; i < parts.size(); ++i) {
        steps.push_back(Made(parts[i].optimizer, args.graph)->Minimize(loss, {}, variables[i]));
      }
      const ControlDependencies after(args.graph, steps);
      return ops::GetGlobalStep(args.graph)->AssignAdd(1);
    });
  };
}

std::vector<Part> Alone(Part part) { return {std::move(part)}; }
std::vector<Part> Dnn(const DNNOptions& options) { return Alone(DnnPart(options, kDnnRate, "feature_columns")); }
std::vector<Part> Linear(const LinearOptions& options) {
  return Alone(LinearPart(options, kLinearRate, "feature_columns"));
}
std::vector<Part> Combined(const DNNLinearCombinedOptions& o) {
  std::vector<Part> parts;
  if (!o.dnn_feature_columns.empty()) {
    parts.push_back(DnnPart({.hidden_units = o.dnn_hidden_units,
                             .feature_columns = o.dnn_feature_columns,
                             .optimizer = o.dnn_optimizer,
                             .activation_fn = o.dnn_activation_fn,
                             .dropout = o.dnn_dropout,
                             .batch_norm = o.batch_norm,
                             .input_layer_partitioner = o.input_layer_partitioner},
                            kDnnRateOfCombination, "dnn_feature_columns"));
  } else if (!o.dnn_hidden_units.empty()) {
    throw InvalidArgumentError("[estimator] expected dnn_feature_columns for the dnn_hidden_units; got none");
  }
  if (!o.linear_feature_columns.empty()) {
    parts.push_back(LinearPart({.feature_columns = o.linear_feature_columns,
                                .optimizer = o.linear_optimizer,
                                .sparse_combiner = o.linear_sparse_combiner,
                                .partitioner = o.input_layer_partitioner},
                               kLinearRateOfCombination, "linear_feature_columns"));
  }
  if (parts.empty()) {
    throw InvalidArgumentError("[estimator] expected linear_feature_columns or dnn_feature_columns; got neither");
  }
  return parts;
}

}  // namespace

DNNClassifier::DNNClassifier(const DNNOptions& options, const RunConfig& config, const ClassifierOptions& classifier,
                             std::optional<WarmStartSettings> warm_start_from)
    : Estimator(Model(Dnn(options), MakeHead(classifier)), config, std::move(warm_start_from)) {}

DNNRegressor::DNNRegressor(const DNNOptions& options, const RunConfig& config, const RegressorOptions& regressor,
                           std::optional<WarmStartSettings> warm_start_from)
    : Estimator(Model(Dnn(options), MakeHead(regressor)), config, std::move(warm_start_from)) {}

LinearClassifier::LinearClassifier(const LinearOptions& options, const RunConfig& config,
                                   const ClassifierOptions& classifier,
                                   std::optional<WarmStartSettings> warm_start_from)
    : Estimator(Model(Linear(options), MakeHead(classifier)), config, std::move(warm_start_from)) {}

LinearRegressor::LinearRegressor(const LinearOptions& options, const RunConfig& config,
                                 const RegressorOptions& regressor, std::optional<WarmStartSettings> warm_start_from)
    : Estimator(Model(Linear(options), MakeHead(regressor)), config, std::move(warm_start_from)) {}

DNNLinearCombinedClassifier::DNNLinearCombinedClassifier(const DNNLinearCombinedOptions& options,
                                                         const RunConfig& config, const ClassifierOptions& classifier,
                                                         std::optional<WarmStartSettings> warm_start_from)
    : Estimator(Model(Combined(options), MakeHead(classifier)), config, std::move(warm_start_from)) {}

DNNLinearCombinedRegressor::DNNLinearCombinedRegressor(const DNNLinearCombinedOptions& options, const RunConfig& config,
                                                       const RegressorOptions& regressor,
                                                       std::optional<WarmStartSettings> warm_start_from)
    : Estimator(Model(Combined(options), MakeHead(regressor)), config, std::move(warm_start_from)) {}

}  // namespace cohort::estimator
