// The callback SwapEMAWeights. The host knows whether the averages are in the model.
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callbacks.h"

namespace cohort::keras {
namespace {

class SwapEmaWeightsCallback final : public Callback {
 public:
  explicit SwapEmaWeightsCallback(bool swap_on_epoch) : swap_on_epoch_(swap_on_epoch) {}

  void OnTrainBegin() override { host().PutAveragesInModel(false); }  // throws if there are no averages
  void OnEpochEnd(int, Logs&) override {
    if (swap_on_epoch_) host().PutAveragesInModel(true);
  }
  void OnTestBegin() override { host().PutAveragesInModel(true); }
  void OnTestEnd(const Logs&) override { host().PutAveragesInModel(false); }

  std::optional<Influence> influence() const override {
    return Influence{"SwapEMAWeights", StrCat("swap_on_epoch=", swap_on_epoch_)};
  }

 private:
  const bool swap_on_epoch_;
};

}  // namespace

CallbackPtr SwapEMAWeights(bool swap_on_epoch) { return std::make_shared<SwapEmaWeightsCallback>(swap_on_epoch); }

}  // namespace cohort::keras
