// Layers: descriptions of one step of a model. A layer says which weights it wants for the shapes of its inputs, and
// adds nodes that use them; it owns no variable. So one layer can be instantiated many times (for training and
// inference, once a replica, twice in one model with the same weights) and be shared between models and threads.
// Nothing of a layer changes after it was made, but whether it is trained.
//
// A layer of a program's own derives from Layer. One with one input and one result overrides one function:
//
//   class Scale final : public keras::Layer {
//    public:
//     Scale() : Layer("Scale") {}
//     Output Call(keras::CallContext& ctx, Output x) const override {
//       return x * ctx.weight({.name = "factor", .shape = Shape{}, .initializer = "ones"});
//     }
//   };
//   keras::Sequential model({keras::Dense(8), keras::MakeLayer<Scale>()});
//
// docs/how-to/add-a-layer.md says what a layer in files needs.
#pragma once

#include <atomic>
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
class ModelState;

// Shape and dtype of a value that flows between layers. Dimension 0 of the shape is the batch, mostly unknown.
struct COHORT_EXPORT LayerInput {
  DType dtype = DType::kFloat32;
  Shape shape = Shape::UnknownRank();
};

// A weight that a layer declares.
struct COHORT_EXPORT WeightSpec {
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
class COHORT_EXPORT CallContext {
 public:
  Graph& graph() const;
  // Returns true if the nodes are for a training step: then Dropout drops and batch statistics are taken.
  bool training() const;
  // Whether the layer's weights are trained: the layer is trainable, and so are those around it. A frozen layer that
  // keeps statistics computes as in inference, and leaves them as they are.
  bool trainable() const { return trainable_; }
  // The value of a weight that the layer wants to have, declared where it is used. The same name again is the same
  // weight. Throws InvalidArgumentError if the layer has a weight of this name with another shape.
  Output weight(const WeightSpec& spec);
  // The value of a weight, in the dtype that is computed in, as the updates so far (AddUpdate) leave it. Throws
  // InvalidArgumentError for a name that neither Build nor weight(WeightSpec) has declared.
  Output weight(const std::string& name) const { return Computed(value(name)); }
  // Likewise, in the dtype that it was declared with: if precision matters, and for the values of updates.
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
  CallContext(LayerInstance& instance, std::string path, bool trainable)
      : instance_(instance), path_(std::move(path)), trainable_(trainable) {}
  // Adds the weight to those of the layer, if it is not among them yet.
  void Declare(const WeightSpec& spec);

  LayerInstance& instance_;
  const std::string path_;  // "block/dense"; "" for the model itself
  const bool trainable_;
  std::vector<std::pair<std::string, ops::Variable>> weights_;
};

// Thread-safe. Immutable, but for SetTrainable.
class COHORT_EXPORT Layer : public std::enable_shared_from_this<Layer> {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const std::string& class_name() const { return class_name_; }  // "Dense"
  // Returns the given name. If it is "", the model chooses a name: "dense", then "dense_1", ...
  const std::string& name() const { return name_; }
  // False: the layer is frozen, and none of its weights is trained.
  bool trainable() const { return trainable_.load(std::memory_order_relaxed); }
  // Freezes the layer or has it trained, in all models that have it; a model as a layer passes it on to its layers. A
  // model that is compiled obeys from its next Compile on.
  virtual void SetTrainable(bool trainable) const { trainable_.store(trainable, std::memory_order_relaxed); }

  // The weights for these inputs. Throws InvalidArgumentError for inputs that the layer cannot take. Weights of layers
  // inside this one (CallContext::Call) are not among them, nor are those that Call declares with
  // CallContext::weight(WeightSpec).
  virtual std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const { return {}; }
  // Adds the nodes and returns the results. `inputs` have the shapes that Build was given.
  // A layer overrides one of the two functions: that of several values, or that of one. The first one calls the second,
  // and throws InvalidArgumentError if there is not one input alone.
  virtual std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const;
  virtual Output Call(CallContext& ctx, Output x) const;
  // The dtype of the first input, for a model whose inputs are not declared.
  virtual DType InputDType() const { return DType::kFloat32; }
  // The options as Keras's files hold them, without name, trainable and dtype, so that a model can be saved. Throws
  // UnimplementedError if a layer of the program's own does not say. The reverse is the LayerFactory that is given to
  // RegisterLayer or to LoadOptions::custom_layers.
  virtual ConfigValue::Object Config() const;

 protected:
  // Throws InvalidArgumentError if `name` has a "/".
  explicit Layer(std::string class_name, std::string name = "", bool trainable = true);

 private:
  friend class LayerNaming;

  const std::string class_name_;
  mutable std::string name_;  // LayerNaming gives it to layers that a factory made without
  mutable std::atomic<bool> trainable_;
};

struct LayerCall;

// A symbolic value between the layers of a functional model. It says which layer makes it from which values. Cheap to
// copy.
class COHORT_EXPORT LayerTensor {
 public:
  // `model`: the built model that the value was looked up in; null if it is none of a model. A further model that is
  // made of the value begins with copies of that model's weights.
  LayerTensor(std::shared_ptr<const LayerCall> call, int index, LayerInput spec,
              std::shared_ptr<ModelState> model = nullptr)
      : call_(std::move(call)), index_(index), spec_(std::move(spec)), model_(std::move(model)) {}
  const std::shared_ptr<const LayerCall>& call() const { return call_; }
  int index() const { return index_; }
  DType dtype() const { return spec_.dtype; }
  const Shape& shape() const { return spec_.shape; }  // as far as it is known
  const std::shared_ptr<ModelState>& model() const { return model_; }
  friend bool operator==(const LayerTensor& a, const LayerTensor& b) {
    return a.call_ == b.call_ && a.index_ == b.index_;
  }

 private:
  std::shared_ptr<const LayerCall> call_;
  int index_;
  LayerInput spec_;
  std::shared_ptr<ModelState> model_;
};

// Where the weights of a layer begin in a further model: with copies of those that it has at `path` of `model`.
struct COHORT_EXPORT WeightOrigin {
  std::shared_ptr<ModelState> model;  // null: initial values are drawn
  std::string path;
};

// A shared layer that takes part in models. Copies are the same layer with the same weights. Cheap to copy.
class COHORT_EXPORT LayerRef {
 public:
  explicit LayerRef(std::shared_ptr<const Layer> layer, WeightOrigin origin = {})
      : layer_(std::move(layer)), origin_(std::move(origin)) {}
  const Layer& layer() const { return *layer_; }
  const Layer& operator*() const { return *layer_; }
  const Layer* operator->() const { return layer_.get(); }
  const std::shared_ptr<const Layer>& ptr() const { return layer_; }
  const WeightOrigin& origin() const { return origin_; }
  bool trainable() const { return layer_->trainable(); }
  void SetTrainable(bool trainable) const { layer_->SetTrainable(trainable); }

  // Applies the layer in a functional model. Throws InvalidArgumentError for inputs that the layer cannot take.
  LayerTensor operator()(const LayerTensor& input) const { return Apply({input}).at(0); }
  LayerTensor operator()(const std::vector<LayerTensor>& inputs) const { return Apply(inputs).at(0); }
  // Returns all results of a layer that has several.
  std::vector<LayerTensor> Apply(const std::vector<LayerTensor>& inputs) const;

 private:
  std::shared_ptr<const Layer> layer_;
  WeightOrigin origin_;
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

// Returns the specs of the layer's results for these inputs. Throws what Build and Call throw.
COHORT_EXPORT std::vector<LayerInput> InferOutputs(const Layer& layer, const std::vector<LayerInput>& inputs);

}  // namespace cohort::keras
