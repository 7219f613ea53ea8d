#include "cohort/keras/losses/loss_config.h"

#include "cohort/keras/files/serialization.h"

namespace cohort::keras {
namespace {

// The first name of a reduction is the one that is written.
const NameTable<Reduction>& Reductions() {
  static const NameTable<Reduction> table("reduction", {{"sum_over_batch_size", Reduction::kSumOverBatchSize},
                                                        {"mean", Reduction::kSumOverBatchSize},
                                                        {"mean_with_sample_weight", Reduction::kMeanWithSampleWeight},
                                                        {"sum", Reduction::kSum}});
  return table;
}

std::string ReductionName(Reduction reduction) {
  for (const std::string& name : Reductions().names()) {
    if (Reductions().Find(name) == reduction) return name;
  }
  return "";
}

// The classes of all sources.
const ConfigMakers<LossPtr>& LossMakers() {
  static const ConfigMakers<LossPtr> makers("loss", [] {
    std::vector<LossMaker> all = ProbabilityLossMakers();
    for (const auto& source : {RegressionLossMakers(), FocalLossMakers(), OverlapLossMakers()}) {
      all.insert(all.end(), source.begin(), source.end());
    }
    return all;
  }());
  return makers;
}

}  // namespace

ConfigValue LossInFile(const Loss& loss, const char* class_name, const ConfigValue::Object& options) {
  ConfigValue::Object config = {{"name", loss.name()}, {"reduction", ReductionName(loss.reduction())}};
  config.insert(config.end(), options.begin(), options.end());
  return SerializedObject("keras.losses", class_name, std::move(config));
}

void ReadLossOptions(ConfigReader& reader, std::string& name, Reduction& reduction) {
  reader.Read("name", name);
  reader.Ignore("dtype");
  reader.ReadBy("reduction", [&](const ConfigValue& value) { reduction = Reductions().Find(value.AsString()); });
}

LossPtr DeserializeLoss(const ConfigValue& value) {
  const std::string name = NameIn(value);
  return name.empty() ? MakeFromConfig("loss", LossMakers(), value) : LossByName(name);
}

}  // namespace cohort::keras
