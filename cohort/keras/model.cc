#include "cohort/keras/model.h"

#include <algorithm>
#include <cstring>
#include <iostream>

#include "cohort/core/error.h"
#include "cohort/core/line_buffering.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/summary_table.h"
#include "cohort/keras/training/model_engine.h"

namespace cohort::keras {
namespace {

DType ComputeDType(const std::string& policy) {
  if (policy == "float32") return DType::kFloat32;
  if (policy == "mixed_bfloat16") return DType::kBfloat16;
  throw InvalidArgumentError(
      StrCat("[keras/model] expected dtype_policy 'float32' or 'mixed_bfloat16'; got '", policy, "'"));
}

ModelOptions Named(ModelOptions options, const char* name) {
  ComputeDType(options.dtype_policy);
  if (options.name.empty()) options.name = name;
  return options;
}

}  // namespace

Model::Model(const std::vector<LayerTensor>& inputs, const std::vector<LayerTensor>& outputs,
             const ModelOptions& options)
    : options_(Named(options, "functional")) {
  ApplyLineBuffering();
  layers_ = std::make_shared<const LayerGraph>("Functional", options.name, inputs, outputs);
}

Model::Model(const ModelOptions& options) : options_(Named(options, "sequential")) { ApplyLineBuffering(); }

Model::~Model() = default;

std::shared_ptr<const LayerGraph> Model::MakeLayers(const data::ElementSpec&) const { return layers_; }

bool Model::built() const {
  const MutexLock lock(build_mu_);
  return engine_ != nullptr;
}

ModelEngine& Model::EngineFor(const data::ElementSpec& data) const {
  const MutexLock lock(build_mu_);
  if (layers_ == nullptr) layers_ = MakeLayers(data);
  if (layers_ == nullptr) {
    throw FailedPreconditionError(StrCat("[keras/model] expected the input shape of model '", options_.name,
                                         "' to be known; begin it with Input(shape), call Build(shape), or Fit it"));
  }
  if (engine_ == nullptr) {
    engine_ = std::make_unique<ModelEngine>(layers_, ComputeDType(options_.dtype_policy), options_.seed,
                                            options_.session, options_.strategy);
  }
  return *engine_;
}

Graph& Model::graph() { return engine().graph(); }
Session& Model::session() { return engine().session(); }

std::vector<LayerInput> Model::outputs() const {
  engine();
  return layers_->outputs();
}

std::vector<Tensor> Model::GetWeights() { return engine().GetWeights(); }
void Model::SetWeights(const std::vector<Tensor>& weights) { engine().SetWeights(weights); }

std::vector<std::string> Model::WeightNames() const {
  std::vector<std::string> names;
  for (const ModelWeight& weight : engine().weights()) names.push_back(weight.path);
  return names;
}

std::vector<std::string> Model::TrainableWeightNames() const {
  std::vector<std::string> names;
  for (const ModelWeight& weight : engine().weights()) {
    if (weight.spec.trainable) names.push_back(weight.path);
  }
  return names;
}

int64_t Model::CountParams() const {
  int64_t count = 0;
  for (const ModelWeight& weight : engine().weights()) count += weight.spec.shape.num_elements();
  return count;
}

LayerRef Model::AsLayer() const {
  engine();
  return LayerRef(layers_);
}

void Model::Summary() const { Summary(std::cout); }

void Model::Summary(std::ostream& out) const {
  const std::vector<LayerInstance::LayerValues> values = engine().step_values();
  const std::vector<LayerGraph::LayerStep>& steps = layers_->steps();
  const bool chain = dynamic_cast<const Sequential*>(this) != nullptr;
  std::vector<SummaryRow> rows;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (chain && i == 0) continue;  // the input
    std::vector<std::string> connected;
    for (const LayerGraph::Value& input : steps[i].inputs) {
      connected.push_back(StrCat(values[input.step].path, "[", input.index, "]"));
    }
    const auto same = [&](const SummaryRow& row) { return row.name == values[i].path; };
    const auto found = std::find_if(rows.begin(), rows.end(), same);
    if (found != rows.end()) {  // a layer that is used again
      found->connected_to.insert(found->connected_to.end(), connected.begin(), connected.end());
      continue;
    }
    SummaryRow row = {values[i].path, steps[i].layer->class_name(), {}, 0, connected};
    for (const Output& output : values[i].outputs) row.outputs.push_back(output.shape());
    for (const ModelWeight& weight : engine().weights()) {
      const bool inside = weight.layer == row.name || weight.layer.rfind(row.name + "/", 0) == 0;
      if (inside) row.params += weight.spec.shape.num_elements();
    }
    rows.push_back(std::move(row));
  }
  SummaryTotals totals;
  for (const ModelWeight& weight : engine().weights()) {
    (weight.spec.trainable ? totals.trainable : totals.non_trainable) += weight.spec.shape.num_elements();
  }
  out << SummaryTable(options_.name, rows, totals, !chain);
}

