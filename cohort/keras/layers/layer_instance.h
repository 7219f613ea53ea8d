// LayerInstance: the layers of a model, added to a graph once. They are added for training or for inference, and for
// one replica. A WeightStore provides their variables. Internal to keras/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cohort/distribute/strategy.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// A weight of a model: its full name, the layer's declaration, and the variable of one replica.
struct ModelWeight {
  std::string path;   // "dense/kernel"
  std::string layer;  // path of its layer, "dense"
  WeightSpec spec;    // spec.trainable is what the layer declared; freezing does not change it
  bool trainable;     // false if spec.trainable is false or the layer is frozen
  ops::Variable variable;
};

// Returns the indices of the weights of the layer at the path `layer` and of the layers inside of it. If `layer` is "",
// these are all weights.
std::vector<size_t> WeightsBelow(const std::vector<ModelWeight>& weights, const std::string& layer);

// The weights of one replica. A weight is made when a layer first asks for it. weights() has the order in which they
// were made. ModelEngine owns the stores of a model. Functions that add layers to a graph of their own make a store for
// the time of the call. Used by one thread at a time.
class WeightStore {
 public:
  // `prefix` is put before the names of variables. Variables are made through the current variable creators of `graph`.
  explicit WeightStore(Graph& graph, std::string prefix = "") : graph_(graph), prefix_(std::move(prefix)) {}

  // Makes the store of another replica. It has the weights of `first`, with other variables: `local` takes a variable
  // of the first replica and returns the one that this replica uses. The store is frozen.
  WeightStore(const WeightStore& first, const std::function<ops::Variable(const ops::Variable&)>& local);

  Graph& graph() const { return graph_; }
  // Returns the weight, and makes it if it is new. Throws InvalidArgumentError if it exists with another shape.
  const ModelWeight& Get(const std::string& layer_path, const WeightSpec& spec, bool trainable);
  const std::vector<ModelWeight>& weights() const { return weights_; }
  // Sets which weights are trained. Requires: `trainable` has the path of every weight.
  void SetTrainable(const std::map<std::string, bool>& trainable);
  // From now on Get throws InvalidArgumentError for a weight that does not exist, because the model is built.
  void Freeze() { frozen_ = true; }

 private:
  Graph& graph_;
  const std::string prefix_;
  std::vector<ModelWeight> weights_;
  std::map<std::string, size_t> by_path_;
  bool frozen_ = false;
};

// The values of weights after a step, if layers update them. A weight that is updated several times has its last value,
// which may be computed from the earlier ones. All instances of a step share it; StepParts owns it. Used by one thread.
class WeightUpdates {
 public:
  struct Update {
    ops::Variable variable;
    Output value;
  };

  // Returns the value after the updates so far. Without updates it is the value at the begin of the step.
  Output Current(const ops::Variable& variable) const;
  void Set(const ops::Variable& variable, Output value);
  // Returns one entry for each updated weight, in the order of their first updates.
  const std::vector<Update>& all() const { return all_; }

 private:
  std::vector<Update> all_;
};

// Adds layers and collects their results. ModelEngine, StepParts, or the function that adds the layers owns it. Used by
// the thread that builds the graph.
class LayerInstance {
 public:
  struct LayerValues {
    std::string path;
    std::vector<Output> outputs;
    // Returns true if the layer is one of the model's own layers. Returns false for the model itself and for a layer
    // inside of another layer.
    bool is_whole() const { return !path.empty() && path.find('/') == std::string::npos; }
  };

  struct Options {
    bool training = false;
    DType compute_dtype = DType::kFloat32;
    Output step = {};                               // in training: the number of the step, an int64 scalar
    distribute::ReplicaContext* replica = nullptr;  // valid while layers are added; null: one replica
    WeightUpdates* updates = nullptr;               // in training: shared by the step; null: updates are ignored
    bool warns = false;                             // of layers of the model that drop the masks of their inputs
  };

  // A layer that was added, and whether it was trainable then.
  struct AddedLayer {
    std::weak_ptr<const Layer> layer;  // empty if the layer that contains it has destroyed it
    bool trainable;
  };

  LayerInstance(WeightStore& weights, const Options& options) : weights_(weights), options_(options) {}

  // Adds the layer with the path `path`. Returns its results.
  std::vector<Output> Add(const Layer& layer, const std::string& path, const std::vector<Output>& inputs);
  // Returns a name for a layer inside the layer at `path`: the layer's own name, or a name that is made from its class
  // and that no other layer at `path` has. Throws InvalidArgumentError if another layer at `path` has the layer's own
  // name.
  std::string NameOf(const Layer& layer, const std::string& path);

  Graph& graph() const { return weights_.graph(); }
  bool training() const { return options_.training; }
  distribute::ReplicaContext* replica() const { return options_.replica; }
  // Returns `value` in the dtype `compute_dtype`. Adds a cast if it has another dtype.
  Output Computed(Output value) const;
  // Returns the mask that a value carries, or an Output that is not valid if it carries none.
  Output MaskOf(const Output& value) const;
  // Gives a value a mask. If the mask is not valid, does nothing.
  void SetMaskOf(const Output& value, const Output& mask);
  // Returns the results of each layer, in the order of calls. Inner layers come before the layers that contain them.
  const std::vector<LayerValues>& values() const { return values_; }
  // Returns the layers in the same order.
  const std::vector<AddedLayer>& layers() const { return layers_; }
  const std::vector<Output>& losses() const { return losses_; }
  // Adds and returns the penalties of the trained weights that have a regularizer. As in Keras, weights of frozen
  // layers have no penalty.
  std::vector<Output> Penalties() const;

 private:
  friend class CallContext;
  // Gives the results of a layer the masks that Layer::supports_masking says.
  void PassMasks(const Layer& layer, const CallContext& ctx, std::vector<Output>& results);

  WeightStore& weights_;
  const Options options_;
  bool frozen_ = false;  // inside a layer that is not trainable
  std::vector<LayerValues> values_;
  std::vector<AddedLayer> layers_;
  std::vector<Output> losses_;
  std::map<std::pair<const Node*, int>, Output> masks_;                // of the values that carry one
  std::map<std::pair<std::string, const Layer*>, std::string> names_;  // by path of the parent
  std::set<std::string> taken_;                                        // full paths of names
};

}  // namespace cohort::keras
