// Models and their weights to files and back.
#include "cohort/keras/files/model_saving.h"

#include <functional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_config.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/files/vocabulary_assets.h"
#include "cohort/keras/files/weight_layout.h"
#include "cohort/keras/layers/input_layer.h"
#include "cohort/keras/training/compile_config.h"

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

// Calls `function`. Adds file and member to its errors.
void WithMember(const char* member, const std::string& path, const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    ThrowError(error.code(), StrCat(error.what(), "; in ", member, " of '", path, "'"));
  }
}

Model MakeModel(const LayersFromConfig& layers, const LoadOptions& options) {
  const ModelOptions made = {.name = layers.name,
                             .dtype_policy = layers.dtype_policy,
                             .seed = options.seed,
                             .session = options.session,
                             .strategy = options.strategy};
  if (layers.class_name != "Sequential") return Model(layers.inputs, layers.outputs, made);
  Sequential chain(std::vector<SequentialItem>(layers.items.begin(), layers.items.end()), made);
  const bool open = layers.items.empty() || dynamic_cast<const InputLayer*>(&*layers.items[0]) == nullptr;
  if (open && layers.build_shape.has_rank()) chain.Build(layers.build_shape);
  return chain;
}

// Returns the names of the layers that make the outputs.
std::vector<std::string> OutputLayers(const LayerGraph& layers) {
  const std::vector<std::string> names = StepNames(layers);
  std::vector<std::string> outputs;
  for (const LayerGraph::Value& output : layers.output_values()) outputs.push_back(names[output.step]);
  return outputs;
}

// Returns the model's layers as the file describes them. The model has the name that Summary prints.
ConfigValue LayersInFile(ModelState& state) {
  return SerializedLayers(state.layers(), state.name(), state.options().dtype_policy);
}

// Returns the engine after the arguments of Compile are applied.
ModelEngine& EngineForFiles(ModelState& state) {
  ModelEngine& engine = state.engine();
  state.BuildIfKnown();
  return engine;
}

}  // namespace

std::vector<WeightGroup> WeightGroupsOf(ModelState& state) {
  ModelEngine& engine = EngineForFiles(state);
  const std::vector<Tensor> values = engine.GetWeights();
  std::vector<WeightGroup> groups = {{"", state.name(), {}}};
  for (const WeightPlace& place : LayOutWeights(state.layers(), engine.weights())) {
    WeightGroup group = {place.path, place.layer.substr(place.layer.rfind('/') + 1), {}, place.idf_weights};
    for (const size_t i : place.weights) group.values.push_back(values[i]);
    groups.push_back(std::move(group));
  }
  if (const CompiledModel* compiled = state.compiled()) {
    groups.push_back({kOptimizerGroup, compiled->optimizer->name(), state.OptimizerState()});
  }
  return groups;
}

void SetWeightGroups(ModelState& state, const std::vector<WeightGroup>& groups, const std::string& where) {
  ModelEngine& engine = EngineForFiles(state);
  engine.SetWeights(TakeWeights(groups, LayOutWeights(state.layers(), engine.weights()), engine.weights(), where));
  if (state.compiled() == nullptr) return;
  for (const WeightGroup& group : groups) {
    if (group.path == kOptimizerGroup && !group.values.empty()) state.SetOptimizerState(group.values, where);
  }
}

void SaveModel(ModelState& state, const std::string& path) {
  CheckEnding(path, kModelEnding, "save");
  EngineForFiles(state);
  ConfigValue config = LayersInFile(state);
  if (state.compile_options()) {
    try {
      config.Set("compile_config", SerializedCompile(*state.compile_options(), *state.compiled()));
    } catch (const UnimplementedError& error) {
      LogWarning("keras", "'", path, "' is saved without how model '", state.name(),
                 "' was compiled; Compile it after loading: ", error.what());
    }
  }
  WriteModelArchive(path, {.config = config.ToJson(), .weights = EncodeWeights(WeightGroupsOf(state))});
}

void CheckCanBeSaved(ModelState& state) { static_cast<void>(LayersInFile(state)); }

void SaveWeights(ModelState& state, const std::string& path) {
  CheckEnding(path, kWeightsEnding, "save_weights");
  WriteFileAtomically(path, EncodeWeights(WeightGroupsOf(state)));
}

void SaveModel(const Model& model, const std::string& path) { SaveModel(model.state(), path); }
void SaveWeights(const Model& model, const std::string& path) { SaveWeights(model.state(), path); }

void LoadWeights(Model& model, const std::string& path) {
  if (path.ends_with(kModelEnding)) {
    const std::string where = StrCat(kWeightsMember, " of '", path, "'");
    SetWeightGroups(model.state(), DecodeWeights(ReadModelArchive(path).weights, where), where);
    return;
  }
  CheckEnding(path, kWeightsEnding, "load_weights");
  const std::string where = StrCat("'", path, "'");
  SetWeightGroups(model.state(), DecodeWeights(ReadFile(path), where), where);
}

Model LoadModel(const std::string& path, const LoadOptions& options) {
  const ModelArchive archive = ReadModelArchive(path);
  const std::string where = StrCat(kWeightsMember, " of '", path, "'");
  const std::vector<WeightGroup> groups = DecodeWeights(archive.weights, where);
  std::optional<Model> model;
  ConfigValue compile;
  bool trainable = true;
  WithMember("config.json", path, [&] {
    const ConfigValue config = WithVocabularies(ConfigValue::FromJson(archive.config), archive.assets, groups);
    const LayersFromConfig layers = DeserializeLayers(config, options.custom_layers);
    model = MakeModel(layers, options);
    trainable = layers.trainable;
    // Keras writes an empty object for a model that was not compiled.
    const ConfigValue* found = config.Find("compile_config");
    if (found != nullptr && !(found->is_object() && found->AsObject().empty())) compile = *found;
  });
  ModelState& state = model->state();
  if (!state.BuildIfKnown()) return *model;       // a Sequential that has never seen data
  state.layers().Layer::SetTrainable(trainable);  // the layers know for themselves
  if (options.compile && !compile.is_null()) {
    WithMember("config.json", path, [&] {
      CompileOptions given = DeserializeCompile(compile, OutputLayers(state.layers()));
      const distribute::StrategyPtr& strategy = state.options().strategy;
      if (given.steps_per_execution > 1 && (strategy == nullptr || strategy->closure_workers().empty())) {
        LogInfo("keras", "model '", state.name(), "' of '", path,
                "' was compiled with steps_per_execution = ", given.steps_per_execution,
                "; it is compiled with 1 here, because only a ParameterServerStrategy ",
                "makes several steps in one execution");
        given.steps_per_execution = 1;
      }
      model->Compile(given);
    });
  }
  SetWeightGroups(state, groups, where);
  return *model;
}

}  // namespace cohort::keras
