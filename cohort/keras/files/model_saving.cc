// Models and their weights to files and back.
#include <functional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/load_model.h"
#include "cohort/keras/files/model_config.h"
#include "cohort/keras/files/weight_layout.h"
#include "cohort/keras/layers/input_layer.h"
#include "cohort/keras/model.h"
#include "cohort/keras/training/compile_config.h"
#include "cohort/keras/training/model_engine.h"
#include "cohort/keras/training/step_parts.h"
#include "cohort/keras/training/variable_values.h"

namespace cohort::keras {
namespace {

constexpr char kModelEnding[] = ".keras";
constexpr char kWeightsEnding[] = ".weights.h5";
constexpr char kWeightsMember[] = "model.weights.h5";

void CheckEnding(const std::string& path, const char* ending, const char* caller) {
  if (path.ends_with(ending)) return;
  throw InvalidArgumentError(
      StrCat("[keras/", caller, "] expected a path that ends in ", ending, "; got '", path, "'"));
}

// What `function` throws is thrown with file and member added.
void WithMember(const char* member, const std::string& path, const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    ThrowError(error.code(), StrCat(error.what(), "; in ", member, " of '", path, "'"));
  }
}

std::unique_ptr<Model> MakeModel(const LayersFromConfig& layers, const LoadOptions& options) {
  const ModelOptions made = {.name = layers.name,
                             .dtype_policy = layers.dtype_policy,
                             .seed = options.seed,
                             .session = options.session,
                             .strategy = options.strategy};
  if (layers.class_name != "Sequential") return std::make_unique<Model>(layers.inputs, layers.outputs, made);
  auto chain =
      std::make_unique<Sequential>(std::vector<SequentialItem>(layers.items.begin(), layers.items.end()), made);
  const bool open = layers.items.empty() || dynamic_cast<const InputLayer*>(&*layers.items[0]) == nullptr;
  if (open && layers.build_shape.has_rank()) chain->Build(layers.build_shape);
  return chain;
}

}  // namespace

std::vector<WeightGroup> Model::WeightGroups() {
  engine();
  MakeKnownLayers();
  const std::vector<Tensor> values = GetWeights();
  std::vector<WeightGroup> groups = {{"", name(), {}}};
  for (const WeightPlace& place : LayOutWeights(*layers_, engine().weights())) {
    WeightGroup group = {place.path, place.layer.substr(place.layer.rfind('/') + 1), {}};
    for (const size_t i : place.weights) group.values.push_back(values[i]);
    groups.push_back(std::move(group));
  }
  if (compiled_ != nullptr) groups.push_back({kOptimizerGroup, compiled_->optimizer->name(), OptimizerState()});
  return groups;
}

void Model::SetWeightGroups(const std::vector<WeightGroup>& groups, const std::string& where) {
  engine();
  MakeKnownLayers();
  SetWeights(TakeWeights(groups, LayOutWeights(*layers_, engine().weights()), engine().weights(), where));
  if (compiled_ == nullptr) return;
  for (const WeightGroup& group : groups) {
    if (group.path == kOptimizerGroup && !group.values.empty()) SetOptimizerState(group.values, where);
  }
}

std::vector<Tensor> Model::OptimizerState() {
  if (!waiting_state_.empty()) return waiting_state_;
  return ReadVariables(session(), engine().optimizer()->variables());
}

bool Model::SetOptimizerState(const std::vector<Tensor>& values, const std::string& where) {
  waiting_state_.clear();
  std::vector<ops::Variable> variables = engine().optimizer()->variables();
  const bool begun = train_ != nullptr;
  const bool complete = begun ? values.size() == variables.size() : values.size() >= variables.size();
  if (!complete || !ValuesFit(values, variables, variables.size())) {
    LogWarning("keras", "the optimizer '", compiled_->optimizer->name(), "' of model '", name(), "' has ",
               variables.size(), " variables that are not those of ", where, " (", values.size(), "): it begins anew");
    return false;
  }
  engine().SetOptimizerVariables({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(variables.size())});
  // Slots come with the training step.
  if (!begun && values.size() > variables.size()) waiting_state_ = values;
  return true;
}

std::vector<std::string> Model::OutputLayers() const {
  const std::vector<std::string> names = StepNames(*layers_);
  std::vector<std::string> outputs;
  for (const LayerGraph::Value& output : layers_->output_values()) outputs.push_back(names[output.step]);
  return outputs;
}

bool Model::MakeKnownLayers() {
  if (layers_ == nullptr) layers_ = MakeLayers({});
  if (layers_ == nullptr) return false;
  engine();
  if (compile_options_ && compiled_ == nullptr) ResolveCompiled();
  return true;
}

void Model::Save(const std::string& path) {
  CheckEnding(path, kModelEnding, "save");
  engine();
  MakeKnownLayers();
  ConfigValue config = SerializedLayers(*layers_, options_.dtype_policy);
  if (compile_options_) {
    try {
      config.Set("compile_config", SerializedCompile(*compile_options_, *compiled_));
    } catch (const UnimplementedError& error) {
      LogWarning("keras", "'", path, "' is saved without how model '", name(),
                 "' was compiled; Compile it after loading: ", error.what());
    }
  }
  WriteModelArchive(path, {.config = config.ToJson(), .weights = EncodeWeights(WeightGroups())});
}

void Model::SaveWeights(const std::string& path) {
  CheckEnding(path, kWeightsEnding, "save_weights");
  WriteFileAtomically(path, EncodeWeights(WeightGroups()));
}

void Model::LoadWeights(const std::string& path) {
  if (path.ends_with(kModelEnding)) {
    const std::string where = StrCat(kWeightsMember, " of '", path, "'");
    SetWeightGroups(DecodeWeights(ReadModelArchive(path).weights, where), where);
    return;
  }
  CheckEnding(path, kWeightsEnding, "load_weights");
  const std::string where = StrCat("'", path, "'");
  SetWeightGroups(DecodeWeights(ReadFile(path), where), where);
}

std::unique_ptr<Model> LoadModel(const std::string& path, const LoadOptions& options) {
  const ModelArchive archive = ReadModelArchive(path);
  std::unique_ptr<Model> model;
  ConfigValue compile;
  WithMember("config.json", path, [&] {
    const ConfigValue config = ConfigValue::FromJson(archive.config);
    model = MakeModel(DeserializeLayers(config, options.custom_layers), options);
    if (const ConfigValue* found = config.Find("compile_config")) compile = *found;
  });
  if (!model->MakeKnownLayers()) return model;  // a Sequential that has never seen data
  if (options.compile && !compile.is_null()) {
    WithMember("config.json", path, [&] { model->Compile(DeserializeCompile(compile, model->OutputLayers())); });
  }
  const std::string where = StrCat(kWeightsMember, " of '", path, "'");
  model->SetWeightGroups(DecodeWeights(archive.weights, where), where);
  return model;
}

}  // namespace cohort::keras
