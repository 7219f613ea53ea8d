// Layers: each describes one piece of a model's computation. A layer says which weights it needs for the shapes of its
// inputs, and adds nodes that use these weights. It owns no variable. So a layer can be added to graphs many times (for
// training and inference, for each replica, twice in one model with the same weights), and models and threads can share
// it. A layer does not change after it was made, except that it can be frozen (SetTrainable).
//
// A layer of a program's own derives from Layer. A layer with one input and one result overrides one function:
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
// docs/how-to/add-a-layer.md says how such a layer can be saved in files.
//
// Masks. A value that flows between layers may carry a mask, as in Keras: a bool tensor with the value's first
// dimensions, mostly [batch, steps]. False says that a step does not count, such as a step that only pads a short
// sequence. Embedding(mask_zero) and Masking make masks. A layer reads those of its inputs (CallContext::mask), gives
// its results others (CallContext::WithMask), or passes them on (Layer::supports_masking). If an output of the model
// carries a mask, the masked steps count neither in the loss nor in metrics that are means. A model without masks has
// no node for them. Shape inference (InferOutputs) calls layers without masks, so a layer must not need one.
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

// Shape and dtype of a value that flows between layers. Dimension 0 of the shape is the batch; its size is mostly
// unknown.
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
  // The numbers of inputs and outputs for initializers that scale by them. nullopt: ops::Fans computes them from the
  // shape.
  std::optional<ops::FanCounts> fans = std::nullopt;
};

// The functions that Layer::Call may use. LayerInstance makes and owns a context for each call. It is valid during the
// call, on the calling thread.
class COHORT_EXPORT CallContext {
 public:
  Graph& graph() const;
  // Returns true if the nodes are for a training step: then Dropout drops elements, and BatchNormalization uses the
  // statistics of the batch.
  bool training() const;
  // Returns true if this layer and all layers around it are trainable. If false, a layer that keeps statistics should
  // compute as in inference and not update them.
  bool trainable() const { return trainable_; }
  // Declares a weight and returns its value in the dtype of the computation, as weight(name) does. If the layer has a
  // weight of this name already, returns the value of that weight. Throws InvalidArgumentError if the layer has a
  // weight of this name with another shape, and if a training step declares a weight that the model did not have when
  // it was built.
  Output weight(const WeightSpec& spec);
  // Returns the value of a weight in the dtype of the computation (see Computed). After an AddUpdate of this weight,
  // the value is that of the last update. Throws InvalidArgumentError for a name that neither Build nor
  // weight(WeightSpec) has declared.
  Output weight(const std::string& name) const { return Computed(value(name)); }
  // Returns the same value in the dtype that the weight was declared with. Use it if precision matters, and to compute
  // the values of updates.
  Output value(const std::string& name) const;
  // Returns the rows of a weight with these indices (int32 or int64), in the dtype of the computation. Its gradient is
  // sparse. If the weight lies on a parameter server, each different row travels once (ops::Variable::GatherUnique).
  // The values are those at the begin of the step, without the updates of AddUpdate.
  Output Rows(const std::string& name, Output indices) const;
  // Returns the variable of a weight, for look-ups by row. Its value() is the value at the begin of the step, without
  // the updates of AddUpdate.
  ops::Variable variable(const std::string& name) const;
  // Returns `value` in the dtype of the computation: float32, or bfloat16 in a model of mixed precision. The floating
  // inputs of Call already have this dtype.
  Output Computed(Output value) const;
  // Returns the mask that input `i` carries, or an Output that is not valid if it carries none.
  Output mask(size_t i = 0) const;
  // Returns `value` with this mask. It carries the mask into inner layers, and as a result of the layer into the next
  // ones. If `value` is an input or carries another mask, the result is a copy, because others use the value. Returns
  // `value` itself if the mask is not valid. Throws InvalidArgumentError for a mask that is not bool, is of another
  // graph, or has other dimensions than the first ones of the value.
  Output WithMask(Output value, Output mask);
  // Adds a layer inside this one. Its weights are called "<this layer>/<that layer>/<weight>". If the same layer is
  // added twice, both uses have the same weights. The layer sees the masks of `inputs`.
  std::vector<Output> Call(const Layer& layer, const std::vector<Output>& inputs);
  // As above, for a layer with one input and one result.
  Output Call(const Layer& layer, Output input) { return Call(layer, std::vector<Output>{input}).at(0); }
  // Gives a weight another value. From here on, weight(name) and value(name) return `value`, also in later calls of the
  // layer in the same step. After the step the weight has the value of the last update, averaged over replicas. So if a
  // layer is called twice and computes `value` from value(weight), its weight is updated twice. Outside of training,
  // the call changes nothing. Throws InvalidArgumentError for a weight that was not declared, and for a value of
  // another dtype, shape or graph. (The body of a branch or loop is another graph: return the value from the body
  // first.)
  void AddUpdate(const std::string& weight, Output value);
  // Adds a scalar to the loss. Throws InvalidArgumentError for another shape.
  void AddLoss(Output loss);
  // In training, returns a seed for stateless random ops, int32 [2]. It depends only on the model's seed, the layer's
  // path, `seed`, the replica, the step, and the number of the layer's call in the step. So a continued training gets
  // the same numbers. Throws FailedPreconditionError outside of training.
  Output StepSeed(int64_t seed = 0) const;
  // Returns the sum of the replicas' values, over all replicas of all processes. With one replica, returns `value`.
  Output SumOverReplicas(Output value) const;

