// LayerInstance: adds a model's layers to a graph once: for training or for inference, and for one replica. A
// WeightStore provides their variables. Internal to keras/.
#pragma once

#include <functional>
#include <map>
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
  WeightSpec spec;    // `trainable` as the layer declares it
  bool trainable;     // false also for those of frozen layers
  ops::Variable variable;
};

// The weights of one replica. A weight is made when a layer first asks for it, and weights() has this order.
// ModelEngine owns it. One thread.
class WeightStore {
 public:
  // `prefix` is put before the names of variables. Variables are made through the current variable creators of `graph`.
  explicit WeightStore(Graph& graph, std::string prefix = "") : graph_(graph), prefix_(std::move(prefix)) {}

  // The weights of another replica: those of `first`, with `local` applied to each variable. It is frozen.
  WeightStore(const WeightStore& first, const std::function<ops::Variable(const ops::Variable&)>& local);

  Graph& graph() const { return graph_; }
  // Returns the weight, and makes it if it is new. Throws InvalidArgumentError if it exists with another shape.
  const ModelWeight& Get(const std::string& layer_path, const WeightSpec& spec, bool trainable);
  const std::vector<ModelWeight>& weights() const { return weights_; }
  // Sets by path which weights are trained. Requires: `trainable` has all weights.
  void SetTrainable(const std::map<std::string, bool>& trainable);
  // From now on a weight that is not there is an InvalidArgumentError: the model is built.
  void Freeze() { frozen_ = true; }

 private:
  Graph& graph_;
  const std::string prefix_;
  std::vector<ModelWeight> weights_;
  std::map<std::string, size_t> by_path_;
  bool frozen_ = false;
};

// The values of weights after a step, if layers update them. A weight that is updated several times has its last value,
// which may be computed from the earlier ones. All instances of a step share it. One thread.
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

// Adds layers and collects their results. One thread, while the graph is built.
class LayerInstance {
 public:
  struct LayerValues {
    std::string path;
    std::vector<Output> outputs;
    // Returns true if the layer is one of the model's own layers, not a part of another layer.
    bool is_whole() const { return !path.empty() && path.find('/') == std::string::npos; }
  };

  struct Options {
    bool training = false;
    DType compute_dtype = DType::kFloat32;
    Output step = {};                               // of training: the number of the step, an int64 scalar
    distribute::ReplicaContext* replica = nullptr;  // valid while the instance is made; null: one replica
    WeightUpdates* updates = nullptr;               // of training: shared by the step; null: updates are dropped
  };

  LayerInstance(WeightStore& weights, const Options& options) : weights_(weights), options_(options) {}

  // Adds the layer with the path `path`. Returns its results.
  std::vector<Output> Add(const Layer& layer, const std::string& path, const std::vector<Output>& inputs);
  // Returns a name for a layer inside `path`: its own name, or one made of its class that no other layer there has.
  std::string NameOf(const Layer& layer, const std::string& path);

  Graph& graph() const { return weights_.graph(); }
  bool training() const { return options_.training; }
  distribute::ReplicaContext* replica() const { return options_.replica; }
  Output Computed(Output value) const;
  // Returns the results of each layer, in the order of calls. Inner layers come before the layers that contain them.
  const std::vector<LayerValues>& values() const { return values_; }
  const std::vector<Output>& losses() const { return losses_; }
  // Of the trained weights that have a regularizer; Keras leaves out those of frozen layers too.
  std::vector<Output> Penalties() const;

 private:
  friend class CallContext;
  WeightStore& weights_;
  const Options options_;
  bool frozen_ = false;  // inside a layer that is not trainable
  std::vector<LayerValues> values_;
  std::vector<Output> losses_;
  std::map<std::pair<std::string, const Layer*>, std::string> names_;  // by path of the parent
  std::set<std::string> taken_;                                        // full paths of names
};

}  // namespace cohort::keras
