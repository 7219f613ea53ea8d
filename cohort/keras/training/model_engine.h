// ModelEngine: a built model in one graph with one session: its weights, and step functions that are added when they
// are first needed. It holds the weights and steps of all replicas of this process. Internal to keras/.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/data/element.h"
#include "cohort/distribute/coordinator/cluster_coordinator.h"
#include "cohort/distribute/strategy.h"
#include "cohort/keras/callbacks/logs.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/layers/layer_instance.h"
#include "cohort/keras/training/earlier_training.h"
#include "cohort/keras/training/remote_step.h"
#include "cohort/keras/training/signal_check.h"
#include "cohort/keras/training/step_parts.h"
#include "cohort/keras/training/train_step.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {

class ModelEngine;

// The prepared signatures of one step (training or evaluation), which runs batch after batch. ModelState owns it. It
// can be used while its ModelEngine lives, by one thread at a time.
class StepFunction {
 public:
  struct Result {
    std::vector<float> losses;  // the loss, then the loss of each output if there are several
    int64_t examples = 0;       // of the global batch
    bool stops = false;         // a process has given `stop`
  };
  // Runs the step on the parts of this process's replicas. A part has x..., y..., sample_weight. The step of several
  // workers sums `stop` over them, so that all of them know after the same batch if one wants to stop. `next` may be
  // empty; else it sets *parts to those of the next step and returns true, if they are known (Callable::NextFeeds).
  using Parts = distribute::PerReplica<std::vector<Tensor>>;
  using NextParts = std::function<bool(Parts* parts)>;
  Result Run(const Parts& parts, bool stop = false, const NextParts& next = {}) const;
  // Does what Callable::DropNext does.
  void DropNext() const;
  // Returns the closures of the step under a ParameterServerStrategy. They are queued and run on some worker. Returns
  // null if the step runs at once.
  RemoteStep* remote() const { return remote_.get(); }
  // Returns the number of the next step that is queued: the optimizer's number of updates, or 0 in an evaluation.
  int64_t NextStep() const;
  int steps_per_execution() const { return steps_per_execution_; }
  // Returns the results of steps from the values of their fetches.
  std::vector<Result> ResultsOf(const std::vector<Tensor>& values) const;
  // Runs the step on a global batch. Each replica takes its rows.
  Result Run(const std::vector<Tensor>& global_batch) const;
  const std::vector<std::string>& output_loss_names() const { return output_loss_names_; }
  // Set the metrics to zero, or read them. If `of_all`, the metrics count the batches of all processes, and all
  // processes must make the call together. Otherwise they count the batches of this process.
  void ResetMetrics() const;
  Logs ReadMetrics(bool of_all) const;
  std::vector<std::pair<std::string, MetricPtr>> metrics() const;
  // Returns the specs of the targets. Their batch dimension is unknown.
  const std::vector<data::TensorSpec>& y_specs() const { return y_specs_; }
  // Returns true if a layer, or a layer inside of one, was frozen or freed since the step was made.
  bool OtherLayersAreFrozen() const;

 private:
  friend class ModelEngine;
  struct Replica {
    std::vector<Output> feeds;
    Output loss;  // this replica's share of the loss
    std::vector<LayerInstance::LayerValues> layer_values;
  };
  const distribute::Strategy* strategy_ = nullptr;
  std::vector<data::TensorSpec> y_specs_;
  std::vector<LayerInstance::AddedLayer> layers_;  // of the first replica
  std::vector<Replica> replicas_;                  // of this process
  std::vector<std::string> output_loss_names_;
  std::vector<std::pair<std::string, MetricPtr>> metrics_;
  std::optional<Callable> step_;
  bool votes_ = false;                  // the last argument and the last result of step_ are the vote to stop
  std::shared_ptr<RemoteStep> remote_;  // null: the step is step_
  bool training_ = false;
  int steps_per_execution_ = 1;
  ModelEngine* engine_ = nullptr;
  std::vector<Node*> resets_;
  std::vector<Output> local_results_;
  std::vector<Output> results_;
};

