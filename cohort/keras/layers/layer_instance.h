// LayerInstance: a model's layers put into a graph once - for training or for inference, for one replica - with
// variables that a WeightStore hands out. Internal to keras/.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cohort/distribute/strategy.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// A weight of a model: its full name, what the layer wants, and the variable of one replica.
struct ModelWeight {
  std::string path;   // "dense/kernel"
  std::string layer;  // path of its layer, "dense"
  WeightSpec spec;    // `trainable` as the layer declares it
  bool trainable;     // false also for those of frozen layers
  ops::Variable variable;
};

// The weights of one replica, made when a layer first asks for them, in that order.
class WeightStore {
 public:
  // `prefix` goes before the names of variables. Makes them through the open variable creators of `graph`.
  explicit WeightStore(Graph& graph, std::string prefix = "") : graph_(graph), prefix_(std::move(prefix)) {}

  // The weights of another replica: the same, with `local` of each variable. Frozen.
  WeightStore(const WeightStore& first, const std::function<ops::Variable(const ops::Variable&)>& local);

  Graph& graph() const { return graph_; }
  // Throws InvalidArgumentError where the weight exists with another shape.
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

// What the weights are after a step, by their layers: of each weight that is updated the last value, which has been
// computed from those before it. All instances of a step share it. For one thread.
class WeightUpdates {
 public:
  struct Update {
    ops::Variable variable;
    Output value;
  };

  // The value after the updates so far: at first that of the step's start.
  Output Current(const ops::Variable& variable) const;
  void Set(const ops::Variable& variable, Output value);
  // One for each weight, in the order of their first updates.
  const std::vector<Update>& all() const { return all_; }

 private:
  std::vector<Update> all_;
};

// For one thread.
class LayerInstance {
 public:
  struct LayerValues {
    std::string path;
    std::vector<Output> outputs;
    // Whether the layer is one of the model's own, not inside of another.
    bool is_whole() const { return !path.empty() && path.find('/') == std::string::npos; }
  };

  struct Options {
    bool training = false;
    DType compute_dtype = DType::kFloat32;
    Output step = {};                               // of training: its number, an int64 scalar
    distribute::ReplicaContext* replica = nullptr;  // while the instance is made; null: there is one alone
    WeightUpdates* updates = nullptr;               // of training: those of the step; null: they are dropped
  };

  LayerInstance(WeightStore& weights, const Options& options) : weights_(weights), options_(options) {}

  // Adds the layer at `path`.
  std::vector<Output> Add(const Layer& layer, const std::string& path, const std::vector<Output>& inputs);
  // A name for a layer inside `path`: its own, or one made of its class that no other layer there has.
  std::string NameOf(const Layer& layer, const std::string& path);

  Graph& graph() const { return weights_.graph(); }
  bool training() const { return options_.training; }
  distribute::ReplicaContext* replica() const { return options_.replica; }
  Output Computed(Output value) const;
  // Of each layer, inner ones before those that they are part of, in the order of calls.
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
