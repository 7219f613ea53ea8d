// LayerGraph: the layers of a model and the values between them, from inputs to outputs. Internal to keras/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/keras/layers/input_layer.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// The layers of a model. It is a layer itself, so that a model can be a part of another model. Models share ownership.
// Immutable, except for SetTrainable and ForgetInherited.
class LayerGraph final : public Layer {
 public:
  // The source of a value: result `index` of steps()[step].
  struct Value {
    size_t step;
    int index;
  };
  struct LayerStep {
    // This LayerRef has no origin(): inherited() says from which model a layer's initial weights are copied.
    LayerRef layer;
    std::vector<Value> inputs;
  };
  // A layer whose initial weights are copied from another model that has the layer.
  struct Inherited {
    LayerRef layer;
    WeightOrigin origin;
  };

  // Throws InvalidArgumentError if an input is not the result of an Input(), is given twice, or is missing; if there is
  // no input or no output; and for a layer that would begin with the weights of two models.
  LayerGraph(std::string class_name, std::string name, const std::vector<LayerTensor>& inputs,
             const std::vector<LayerTensor>& outputs);

  const std::vector<LayerInput>& inputs() const { return input_specs_; }
  const std::vector<LayerInput>& outputs() const { return output_specs_; }
  // Returns the calls of layers, in an order in which they can be made. A layer that is called several times appears
  // several times. Inputs come first, in their order. The other layers have Keras's order, which is the order of
  // weights in files: the layer with the longest path to an output comes first. Layers with equally long paths have the
  // order in which a walk from the outputs reaches them.
  const std::vector<LayerStep>& steps() const { return steps_; }
  const std::vector<Value>& output_values() const { return outputs_; }

  // Returns the layers whose initial weights are copied from another model. Only the thread that builds the model may
  // call inherited() and ForgetInherited().
  const std::vector<Inherited>& inherited() const { return inherited_; }
  // Empties inherited(). The thread calls it after it has copied the weights, because inherited() keeps the other
  // models alive.
  void ForgetInherited() const { inherited_.clear(); }

  void SetTrainable(bool trainable) const override;
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override;
  DType InputDType() const override { return input_specs_[0].dtype; }

 private:
  // Adds the calls of layers on which `tensor` depends, and returns the place of `tensor`. If `model` is not null, a
  // value that depends on `tensor` was looked up in this built model. Then the added layers begin with copies of the
  // weights that they have in it.
  Value Visit(const LayerTensor& tensor, const std::shared_ptr<ModelState>& model);
  void Inherit(const LayerRef& layer, const std::shared_ptr<ModelState>& model);
  // Puts steps_ into Keras's order. Requires: each step comes after the steps that make its inputs.
  void Sort();

  std::vector<LayerInput> input_specs_;
  std::vector<LayerInput> output_specs_;
  std::vector<LayerStep> steps_;
  std::vector<const LayerCall*> visited_;  // only during construction: steps_[i] was made from visited_[i]
  std::map<const Layer*, size_t> met_;     // the order in which the walk reached the layers
  std::vector<Value> outputs_;
  mutable std::vector<Inherited> inherited_;
};

}  // namespace cohort::keras