// Owns graph, session, weights and optimizers of a model. ModelState owns it. Only one thread at a time may use it,
// except for Predict and PredictFunction.
class ModelEngine {
 public:
  using StepBody = std::function<void(StepContext&)>;

  // Adds the weights and gives them their initial values. With several processes, all of them must make the engine
  // together; throws WorkersDisagreeError if their numbers of replicas, or the paths, dtypes or shapes of their
  // weights, differ.
  ModelEngine(std::shared_ptr<const LayerGraph> layers, DType compute_dtype, int64_t seed,
              const SessionConfig& session_config, distribute::StrategyPtr strategy);

  const LayerGraph& layers() const { return *layers_; }
  const distribute::Strategy& strategy() const { return *strategy_; }
  // Returns the weights of the first replica.
  const std::vector<ModelWeight>& weights() const { return weights_.weights(); }
  // Returns, for the path of each weight, whether the weight is trainable now. It asks the layers, because the program
  // may have frozen or freed some of them since the latest call.
  std::map<std::string, bool> TrainableWeights() const;
  // Makes the steps that MakeStep adds from now on train the weights that are trainable now, and only these. Earlier
  // steps do not change.
  void UpdateTrainable();
  // Returns, for each of layers().steps(), the layer's path and its outputs in inference.
  std::vector<LayerInstance::LayerValues> step_values() const;
  Graph& graph() { return graph_; }
  Session& session() { return *session_; }
  // Returns work(session). With a ParameterServerStrategy, a lost connection to a parameter server ends the session:
  // then opens another one, and calls `work` again, which must do no harm; for at most
  // ParameterServerOptions::ps_timeout. Other errors, and the last one, are thrown. Signatures and references to the
  // session that were kept are not valid after that.
  template <typename Work>
  auto WithSession(const Work& work) {
    const auto deadline = std::chrono::steady_clock::now() + strategy_->ps_timeout();
    while (true) {
      try {
        return work(*session_);
      } catch (const Error& error) {
        if (!ReopenSession(error, deadline)) throw;
      }
    }
  }
  std::vector<Tensor> GetWeights();
  // Sets the weights of all replicas of this process. Throws InvalidArgumentError that names the first value that does
  // not fit.
  void SetWeights(const std::vector<Tensor>& values);

  // Makes the optimizer's variables, in place of those of an earlier optimizer. Call it once for each Compile, before
  // the first step for training is made.
  void SetOptimizer(const Optimizer& optimizer);
  // Sets the optimizer's variables of all replicas of this process. `values` has the order of
  // GraphOptimizer::variables(). It may be shorter; then the other variables do not change.
  void SetOptimizerVariables(const std::vector<Tensor>& values);
  // Returns the optimizer of a copy of the variables, by default that of the first replica, or null if there is none.
  GraphOptimizer* optimizer(size_t copy = 0) const {
    return copy < optimizers_.size() ? optimizers_[copy].get() : nullptr;
  }
  // Returns what an earlier program has left on the parameter servers of a ParameterServerStrategy, or null with other
  // strategies. It is empty after ForgetEarlierTraining.
  EarlierTraining* earlier_training() { return earlier_ ? &*earlier_ : nullptr; }
  // Call it before the first step, and when the variables have got other values: the weights then come from this
  // program. `number` is that of the training that goes on, 0 if it cannot be continued by another program.
  void ForgetEarlierTraining(int64_t number);
  double GetLearningRate();
  void SetLearningRate(double rate);
  int64_t Iterations();