 private:
  friend class LayerInstance;
  CallContext(LayerInstance& instance, std::string path, bool trainable)
      : instance_(instance), path_(std::move(path)), trainable_(trainable) {}
  // Adds the weight to those of the layer, if it is not among them yet.
  void Declare(const WeightSpec& spec);
  bool IsInput(const Output& value) const;

  LayerInstance& instance_;
  const std::string path_;  // "block/dense"; "" for the model itself
  const bool trainable_;
  std::vector<std::pair<std::string, ops::Variable>> weights_;
  std::vector<Output> inputs_;
  mutable bool knows_masks_ = false;  // the layer has asked for a mask or made one, or has called a layer
};

// The base of layers. Thread-safe, and immutable except for SetTrainable. Models share ownership through LayerRef.
class COHORT_EXPORT Layer : public std::enable_shared_from_this<Layer> {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const std::string& class_name() const { return class_name_; }  // "Dense"
  // Returns the name that the layer was given. If it is "", each model chooses a name for the layer: "dense", then
  // "dense_1", ...
  const std::string& name() const { return name_; }
  // Returns false if the layer is frozen: none of its weights is trained.
  bool trainable() const { return trainable_.load(std::memory_order_relaxed); }
  // Freezes the layer (false) or lets it be trained (true), in all models that have the layer. If the layer is a model,
  // does the same for all its layers. A model that was fitted since its last Compile obeys only after its next Compile.
  virtual void SetTrainable(bool trainable) const { trainable_.store(trainable, std::memory_order_relaxed); }

  // Returns the weights that the layer declares for these inputs. Throws InvalidArgumentError for inputs that the layer
  // cannot take. The weights of inner layers (CallContext::Call) are not among them, nor are the weights that Call
  // declares with CallContext::weight(WeightSpec).
  virtual std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const { return {}; }
  // Adds the nodes and returns the results. `inputs` have the shapes that Build was given.
  // A layer overrides one of the two functions. By default, the function for several values calls the function for one
  // value, and throws InvalidArgumentError if there is not exactly one input. By default, the function for one value
  // throws UnimplementedError.
  virtual std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const;
  virtual Output Call(CallContext& ctx, Output x) const;
  // Says which masks the results have that carry none by CallContext::WithMask or from a layer inside. true: result i
  // carries the mask of input i. false: it carries none. Then a model warns if an input with a mask gets to the layer,
  // unless the layer asks for the mask or makes another one.
  virtual bool supports_masking() const { return false; }
  // Returns the dtype of the input of a Sequential that begins with this layer and has no Input().
  virtual DType InputDType() const { return DType::kFloat32; }
  // Returns the options as Keras's files have them, without name, trainable and dtype. A LayerFactory (RegisterLayer,
  // LoadOptions::custom_layers) does the reverse. By default it returns no options if MakeLayer made the layer without
  // arguments. For another layer it throws UnimplementedError; then models with this layer cannot be saved.
  virtual ConfigValue::Object Config() const;

 protected:
  // Throws InvalidArgumentError if `name` has a "/".
  explicit Layer(std::string class_name, std::string name = "", bool trainable = true);

 private:
  friend class LayerNaming;
  friend class LayerMaking;