bool Model::is_chief() const { return options_.strategy == nullptr || options_.strategy->is_chief(); }

ModelEngine& Model::CompiledEngine() {
  RequireCompiled("model");
  engine();
  if (compiled_ == nullptr) ResolveCompiled();
  return engine();
}

double Model::GetLearningRate() { return CompiledEngine().GetLearningRate(); }
void Model::SetLearningRate(double rate) { CompiledEngine().SetLearningRate(rate); }

bool Model::has_learning_rate_schedule() const {
  RequireCompiled("model");
  const GraphOptimizer* optimizer = engine().optimizer();
  return optimizer != nullptr && !optimizer->learning_rate_variable().valid();
}

int64_t Model::Iterations() { return CompiledEngine().Iterations(); }

MetricDirection Model::DirectionOf(const std::string& name) const {
  if (name == "loss" || name.ends_with("_loss")) return MetricDirection::kDown;
  for (const StepFunction* step : {train_.get(), test_.get()}) {
    if (step == nullptr) continue;
    for (const auto& [metric_name, metric] : step->metrics()) {
      if (metric_name == name) return metric->direction();
    }
  }
  return MetricDirection::kNone;
}

std::string Model::SerializedGraph() { return SerializeGraphDef(engine().graph()); }

Sequential::Sequential(const std::vector<SequentialItem>& items, const ModelOptions& options) : Model(options) {
  for (const SequentialItem& item : items) Add(item);
}

void Sequential::Add(const SequentialItem& item) {
  if (built()) throw FailedPreconditionError(StrCat("[keras/model] expected Add before model '", name(), "' is built"));
  const bool input = dynamic_cast<const InputLayer*>(item.layer().ptr().get()) != nullptr;
  if (input && !items_.empty()) {
    throw InvalidArgumentError("[keras/model] expected Input() as the first item of a Sequential; it comes later");
  }
  items_.push_back(item.layer());
}

void Sequential::Build(const Shape& input_shape) {
  if (built()) throw FailedPreconditionError(StrCat("[keras/model] model '", name(), "' is built already"));
  BuildFor({{DType::kFloat32, input_shape}});
}

std::shared_ptr<const LayerGraph> Sequential::Chain(const LayerTensor& input, size_t first) const {
  if (first == items_.size()) {
    throw InvalidArgumentError(StrCat("[keras/model] expected layers in model '", name(), "'; it has none"));
  }
  LayerTensor value = input;
  for (size_t i = first; i < items_.size(); ++i) value = items_[i](value);
  return std::make_shared<const LayerGraph>("Sequential", name(), std::vector<LayerTensor>{input},
                                            std::vector<LayerTensor>{value});
}

std::shared_ptr<const LayerGraph> Sequential::MakeLayers(const data::ElementSpec& data) const {
  if (!items_.empty()) {
    if (const auto* input = dynamic_cast<const InputLayer*>(items_[0].ptr().get())) {
      const auto call = std::make_shared<const LayerCall>(LayerCall{items_[0], {}});
      return Chain(LayerTensor(call, 0, input->spec()), 1);
    }
  }
  if (data.empty()) return nullptr;
  const Shape& shape = data[0].shape;
  if (shape.rank() < 1) {
    throw InvalidArgumentError(StrCat("[keras/model] expected data of a known shape [batch, ...] to build model '",
                                      name(), "' from; got ", shape));
  }
  const DType dtype = items_.empty() ? DType::kFloat32 : items_[0]->InputDType();
  return Chain(Input(shape.Sub(1, shape.rank()), {.dtype = dtype}), 0);
}

}  // namespace cohort::keras
