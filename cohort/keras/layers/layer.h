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

#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"
#include "cohort/keras/layers/initializers.h"
#include "cohort/keras/layers/regularizers.h"
#include "cohort/ops/variables.h"

namespace cohort::keras {

class Layer;
class LayerInstance;

// Shape and dtype of a value that flows between layers. Dimension 0 of the shape is the batch, mostly unknown.
struct LayerInput {
  DType dtype = DType::kFloat32;
  Shape shape = Shape::UnknownRank();
};

// A weight that a layer declares.
struct WeightSpec {
  std::string name;  // "kernel"; unique in the layer
  Shape shape;       // fully defined
  DType dtype = DType::kFloat32;
  Initializer initializer = "glorot_uniform";
  bool trainable = true;
  Regularizer regularizer = {};
  // The fans for initializers that scale by them, if the general rule for the shape (ops::Fans) is wrong for this
  // weight.
  std::optional<ops::FanCounts> fans = std::nullopt;
};

// The functions that Layer::Call may use. LayerInstance makes one for each call. One thread, during the call.
class CallContext {
 public:
  Graph& graph() const;
  // Returns true if the nodes are for a training step: then Dropout drops and batch statistics are taken.
  bool training() const;
  // The value of a weight, in the dtype that is computed in, as the updates so far (AddUpdate) leave it. Throws
  // InvalidArgumentError for a name that the layer's Build has not declared.
  Output weight(const std::string& name) const { return Computed(value(name)); }
  // Likewise, in the dtype that Build declares: if precision matters, and for the values of updates.
  Output value(const std::string& name) const;
  // Returns the variable of a weight, for look-ups by row. Its value() is that at the begin of the step, without
  // updates.
  ops::Variable variable(const std::string& name) const;
  // Returns `value` in the dtype of the computation: float32, or bfloat16 in a model of mixed precision. The floating
  // inputs of Call already have this dtype.
  Output Computed(Output value) const;
  // Adds a layer inside this one. Its weights are called "<this layer>/<that layer>/<weight>". If the same layer is
  // added twice, both uses have the same weights.
  std::vector<Output> Call(const Layer& layer, const std::vector<Output>& inputs);
  // As above, for a layer with one input and one result.
  Output Call(const Layer& layer, Output input) { return Call(layer, std::vector<Output>{input}).at(0); }
  // Gives a weight another value. From here on, weight() and value() return `value`, also in other calls of the layer.
  // After the step the weight has the value of the last update, averaged over replicas. So if a layer is called twice
  // and computes `value` from value(weight), its weight is updated twice. Outside of training, the call is ignored.
  // Throws InvalidArgumentError for a value of another dtype, shape or graph. (The body of a branch or loop is another
  // graph; it must return its value to the graph around it.)
  void AddUpdate(const std::string& weight, Output value);
  // Adds a scalar to the loss.
  void AddLoss(Output loss);
  // In training, returns a seed for stateless random ops, int32 [2]. It differs for each step, each call of the layer
  // and each `seed`. It depends only on these and on the model's seed, so a continued training gets the same numbers.
  Output StepSeed(int64_t seed = 0) const;
  // Returns the sum over all replicas of the step. With one replica, returns `value`.
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
class Layer : public std::enable_shared_from_this<Layer> {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const std::string& class_name() const { return class_name_; }  // "Dense"
  // Returns the given name. If it is "", the model chooses a name: "dense", then "dense_1", ...
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
  // Throws InvalidArgumentError if `name` has a "/".
  explicit Layer(std::string class_name, std::string name = "", bool trainable = true);

 private:
  const std::string class_name_;
  const std::string name_;
  const bool trainable_;
};

struct LayerCall;

// A symbolic value between the layers of a functional model. It says which layer makes it from which values. Cheap to
// copy.
class LayerTensor {
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

// A shared layer that takes part in models. Copies are the same layer with the same weights. Cheap to copy.
class LayerRef {
 public:
  explicit LayerRef(std::shared_ptr<const Layer> layer) : layer_(std::move(layer)) {}
  const Layer& layer() const { return *layer_; }
  const Layer& operator*() const { return *layer_; }
  const Layer* operator->() const { return layer_.get(); }
  const std::shared_ptr<const Layer>& ptr() const { return layer_; }

  // Applies the layer in a functional model. Throws InvalidArgumentError for inputs that the layer cannot take.
  LayerTensor operator()(const LayerTensor& input) const { return Apply({input}).at(0); }
  LayerTensor operator()(const std::vector<LayerTensor>& inputs) const { return Apply(inputs).at(0); }
  // Returns all results of a layer that has several.
  std::vector<LayerTensor> Apply(const std::vector<LayerTensor>& inputs) const;

 private:
  std::shared_ptr<const Layer> layer_;
};

// One application of a layer.
struct LayerCall {
  LayerRef layer;
  std::vector<LayerTensor> inputs;
};

template <typename L, typename... Args>
LayerRef MakeLayer(Args&&... args) {
  return LayerRef(std::make_shared<const L>(std::forward<Args>(args)...));
}

// Returns the specs of the layer's results for these inputs. Throws what Build and Call throw.
std::vector<LayerInput> InferOutputs(const Layer& layer, const std::vector<LayerInput>& inputs);

}  // namespace cohort::keras