  // Adds a step that `body` describes. `y_specs` has one entry for each target. If workers read the batches
  // themselves, `batches` says which; otherwise it is null. `compiled` must live longer than the step.
  StepFunction MakeStep(const CompiledModel& compiled, bool training, const std::vector<data::TensorSpec>& y_specs,
                        const StepBody& body, const WorkerBatches* batches = nullptr);
  // Compares the weights, trained or not, and the optimizer's variables of all replicas of all processes. All processes
  // make the call together. Throws DataLossError that names the first weight or variable that differs and
  // the two replicas.
  void ExpectEqualReplicas();
  // Measures activations and gradients of all layers in a step on `batch`. Nothing is updated. All processes make the
  // call together.
  SignalReport MeasureSignal(const StepFunction& step, const std::vector<Tensor>& batch);
  // Returns the outputs for a batch of inputs, computed as in inference by the first replica of this process.
  // Thread-safe.
  std::vector<Tensor> Predict(const std::vector<Tensor>& x) COHORT_EXCLUDES(remote_predict_mu_);
  // Returns the signature of Predict. The first call prepares it. Thread-safe.
  Callable PredictFunction() COHORT_EXCLUDES(predict_mu_);
  // Returns the outputs in inference. In mixed precision they are float32 too.
  const std::vector<Output>& predictions() const { return predictions_; }

 private:
  std::vector<Output> InputPlaceholders();
  // Throws WorkersDisagreeError as the constructor does. Compares no values.
  void ExpectEqualModels();
  // Opens a new session after `error`, unless the session is all right or `deadline` has passed. Returns whether it
  // has.
  bool ReopenSession(const Error& error, std::chrono::steady_clock::time_point deadline) COHORT_EXCLUDES(predict_mu_);
  // Gives all variables that are new in the graph their initial values.
  void RunInitializers();
  // While the result lives, variables get names that are unique among the models on the strategy.
  VariableCreatorScope OwnNames();
  // Add the step of each replica here, or of each worker of a ParameterServerStrategy, and put its parts into *steps.
  using Steps = std::vector<std::unique_ptr<StepContext>>;
  Callable MakeReplicaStep(const CompiledModel& compiled, bool training, const std::vector<data::TensorSpec>& y_specs,
                           const StepBody& body, bool votes, Steps* steps);
  std::shared_ptr<RemoteStep> MakeRemoteStep(const CompiledModel& compiled, bool training,
                                             const std::vector<data::TensorSpec>& y_specs, const StepBody& body,
                                             const WorkerBatches* batches, Steps* steps);
  struct RemoteDescription;
  distribute::ClosureFunctionPtr MakeClosure(RemoteDescription& description, const distribute::PerWorkerValue& data,
                                             bool weighted, int count, Steps* steps);
  void FillWithPlaceholders(const std::vector<data::TensorSpec>& y_specs, StepInputs* inputs);
  // Adds what a step's function needs of the first replica or worker, and its metrics.
  void Complete(const Steps& steps, StepFunction* function);
  std::vector<GraphOptimizer*> OptimizersOf(bool training) const;
  WeightStore& store(size_t replica) { return replica == 0 ? weights_ : *mirrors_[replica - 1]; }
  std::unique_ptr<StepContext> DescribeStep(const CompiledModel& compiled, bool training, const StepInputs& inputs,
                                            const StepBody& body, distribute::ReplicaContext& replica);

  const std::shared_ptr<const LayerGraph> layers_;
  const DType compute_dtype_;
  const distribute::StrategyPtr strategy_;
  const std::string own_names_;  // prefix of the names of variables
  const SessionConfig session_config_;
  Graph graph_;
  WeightStore weights_{graph_};
  std::vector<std::unique_ptr<WeightStore>> mirrors_;  // of the other replicas
  std::unique_ptr<LayerInstance> prediction_;
  std::vector<Output> x_;
  std::vector<Output> predictions_;
  std::vector<std::unique_ptr<GraphOptimizer>> optimizers_;  // one for each copy of the variables
  std::unique_ptr<Session> session_;
  std::unique_ptr<distribute::ClusterCoordinator> coordinator_;  // of a ParameterServerStrategy
  Mutex remote_predict_mu_;                                      // held during Predict with a ParameterServerStrategy
  Mutex predict_mu_;
  std::optional<Callable> predict_ COHORT_GUARDED_BY(predict_mu_);
  std::vector<Output> new_values_;  // placeholders of SetWeights
  Node* set_weights_ = nullptr;
  Output new_learning_rate_;  // placeholder of SetLearningRate
  std::vector<Node*> set_learning_rate_;
  std::set<const VariableInfo*> initialized_;
  std::optional<EarlierTraining> earlier_;
};

}  // namespace cohort::keras
