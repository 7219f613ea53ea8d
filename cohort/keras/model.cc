// Model and Sequential. A Model only forwards to its ModelState and its Trainer. A Sequential collects its layers and
// makes the LayerGraph when the input shape is known.
#include "cohort/keras/model.h"

#include <iostream>
#include <map>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/process/line_buffering.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/layers/input_layer.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/summary_table.h"
#include "cohort/keras/training/model_state.h"
#include "cohort/keras/training/trainer.h"

namespace cohort::keras {
namespace {

ModelOptions Named(ModelOptions options, const char* name) {
  if (options.name.empty()) options.name = name;
  return options;
}

// Lets go of the models that layers come from, once the layers are those of a model.
void ForgetOrigins(std::vector<LayerRef>& items) {
  for (LayerRef& item : items) item = LayerRef(item.ptr());
}

// The layers of a Sequential, one after another from item `first` on.
std::shared_ptr<const LayerGraph> Chain(const std::string& name, const std::vector<LayerRef>& items,
                                        const LayerTensor& input, size_t first) {
  if (first == items.size()) {
    throw InvalidArgumentError(StrCat("[keras/model] expected layers in model '", name, "'; it has none"));
  }
  LayerTensor value = input;
  for (size_t i = first; i < items.size(); ++i) value = items[i](value);
  return std::make_shared<const LayerGraph>("Sequential", name, std::vector<LayerTensor>{input},
                                            std::vector<LayerTensor>{value});
}

std::shared_ptr<const LayerGraph> LayersOf(const std::string& name, const std::vector<LayerRef>& items,
                                           const data::ElementSpec& data) {
  if (!items.empty()) {
    if (const auto* input = dynamic_cast<const InputLayer*>(items[0].ptr().get())) {
      const auto call = std::make_shared<const LayerCall>(LayerCall{items[0], {}});
      return Chain(name, items, LayerTensor(call, 0, input->spec()), 1);
    }
  }
  if (data.empty()) return nullptr;
  const Shape& shape = data[0].shape;
  if (shape.rank() < 1) {
    throw InvalidArgumentError(StrCat("[keras/model] expected data of a known shape [batch, ...] to build model '",
                                      name, "' from; got ", shape));
  }
  const DType dtype = items.empty() ? DType::kFloat32 : items[0]->InputDType();
  return Chain(name, items, Input(shape.Sub(1, shape.rank()), {.dtype = dtype}), 0);
}

}  // namespace

Model::Model(std::shared_ptr<ModelState> state)
    : state_(std::move(state)), trainer_(std::make_shared<Trainer>(state_)) {
  ApplyLineBuffering();
}

Model::Model(const std::vector<LayerTensor>& inputs, const std::vector<LayerTensor>& outputs,
             const ModelOptions& options)
    : Model(std::make_shared<ModelState>(
          Named(options, "functional"),
          [layers = std::make_shared<const LayerGraph>("Functional", options.name, inputs, outputs)](
              const data::ElementSpec&) { return layers; })) {
  state_->BuildIfItInherits();
}

const std::string& Model::name() const { return state_->name(); }
void Model::Compile(const CompileOptions& options) { state_->Compile(options); }

History Model::Fit(const ModelData& data, const FitOptions& options) { return trainer_->Fit(data, options); }
Logs Model::Evaluate(const ModelData& data, const EvaluateOptions& options) {
  return trainer_->Evaluate(data, options);
}
void Model::StopTraining() { trainer_->StopTraining(); }
std::vector<Tensor> Model::PredictAll(const ModelData& x, const PredictOptions& options) {
  return trainer_->PredictAll(x, options);
}
Tensor Model::Predict(const Tensor& x, const PredictOptions& options) {
  std::vector<Tensor> outputs = PredictAll(ModelData({x}, std::vector<Tensor>{}), options);
  if (outputs.size() == 1) return outputs[0];
  throw InvalidArgumentError(StrCat("[keras/predict] expected a model with one output; model '", name(), "' has ",
                                    outputs.size(), ": call PredictAll"));
}
Logs Model::TrainOnBatch(const ModelData& batch) { return trainer_->TrainOnBatch(batch); }
void Model::ResetMetrics() { trainer_->ResetMetrics(); }
SignalReport Model::CheckSignal(const ModelData& data, int64_t batch_size) {
  return trainer_->CheckSignal(data, batch_size);
}

void Model::Summary() const { Summary(std::cout); }
void Model::Summary(std::ostream& out) const { out << SummaryOf(*state_); }

bool Model::built() const { return state_->built(); }

std::vector<LayerTensor> Model::inputs() const {
  std::vector<LayerTensor> inputs;
  const size_t count = state_->engine().layers().inputs().size();
  for (size_t i = 0; i < count; ++i) inputs.push_back(state_->ValuesOf(state_, i).at(0));
  return inputs;
}

std::vector<LayerTensor> Model::outputs() const {
  std::vector<LayerTensor> outputs;
  for (const LayerGraph::Value& value : state_->engine().layers().output_values()) {
    outputs.push_back(state_->ValuesOf(state_, value.step).at(static_cast<size_t>(value.index)));
  }
  return outputs;
}

std::vector<ModelLayer> Model::layers() const { return ModelLayer::Of(state_, state_->engine().layers(), ""); }
ModelLayer Model::GetLayer(const std::string& name) const {
  return ModelLayer::Find(layers(), name, StrCat("model '", this->name(), "'"));
}
void Model::SetTrainable(bool trainable) { state_->engine().layers().SetTrainable(trainable); }
bool Model::trainable() const { return state_->engine().layers().trainable(); }

std::vector<Tensor> Model::GetWeights() const { return trainer_->GetWeights(); }
void Model::SetWeights(const std::vector<Tensor>& weights) { trainer_->SetWeights(weights); }
std::vector<std::string> Model::WeightNames() const { return trainer_->WeightNames(); }

std::vector<std::string> Model::TrainableWeightNames() const {
  std::vector<std::string> names;
  const std::map<std::string, bool> trainable = state_->engine().TrainableWeights();
  for (const ModelWeight& weight : state_->engine().weights()) {
    if (trainable.at(weight.path)) names.push_back(weight.path);
  }
  return names;
}

int64_t Model::CountParams() const {
  int64_t count = 0;
  for (const ModelWeight& weight : state_->engine().weights()) count += weight.spec.shape.num_elements();
  return count;
}

double Model::GetLearningRate() const { return trainer_->GetLearningRate(); }
void Model::SetLearningRate(double rate) { trainer_->SetLearningRate(rate); }
int64_t Model::Iterations() const { return trainer_->Iterations(); }

LayerRef Model::AsLayer() const {
  state_->engine();
  return LayerRef(state_->shared_layers(), {state_, ""});
}

void Model::Save(const std::string& path) const { SaveModel(*this, path); }
void Model::SaveWeights(const std::string& path) const { keras::SaveWeights(*this, path); }
void Model::LoadWeights(const std::string& path) { keras::LoadWeights(*this, path); }
void Model::ExportOnnx(const std::string& path) const { keras::ExportOnnx(*this, path); }
void Model::ExportSavedModel(const std::string& path) const { keras::ExportSavedModel(*this, path); }

Graph& Model::graph() const { return state_->engine().graph(); }
Session& Model::session() const { return state_->engine().session(); }

Sequential::Sequential(const ModelOptions& options, Items items)
    : Model(std::make_shared<ModelState>(options,
                                         [items, name = options.name](const data::ElementSpec& data) {
                                           const std::shared_ptr<const LayerGraph> layers =
                                               LayersOf(name, *items, data);
                                           if (layers != nullptr) ForgetOrigins(*items);
                                           return layers;
                                         })),
      items_(std::move(items)) {}

Sequential::Sequential(const std::vector<SequentialItem>& items, const ModelOptions& options)
    : Sequential(Named(options, "sequential"), std::make_shared<std::vector<LayerRef>>()) {
  for (const SequentialItem& item : items) Add(item);
}

void Sequential::Add(const SequentialItem& item) {
  if (built()) throw FailedPreconditionError(StrCat("[keras/model] expected Add before model '", name(), "' is built"));
  const bool input = dynamic_cast<const InputLayer*>(item.layer().ptr().get()) != nullptr;
  if (input && !items_->empty()) {
    throw InvalidArgumentError("[keras/model] expected Input() as the first item of a Sequential; it comes later");
  }
  if (const std::optional<Shape>& shape = item.layer().input_shape()) {
    if (!items_->empty()) {
      throw InvalidArgumentError(
          StrCat("[keras/model] expected an input_shape only for the first layer of a Sequential; "
                 "got ",
                 *shape, " for item ", items_->size(), " of model '", name(), "', a ", item.layer()->class_name(),
                 "; leave it out"));
    }
    Add(Input(*shape, {.dtype = item.layer()->InputDType()}));
  }
  items_->push_back(item.layer());
}

void Sequential::Build(const Shape& input_shape) {
  if (built()) throw FailedPreconditionError(StrCat("[keras/model] model '", name(), "' is built already"));
  state().EngineFor({{DType::kFloat32, input_shape}});
}

}  // namespace cohort::keras
