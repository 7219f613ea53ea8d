// ModelState: the parts that the copies of a Model share: its layers, the engine with its weights, the arguments of
// Compile, and the steps of training and evaluation. Internal to keras/.
#pragma once

#include <functional>
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

// The copies of a Model and its Trainer share ownership. Only one thread at a time may use it, except for the functions
// whose comments say "Thread-safe".
class ModelState {
 public:
  // Returns the layers for inputs of these shapes and dtypes. If `data` is empty and the layers depend on the data,
  // returns null.
  using MakeLayers = std::function<std::shared_ptr<const LayerGraph>(const data::ElementSpec& data)>;

  // Throws InvalidArgumentError for an unknown dtype policy.
  ModelState(ModelOptions options, MakeLayers make_layers);

  const ModelOptions& options() const { return options_; }
  const std::string& name() const { return options_.name; }
  bool is_chief() const { return options_.strategy == nullptr || options_.strategy->is_chief(); }

  // Returns true if layers and weights exist. Thread-safe.
  bool built() const;
  // Returns the engine. Makes layers and weights if they do not exist yet. Thread-safe. Throws FailedPreconditionError
  // if the shapes of the inputs are known neither from the layers nor from `data`. Throws InvalidArgumentError if a
  // weight that is copied from another model has another shape or dtype here.
  ModelEngine& EngineFor(const data::ElementSpec& data) COHORT_EXCLUDES(build_mu_);
  ModelEngine& engine() { return EngineFor({}); }
  // If the layers do not depend on data, makes layers and weights, applies the arguments of Compile, and returns true.
  // Otherwise returns false.
  bool BuildIfKnown();
  // Makes the weights now if some of them begin as copies of another model's weights, so that later changes of the
  // other model have no effect here. Makes no weights if the layers depend on data.
  void BuildIfItInherits();
  // Requires: EngineFor has returned.
  const LayerGraph& layers() const { return *layers_; }
  std::shared_ptr<const LayerGraph> shared_layers() const { return layers_; }

  // Returns the results of layers().steps()[step], which is one call of a layer. A new model can be made from them.
  // Each call returns the same values. `self` points to this ModelState; the results keep it alive. Requires: EngineFor
  // has returned.
  std::vector<LayerTensor> ValuesOf(const std::shared_ptr<ModelState>& self, size_t step);
  // Returns the path of `layer`: "dense_1". Throws InternalError if the model does not have this layer itself (a layer
  // of an inner model does not count).
  std::string PathOf(const Layer& layer) const;

  void Compile(const CompileOptions& options);
  const std::optional<CompileOptions>& compile_options() const { return compile_options_; }
  // Returns null until Compile was called and the layers are known.
  const CompiledModel* compiled() const { return compiled_.get(); }
  // Throws FailedPreconditionError before Compile. `caller` is the function in the error: "fit".
  void RequireCompiled(const char* caller) const;
  // Returns the engine of a compiled model for data of these shapes and dtypes. Throws what RequireCompiled and
  // EngineFor throw, and InvalidArgumentError if the number of losses or loss weights does not fit the outputs.
  ModelEngine& CompiledEngine(const char* caller, const data::ElementSpec& data = {});
  // Requires: CompiledEngine has returned.
  BatchTargets TrainedTargets() const { return {layers_->inputs(), compiled_->targets()}; }
  // Returns the step of training or of evaluation, for targets of these dtypes and shapes. Makes the step at the first
  // call after Compile. If later targets do not fit, makes a new step of evaluation, but throws InvalidArgumentError
  // for a step of training. The first training step since Compile decides which layers are frozen, for training and for
  // evaluation, until the next Compile. Before the first training step, makes a new step of evaluation if layers were
  // frozen or freed since the last one was made. `batches`: see ModelEngine::MakeStep. Requires: CompiledEngine has
  // returned.
  const StepFunction& Step(bool training, const std::vector<data::TensorSpec>& y_specs,
                           const WorkerBatches* batches = nullptr);
  // Returns the step that Step has made since the last Compile, or null if it has made none.
  const StepFunction* MadeStep(bool training) const { return (training ? train_ : test_).get(); }

  // The optimizer's variables, in Keras's order. SetOptimizerState returns false and logs a warning if the values do
  // not fit. `where` names the file of the values. Values of slots that do not exist yet are kept until the training
  // step is made.
  std::vector<Tensor> OptimizerState();
  bool SetOptimizerState(const std::vector<Tensor>& values, const std::string& where);
  // Makes the training step for targets of these dtypes and shapes if values of slots wait for it. Requires:
  // CompiledEngine has returned.
  void MakeWaitingSlots(const std::vector<data::TensorSpec>& y_specs);
  // Whether the trained weights and their averages are exchanged (Trainer::PutAveragesInModel). Compile and
  // SetOptimizerState set it to false.
  bool averages_in_model() const { return averages_in_model_; }
  void SetAveragesInModel(bool in_model) { averages_in_model_ = in_model; }

 private:
  // Returns losses, metrics and optimizer for the outputs. Throws InvalidArgumentError if their numbers do not fit.
  std::unique_ptr<const CompiledModel> Resolved(const CompileOptions& options);
  void ResolveCompiled();
  // Gives the layers that came from other models the values that their weights have there.
  void InheritWeights(ModelEngine& engine) const;
  // Warns once if layers were frozen or freed since the training step was made.
  void WarnOfFrozenLayers();

  const ModelOptions options_;
  const MakeLayers make_layers_;
  std::vector<std::vector<LayerTensor>> values_;  // of ValuesOf, by step
  bool warned_of_frozen_ = false;                 // since Compile
  mutable Mutex build_mu_;
  // Set once, with build_mu_ held. Read after a call of EngineFor.
  std::shared_ptr<const LayerGraph> layers_;
  std::unique_ptr<ModelEngine> engine_ COHORT_GUARDED_BY(build_mu_);
  std::optional<CompileOptions> compile_options_;
  std::unique_ptr<const CompiledModel> compiled_;
  std::unique_ptr<StepFunction> train_;
  std::unique_ptr<StepFunction> test_;
  std::vector<Tensor> waiting_state_;  // the optimizer's, from a file; kept until the training step is made
  bool averages_in_model_ = false;
};

}  // namespace cohort::keras
