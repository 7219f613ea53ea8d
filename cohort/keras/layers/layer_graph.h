// LayerGraph: the layers of a model and the values between them, from inputs to outputs. Internal to keras/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cohort/keras/layers/input_layer.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// The layers of a model. It is a layer itself, so that a model can be a part of another model. Shared between models;
// immutable.
class LayerGraph final : public Layer {
 public:
  // The source of a value: result `index` of steps()[step].
  struct Value {
    size_t step;
    int index;
  };
  struct LayerStep {
    LayerRef layer;
    std::vector<Value> inputs;
  };

  // Throws InvalidArgumentError for an input that is no Input(), is given twice or is missing, and for no output.
  LayerGraph(std::string class_name, std::string name, const std::vector<LayerTensor>& inputs,
             const std::vector<LayerTensor>& outputs);

  const std::vector<LayerInput>& inputs() const { return input_specs_; }
  const std::vector<LayerInput>& outputs() const { return output_specs_; }
  // Returns the layers in the order in which they can be called. Inputs come first, in their order. The other layers
  // have Keras's order, which is the order of weights in files: the layer with the longest way to an output comes
  // first. Layers with equal ways have the order in which a walk from the outputs reaches them.
  const std::vector<LayerStep>& steps() const { return steps_; }
  const std::vector<Value>& output_values() const { return outputs_; }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override;
  DType InputDType() const override { return input_specs_[0].dtype; }

 private:
  Value Visit(const LayerTensor& tensor);
  // Puts steps_, which every step's inputs precede, into Keras's order.
  void Sort();

  std::vector<LayerInput> input_specs_;
  std::vector<LayerInput> output_specs_;
  std::vector<LayerStep> steps_;
  std::vector<const LayerCall*> visited_;  // the calls of which steps_ were made
  std::map<const Layer*, size_t> met_;     // the order in which the walk reached the layers
  std::vector<Value> outputs_;
};

}  // namespace cohort::keras
