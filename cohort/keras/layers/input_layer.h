// InputLayer: the layer of an Input(), which returns the model's input unchanged. Internal to keras/.
#pragma once

#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

class ConfigReader;

// Immutable and thread-safe, like every Layer.
class InputLayer final : public Layer {
 public:
  // `shape` is that of one example.
  InputLayer(const Shape& shape, DType dtype, const std::string& name)
      : Layer("InputLayer", name), spec_{dtype, Shape{-1}.Concat(shape)} {}
  const LayerInput& spec() const { return spec_; }
  ConfigValue::Object Config() const override;
  static LayerRef FromConfig(ConfigReader& reader);
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override { return inputs; }
  bool supports_masking() const override { return true; }

 private:
  const LayerInput spec_;
};

}  // namespace cohort::keras
