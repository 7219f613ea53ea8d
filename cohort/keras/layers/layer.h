// Layers: immutable descriptions of one step of a model. A layer declares its weights once the shapes of its inputs are
// known and adds nodes that use them; it owns no variable. So one layer can be instantiated many times - for training
// and inference, once a replica, twice in one model with the same weights - and be shared between models and threads.
//
// A layer of a program's own derives from Layer:
//
//   class Scale final : public keras::Layer {
//    public:
//     Scale() : Layer("Scale") {}
//     std::vector<keras::WeightSpec> Build(const std::vector<keras::LayerInput>& inputs) const override {
//       return {{.name = "factor", .shape = Shape{}, .initializer = "ones"}};
//     }
//     std::vector<Output> Call(keras::CallContext& ctx, const std::vector<Output>& inputs) const override {
//       return {inputs[0] * ctx.weight("factor")};
//     }
//   };
//   keras::Sequential model({keras::Dense(8), keras::MakeLayer<Scale>()});
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"
#include "cohort/keras/layers/initializers.h"
#include "cohort/keras/layers/regularizers.h"
#include "cohort/ops/variables.h"

namespace cohort::keras {

class Layer;
class LayerInstance;

// Shape and dtype of a value that flows between layers. Dimension 0 of the shape is the batch, mostly unknown.
struct COHORT_EXPORT LayerInput {
  DType dtype = DType::kFloat32;
  Shape shape = Shape::UnknownRank();
};

// A weight that a layer wants to have.
struct COHORT_EXPORT WeightSpec {
  std::string name;  // "kernel"; unique in the layer
  Shape shape;       // fully defined
  DType dtype = DType::kFloat32;
  Initializer initializer = "glorot_uniform";
  bool trainable = true;
  Regularizer regularizer = {};
  // For initializers that scale by fans: where the generic rule of the shape (ops::Fans) is not the truth.
  std::optional<ops::FanCounts> fans = std::nullopt;
};

// What Layer::Call may use of the instance of the model that is being built.
class COHORT_EXPORT CallContext {
 public:
  Graph& graph() const;
  // Whether the nodes are for a training step: dropout drops, batch statistics are taken.
  bool training() const;
  // The value of a weight, in the dtype that is computed in, as the updates so far (AddUpdate) leave it. Throws
  // InvalidArgumentError for a name that the layer's Build has not declared.
  Output weight(const std::string& name) const { return Computed(value(name)); }
  // Likewise, in the dtype that Build declares: if precision matters, and for the values of updates.
  Output value(const std::string& name) const;
  // Its variable, for lookups by row. Its value() is that of the step's start, without updates.
  ops::Variable variable(const std::string& name) const;
  // Numbers in the dtype that is computed in: float32, or bfloat16 in a model of mixed precision. Floating inputs of
  // Call have it already.
  Output Computed(Output value) const;
  // A layer inside this one; its weights are called "<this layer>/<that layer>/<weight>". The same layer given twice
  // has the same weights.
  std::vector<Output> Call(const Layer& layer, const std::vector<Output>& inputs);
  // The first value of a layer with one input.
  Output Call(const Layer& layer, Output input) { return Call(layer, std::vector<Output>{input}).at(0); }
  // In training: from here on weight() and value() give `value`, in other calls of the layer too, and after the step
  // the weight has the value of the last update (averaged over replicas). So a layer that is called twice updates its
  // weight twice if `value` is computed from value(weight). Outside of training it is ignored. Throws
  // InvalidArgumentError for a value of another dtype, shape or graph (a branch or loop returns its value to the graph
  // around it).
  void AddUpdate(const std::string& weight, Output value);
  // Adds a scalar to the loss.
  void AddLoss(Output loss);
  // In training: int32 [2], for stateless random ops. Each step, call of the layer and `seed` has another one; it
  // follows from them and the model's seed alone, so that training that is taken up again goes on with the same
  // numbers.
  Output StepSeed(int64_t seed = 0) const;
  // The sum over all replicas of the step; with one replica the value itself.
  Output SumOverReplicas(Output value) const;

