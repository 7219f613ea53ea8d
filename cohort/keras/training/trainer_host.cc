// The functions of Trainer that callbacks call (CallbackHost), except those of the backup.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/graph/graph_def.h"
#include "cohort/keras/files/model_saving.h"
#include "cohort/keras/training/trainer.h"

namespace cohort::keras {

void Trainer::AwaitWorkers() { engine().strategy().meeting().Barrier(); }

double Trainer::GetLearningRate() { return state_->CompiledEngine("model").GetLearningRate(); }
void Trainer::SetLearningRate(double rate) { state_->CompiledEngine("model").SetLearningRate(rate); }
int64_t Trainer::Iterations() { return state_->CompiledEngine("model").Iterations(); }

bool Trainer::has_learning_rate_schedule() const {
  const GraphOptimizer* optimizer = state_->CompiledEngine("model").optimizer();
  return optimizer != nullptr && !optimizer->learning_rate_variable().valid();
}

std::vector<Tensor> Trainer::GetWeights() { return engine().GetWeights(); }
void Trainer::SetWeights(const std::vector<Tensor>& weights) { engine().SetWeights(weights); }

void Trainer::PutAveragesInModel(bool in_model) {
  const GraphOptimizer* optimizer = state_->CompiledEngine("model").optimizer();
  if (is_remote()) {
    throw InvalidArgumentError(StrCat("[keras/callbacks] SwapEMAWeights is not supported with ",
                                      engine().strategy().name(),
                                      ", because a lost connection may repeat the exchange ",
                                      "of weights and averages; leave it out: Fit ends with the averages anyway"));
  }
  if (!optimizer->uses_ema()) {
    throw FailedPreconditionError(
        StrCat("[keras/callbacks] expected an optimizer with use_ema=true for SwapEMAWeights; '",
               state_->compile_options()->optimizer.get()->name(), "' has use_ema=false"));
  }
  if (state_->averages_in_model() == in_model) return;
  if (tested_ != nullptr) state_->MakeWaitingSlots(tested_->y_specs());
  ChangeAverages(AveragesChange::kSwap);
  state_->SetAveragesInModel(in_model);
}

void Trainer::ChangeAverages(AveragesChange change) {
  std::vector<Node*> nodes;
  for (size_t copy = 0; GraphOptimizer* optimizer = engine().optimizer(copy); ++copy) {
    nodes.push_back(optimizer->ChangeAverages(change));
  }
  engine().WithSession([&](Session& session) { session.Run({}, {}, nodes); });
}

std::vector<std::string> Trainer::WeightNames() const {
  std::vector<std::string> names;
  for (const ModelWeight& weight : engine().weights()) names.push_back(weight.path);
  return names;
}

MetricDirection Trainer::DirectionOf(const std::string& name) const {
  if (name == "loss" || name.ends_with("_loss")) return MetricDirection::kDown;
  for (const bool training : {true, false}) {
    const StepFunction* step = state_->MadeStep(training);
    if (step == nullptr) continue;
    for (const auto& [metric_name, metric] : step->metrics()) {
      if (metric_name == name) return metric->direction();
    }
  }
  return MetricDirection::kNone;
}

void Trainer::Save(const std::string& path) { SaveModel(*state_, path); }
void Trainer::CheckCanBeSaved() { keras::CheckCanBeSaved(*state_); }
void Trainer::SaveWeights(const std::string& path) { keras::SaveWeights(*state_, path); }

std::string Trainer::SerializedGraph() { return SerializeGraphDef(engine().graph()); }

}  // namespace cohort::keras
