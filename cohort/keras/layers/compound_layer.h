// What files need to know of layers that contain other layers, and of layers whose inputs have names. Internal to
// keras/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// The base of Keras's layers that contain layers. Call adds each part by CallContext::Call.
class CompoundLayer : public Layer {
 public:
  struct Part {
    std::shared_ptr<const Layer> layer;
    std::string name;    // what CallContext::Call calls the part: "forward_lstm"
    std::string group;   // its group in a .weights.h5 file, below the group of this layer: "forward_layer"
    std::string option;  // the option of the configuration that describes the part, or "": the others say enough
  };
  virtual std::vector<Part> Parts() const = 0;
  void SetTrainable(bool trainable) const override {
    Layer::SetTrainable(trainable);
    for (const Part& part : Parts()) part.layer->SetTrainable(trainable);
  }

 protected:
  using Layer::Layer;
};

// A further base of layers whose inputs are arguments with names in Keras, and not one list. Files store such a call by
// the names.
class NamedArguments {
 public:
  virtual ~NamedArguments() = default;
  // Returns the names of the arguments, in the order of the inputs. All inputs after the last name belong to it, too.
  virtual std::vector<std::string> ArgumentNames() const = 0;
  // Returns true if files have the arguments in their order, without names. Then Keras builds the layer by the shape of
  // the first one.
  virtual bool IsPositional() const { return false; }
  // Returns the options that Keras takes as arguments of the call. The configuration of the layer does not have them.
  virtual ConfigValue::Object CallOptions() const { return {}; }
};

}  // namespace cohort::keras