 private:
  friend class LayerInstance;
  CallContext(LayerInstance& instance, std::string path, std::vector<std::pair<std::string, ops::Variable>> weights)
      : instance_(instance), path_(std::move(path)), weights_(std::move(weights)) {}

  LayerInstance& instance_;
  const std::string path_;  // "block/dense"; "" for the model itself
  const std::vector<std::pair<std::string, ops::Variable>> weights_;
};

// Immutable, thread-safe.
class COHORT_EXPORT Layer : public std::enable_shared_from_this<Layer> {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const std::string& class_name() const { return class_name_; }  // "Dense"
  // As given; "" where the model chooses one: "dense", then "dense_1", ...
  const std::string& name() const { return name_; }
  // False: none of the weights is trained.
  bool trainable() const { return trainable_; }

  // The weights for these inputs. Throws InvalidArgumentError for inputs that the layer cannot take. Weights of layers
  // inside this one (CallContext::Call) are not among them.
  virtual std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const { return {}; }
  // Adds the nodes and returns the results. `inputs` have the shapes that Build was given.
  virtual std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const = 0;
  // The dtype of the first input, for a model whose inputs are not declared.
  virtual DType InputDType() const { return DType::kFloat32; }
  // The options as Keras's files hold them, without name, trainable and dtype, so that a model can be saved. Throws
  // UnimplementedError where a layer of the program's own does not say; LoadOptions::custom_layers is the reverse.
  virtual ConfigValue::Object Config() const;

 protected:
  // Throws InvalidArgumentError for a name with a "/".
  explicit Layer(std::string class_name, std::string name = "", bool trainable = true);

 private:
  const std::string class_name_;
  const std::string name_;
  const bool trainable_;
};

struct LayerCall;

// A value between the layers of a functional model: nothing is computed, it only says what follows from what.
class COHORT_EXPORT LayerTensor {
 public:
  LayerTensor(std::shared_ptr<const LayerCall> call, int index, LayerInput spec)
      : call_(std::move(call)), index_(index), spec_(std::move(spec)) {}
  const std::shared_ptr<const LayerCall>& call() const { return call_; }
  int index() const { return index_; }
  DType dtype() const { return spec_.dtype; }
  const Shape& shape() const { return spec_.shape; }  // as far as it is known
  friend bool operator==(const LayerTensor& a, const LayerTensor& b) {
    return a.call_ == b.call_ && a.index_ == b.index_;
  }

 private:
  std::shared_ptr<const LayerCall> call_;
  int index_;
  LayerInput spec_;
};

// A layer that takes part in a model, by reference; cheap to copy. Copies are the same layer, with the same weights.
class COHORT_EXPORT LayerRef {
 public:
  explicit LayerRef(std::shared_ptr<const Layer> layer) : layer_(std::move(layer)) {}
  const Layer& layer() const { return *layer_; }
  const Layer& operator*() const { return *layer_; }
  const Layer* operator->() const { return layer_.get(); }
  const std::shared_ptr<const Layer>& ptr() const { return layer_; }

  // Applies the layer in a functional model. Throws InvalidArgumentError for inputs that the layer cannot take.
  LayerTensor operator()(const LayerTensor& input) const { return Apply({input}).at(0); }
  LayerTensor operator()(const std::vector<LayerTensor>& inputs) const { return Apply(inputs).at(0); }
  // All results of a layer that has several.
  std::vector<LayerTensor> Apply(const std::vector<LayerTensor>& inputs) const;

 private:
  std::shared_ptr<const Layer> layer_;
};

// One application of a layer.
struct COHORT_EXPORT LayerCall {
  LayerRef layer;
  std::vector<LayerTensor> inputs;
};

template <typename L, typename... Args>
LayerRef MakeLayer(Args&&... args) {
  return LayerRef(std::make_shared<const L>(std::forward<Args>(args)...));
}

// What the layer gives for these inputs. Throws what Build and Call throw.
COHORT_EXPORT std::vector<LayerInput> InferOutputs(const Layer& layer, const std::vector<LayerInput>& inputs);

}  // namespace cohort::keras
