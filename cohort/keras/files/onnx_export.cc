// ExportOnnx.
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/model_config.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/files/onnx_nodes.h"
#include "cohort/keras/training/model_state.h"
#include "cohort/ops/constant.h"

namespace cohort::keras {

void ExportOnnx(const Model& model, const std::string& path) {
  ModelEngine& engine = model.state().engine();
  const LayerGraph& layers = engine.layers();
  const std::vector<Tensor> weights = engine.GetWeights();
  // The inference graph is a separate graph in float32, whatever dtype the model computes in.
  Graph graph;
  WeightStore store(graph);
  LayerInstance instance(store, LayerInstance::Options{});
  OnnxGraph onnx(model.name());
  const std::vector<std::string> names = StepNames(layers);
  std::vector<Output> inputs;
  std::vector<std::string> input_names;
  for (size_t i = 0; i < layers.inputs().size(); ++i) {
    const LayerInput& input = layers.inputs()[i];
    if (input.dtype == DType::kString) {
      throw UnimplementedError(
          StrCat("[keras/onnx] expected inputs of numbers; got strings for input '", names[i],
                 "': look them up before and export the model behind that, or use ExportSavedModel"));
    }
    inputs.push_back(ops::Placeholder(graph, input.dtype, input.shape));
    input_names.push_back(onnx.AddInput(names[i], input.dtype, input.shape));
  }
  const std::vector<Output> outputs = instance.Add(layers, "", inputs);
  std::map<const Node*, OnnxTranslation::NamedTensor> variables;
  for (size_t i = 0; i < store.weights().size(); ++i) {
    variables[store.weights()[i].variable.handle().node] = {store.weights()[i].path, weights[i]};
  }
  OnnxTranslation translation(onnx, std::move(variables));
  for (size_t i = 0; i < inputs.size(); ++i) translation.SetPlain(inputs[i], input_names[i]);
  translation.Add(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& layer = names[layers.output_values()[i].step];
    const std::string output = onnx.Add("Identity", layer, {translation.Plain(outputs[i])});
    onnx.AddOutput(output, outputs[i].dtype(), outputs[i].shape());
  }
  WriteFileAtomically(path, onnx.Serialize());
}

}  // namespace cohort::keras
