// ExportSavedModel.
#include <map>
#include <utility>

#include "cohort/checkpoint/saved_model/saved_model_writer.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/model_config.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/training/model_state.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"

namespace cohort::keras {

void ExportSavedModel(const Model& model, const std::string& path) {
  ModelEngine& engine = model.state().engine();
  const LayerGraph& layers = engine.layers();
  const std::vector<Tensor> weights = engine.GetWeights();
  // The inference graph is a separate graph in float32, whatever dtype the model computes in.
  Graph graph;
  WeightStore store(graph);
  LayerInstance instance(store, LayerInstance::Options{});
  const std::vector<std::string> names = StepNames(layers);
  saved_model::SavedModelSignature signature;
  std::vector<Output> inputs;
  for (size_t i = 0; i < layers.inputs().size(); ++i) {
    const LayerInput& input = layers.inputs()[i];
    inputs.push_back(ops::Placeholder(graph, input.dtype, input.shape, StrCat("serving_default_", names[i])));
    signature.inputs[names[i]] = inputs.back();
  }
  const std::vector<Output> outputs = instance.Add(layers, "", inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = StrCat("output_", i);
    signature.outputs[name] = ops::Identity(outputs[i], name);
  }
  const std::map<std::string, bool> trainable = engine.TrainableWeights();
  std::map<const VariableInfo*, Tensor> values;
  for (size_t i = 0; i < weights.size(); ++i) {
    VariableInfo* variable = store.weights()[i].variable.info();
    variable->trainable = trainable.at(store.weights()[i].path);
    values[variable] = weights[i];
  }
  const saved_model::Signatures signatures = {{saved_model::kDefaultSignature, signature}, {"serve", signature}};
  const auto read = [&values](const std::vector<const VariableInfo*>& variables) {
    std::vector<Tensor> tensors;
    for (const VariableInfo* variable : variables) tensors.push_back(values.at(variable));
    return tensors;
  };
  saved_model::ExportContents(
      {.graph = graph, .signatures = signatures, .variables = saved_model::SavedVariables(graph), .read = read}, path);
}

}  // namespace cohort::keras