  const std::string class_name_;
  mutable std::string name_;  // LayerNaming sets it if a factory made the layer without a name
  mutable std::atomic<bool> trainable_;
  bool made_without_arguments_ = false;  // MakeLayer sets it before anything else has the layer
};

struct LayerCall;

// A symbolic value between the layers of a functional model. It knows which layer makes it from which values.
// Immutable, and cheap to copy.
class COHORT_EXPORT LayerTensor {
 public:
  // `model` is the built model from which the program took the value (such as with ModelLayer::output), or null. If it
  // is not null, the value keeps the model alive, and a new model that is made with the value begins with copies of
  // that model's weights.
  LayerTensor(std::shared_ptr<const LayerCall> call, int index, LayerInput spec,
              std::shared_ptr<ModelState> model = nullptr)
      : call_(std::move(call)), index_(index), spec_(std::move(spec)), model_(std::move(model)) {}
  const std::shared_ptr<const LayerCall>& call() const { return call_; }
  int index() const { return index_; }
  DType dtype() const { return spec_.dtype; }
  const Shape& shape() const { return spec_.shape; }  // unknown dimensions are -1
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

// The initial values of a layer's weights in a new model: copies of the weights that the layer has at `path` of
// `model`.
struct COHORT_EXPORT WeightOrigin {
  std::shared_ptr<ModelState> model;  // null: initial values are drawn
  std::string path;
  std::string part;  // if not "", they are the weights of this layer inside of the layer
};

// A handle of a layer, which models share. Copies of a LayerRef are the same layer: in one model they have the same
// weights. Cheap to copy.
class COHORT_EXPORT LayerRef {
 public:
  explicit LayerRef(std::shared_ptr<const Layer> layer, WeightOrigin origin = {})
      : layer_(std::move(layer)), origin_(std::move(origin)) {}
  const Layer& layer() const { return *layer_; }
  const Layer& operator*() const { return *layer_; }
  const Layer* operator->() const { return layer_.get(); }
  const std::shared_ptr<const Layer>& ptr() const { return layer_; }
  const WeightOrigin& origin() const { return origin_; }
  // The shape of one example that the layer was made for (`input_shape` of its options), if it was given. A Sequential
  // that begins with the layer takes examples of this shape. Apply throws InvalidArgumentError for other examples.
  const std::optional<Shape>& input_shape() const { return input_shape_; }
  // Returns a handle of the same layer, with another input_shape().
  LayerRef WithInputShape(const std::optional<Shape>& shape) const {
    LayerRef same = *this;
    same.input_shape_ = shape;
    return same;
  }
  bool trainable() const { return layer_->trainable(); }
  void SetTrainable(bool trainable) const { layer_->SetTrainable(trainable); }

  // Applies the layer in a functional model. Throws InvalidArgumentError for inputs that the layer cannot take.
  LayerTensor operator()(const LayerTensor& input) const { return Apply({input}).at(0); }
  LayerTensor operator()(const std::vector<LayerTensor>& inputs) const { return Apply(inputs).at(0); }
  // Applies the layer and returns all its results.
  std::vector<LayerTensor> Apply(const std::vector<LayerTensor>& inputs) const;

 private:
  std::shared_ptr<const Layer> layer_;
  WeightOrigin origin_;
  std::optional<Shape> input_shape_;
};

// One application of a layer.
struct COHORT_EXPORT LayerCall {
  LayerRef layer;
  std::vector<LayerTensor> inputs;
};

// A part of MakeLayer. Programs do not call it.
class COHORT_EXPORT LayerMaking {
 public:
  // Notes that the layer's constructor got no arguments. Requires: nobody else uses the layer yet.
  static void NoteNoArguments(Layer& layer) { layer.made_without_arguments_ = true; }
};

// Makes a layer of class L with the arguments of its constructor.
template <typename L, typename... Args>
LayerRef MakeLayer(Args&&... args) {
  const auto layer = std::make_shared<L>(std::forward<Args>(args)...);
  if (sizeof...(Args) == 0) LayerMaking::NoteNoArguments(*layer);
  return LayerRef(layer);
}

// Returns the specs of the layer's results for these inputs. Throws what Build and Call throw.
COHORT_EXPORT std::vector<LayerInput> InferOutputs(const Layer& layer, const std::vector<LayerInput>& inputs);

}  // namespace cohort::keras
