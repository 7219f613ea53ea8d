// ModelState: what the copies of a Model share - its layers, the engine with its weights, what Compile was given, and
// the steps of training and evaluation. Internal to keras/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/training/batches.h"
#include "cohort/keras/training/model_engine.h"
#include "cohort/keras/training/options.h"
#include "cohort/keras/training/step_parts.h"

namespace cohort::keras {

// For one thread at a time, except for what says otherwise.
class ModelState {
 public:
  // Returns the layers for inputs of these shapes and dtypes; `data` empty: null if they are not known without.
  using MakeLayers = std::function<std::shared_ptr<const LayerGraph>(const data::ElementSpec& data)>;

  // Throws InvalidArgumentError for a dtype policy that is not known.
  ModelState(ModelOptions options, MakeLayers make_layers);

  const ModelOptions& options() const { return options_; }
  const std::string& name() const { return options_.name; }
  bool is_chief() const { return options_.strategy == nullptr || options_.strategy->is_chief(); }

  // Whether layers and weights exist. Thread-safe.
  bool built() const;
  // Returns the engine; makes layers and weights first if they are not there yet. Thread-safe. Throws
  // FailedPreconditionError if the shapes of the inputs are known neither from the layers nor from `data`.
  ModelEngine& EngineFor(const data::ElementSpec& data) COHORT_EXCLUDES(build_mu_);
  ModelEngine& engine() { return EngineFor({}); }
  // Makes layers and weights and what Compile was given, as far as they are known without data. Returns false if the
  // layers wait for data.
  bool BuildIfKnown();
  // Makes layers and weights if some begin with the weights of another model, which is free to change afterwards.
  void BuildIfItInherits();
  // Requires: EngineFor has returned.
  const LayerGraph& layers() const { return *layers_; }
  std::shared_ptr<const LayerGraph> shared_layers() const { return layers_; }

  // The results of layers().steps()[step], to make a further model of; the same values each time. `self` is this.
  // Requires: EngineFor has returned.
  std::vector<LayerTensor> ValuesOf(const std::shared_ptr<ModelState>& self, size_t step);
  // The path of one of the model's own layers: "dense_1". Throws InternalError for another layer.
  std::string PathOf(const Layer& layer) const;
  // Paths of weights ("dense_1/kernel") and their values. Paths begin with `layer` and a "/", or are all if it is "".
  std::map<std::string, Tensor> WeightsBelow(const std::string& layer);

  void Compile(const CompileOptions& options);
  const std::optional<CompileOptions>& compile_options() const { return compile_options_; }
  // Null until Compile was called and the layers are known.
  const CompiledModel* compiled() const { return compiled_.get(); }
  // Throws FailedPreconditionError before Compile. `caller`: "fit", for the error.
  void RequireCompiled(const char* caller) const;
  // The engine of a compiled model, which has data of these shapes and dtypes.
  ModelEngine& CompiledEngine(const char* caller, const data::ElementSpec& data = {});
  // Requires: CompiledEngine has returned.
  BatchTargets TrainedTargets() const { return {layers_->inputs(), compiled_->targets()}; }
  const StepFunction& Step(bool training, const std::vector<data::TensorSpec>& y_specs);
  // The step if it has been made since the last Compile, else null.
  const StepFunction* MadeStep(bool training) const { return (training ? train_ : test_).get(); }

  // The optimizer's variables in Keras's order. Set returns false, with a warning, if the values do not fit; `where`
  // names the file that they are from. Slots that the optimizer does not have yet wait for the training step.
  std::vector<Tensor> OptimizerState();
  bool SetOptimizerState(const std::vector<Tensor>& values, const std::string& where);

 private:
  void ResolveCompiled();
  // Weights of layers that other models have begin with copies of theirs.
  void InheritWeights(ModelEngine& engine) const;
  // Warns once if layers were frozen or freed since the training step was made.
  void CheckTrainable();

  const ModelOptions options_;
  const MakeLayers make_layers_;
  std::vector<std::vector<LayerTensor>> values_;  // of ValuesOf, by step
  std::vector<bool> step_trainable_;              // of all layers, when the training step was made; empty: none is
  mutable Mutex build_mu_;
  // Set once, under build_mu_; read after a call of EngineFor.
  std::shared_ptr<const LayerGraph> layers_;
  std::unique_ptr<ModelEngine> engine_ COHORT_GUARDED_BY(build_mu_);
  std::optional<CompileOptions> compile_options_;
  std::unique_ptr<const CompiledModel> compiled_;
  std::unique_ptr<StepFunction> train_;
  std::unique_ptr<StepFunction> test_;
  std::vector<Tensor> waiting_state_;  // of the optimizer, from a file, until the training step has its slots
};

}  // namespace cohort::keras
