// The callback SwapEMAWeights. What it remembers is whether the averages are in the model.
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/callbacks/state_values.h"

namespace cohort::keras {
namespace {

constexpr char kSwapEmaWeights[] = "SwapEMAWeights";

class SwapEmaWeightsCallback final : public Callback {
 public:
  explicit SwapEmaWeightsCallback(bool swap_on_epoch) : swap_on_epoch_(swap_on_epoch) {}

  void OnTrainBegin() override { swapped_ = false; }
  void OnEpochBegin(int) override { SwapTo(false); }
  void OnEpochEnd(int epoch, Logs&) override {
    if (!swap_on_epoch_) return;
    SwapTo(true);
    // Fit gives the weights the values of the averages at its end.
    if (epoch == params().epochs - 1 || host().stop_training()) host().ChangeAverages(AveragesChange::kFollowWeights);
  }
  void OnTrainInterrupted() override { SwapTo(false); }
  void OnTestBegin() override { SwapTo(true); }
  void OnTestEnd(const Logs&) override { SwapTo(false); }

  std::optional<State> SaveState() const override { return State{kSwapEmaWeights, {StateOf({swapped_ ? 1.0 : 0.0})}}; }
  bool RestoreState(const std::vector<Tensor>& values) override {
    const auto numbers = NumbersOf(values, 1);
    if (numbers) swapped_ = (*numbers)[0] != 0.0;
    return numbers.has_value();
  }
  std::optional<Influence> influence() const override {
    return Influence{kSwapEmaWeights, StrCat("swap_on_epoch=", swap_on_epoch_)};
  }

 private:
  void SwapTo(bool averages_in_model) {
    if (swapped_ == averages_in_model) return;
    host().ChangeAverages(AveragesChange::kSwap);
    swapped_ = averages_in_model;
  }

  const bool swap_on_epoch_;
  bool swapped_ = false;  // the averages are in the model
};

}  // namespace

CallbackPtr SwapEMAWeights(bool swap_on_epoch) { return std::make_shared<SwapEmaWeightsCallback>(swap_on_epoch); }

}  // namespace cohort::keras
