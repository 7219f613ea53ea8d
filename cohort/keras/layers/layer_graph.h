// LayerGraph: layers that feed one another, from inputs to outputs. What a Model consists of. Internal to keras/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cohort/keras/layers/input_layer.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// A layer itself, so that a model can be part of another one.
class LayerGraph final : public Layer {
 public:
  // Where a value comes from: result `index` of steps()[step].
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
  // Inputs come first, in their order; then as Keras orders layers, which is the order of weights in files: by the
  // longest way to an output, the longest first, and among equals as a walk from the outputs meets the layers. So every
  // step comes after those whose results it takes.
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
  std::vector<const LayerCall*> visited_;  // what steps_ were made of
  std::map<const Layer*, size_t> met_;     // the order in which the walk met the layers
  std::vector<Value> outputs_;
};

}  // namespace cohort::keras
