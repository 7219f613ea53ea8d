#include "cohort/keras/training/agreement.h"

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/drawn_seeds.h"
#include "cohort/data/serialize.h"

namespace cohort::keras {
namespace {

template <typename Part>
std::string DescriptionOf(const Part& part) {
  try {
    return part.Serialized().ToJson();
  } catch (const UnimplementedError&) {  // of the program's own
    return part.name();
  }
}

std::string DescriptionOf(const Layer& layer) {
  try {
    return StrCat(layer.class_name(), " ", ConfigValue(layer.Config()).ToJson(), layer.trainable() ? "" : ", frozen");
  } catch (const UnimplementedError&) {
    return layer.class_name();
  }
}

std::string DescriptionOf(const MetricArgument& metric) {
  try {
    return metric.Serialized().ToJson();
  } catch (const UnimplementedError&) {
    return "of the program's own";
  }
}

void AddLayersOf(const LayerGraph& layers, const std::string& prefix, Facts& facts) {
  facts.emplace_back(StrCat(prefix, "layers"), StrCat(layers.steps().size()));
  for (size_t i = 0; i < layers.steps().size(); ++i) {
    const LayerGraph::LayerStep& step = layers.steps()[i];
    const std::string name = StrCat(prefix, "layer ", i);
    std::vector<std::string> inputs;
    for (const LayerGraph::Value& input : step.inputs) inputs.push_back(StrCat(input.step, ":", input.index));
    if (const auto* inner = dynamic_cast<const LayerGraph*>(&*step.layer)) {
      facts.emplace_back(name, StrCat(inner->class_name(), " of ", StrJoin(inputs, ", ")));
      AddLayersOf(*inner, StrCat(name, ", "), facts);
    } else {
      facts.emplace_back(name, StrCat(DescriptionOf(*step.layer), " of ", StrJoin(inputs, ", ")));
    }
  }
}

}  // namespace

void AddLayers(const LayerGraph& layers, Facts& facts) { AddLayersOf(layers, "", facts); }

void AddCompiled(const CompiledModel& compiled, Facts& facts) {
  facts.emplace_back("optimizer", DescriptionOf(*compiled.optimizer));
  for (const LossPtr& loss : compiled.losses) facts.emplace_back("loss", loss == nullptr ? "" : DescriptionOf(*loss));
  for (const double weight : compiled.loss_weights) facts.emplace_back("loss weight", StrCat(weight));
  for (const CompiledModel::OutputMetric& metric : compiled.metrics) {
    facts.emplace_back(StrCat(metric.weighted ? "weighted " : "", "metric of output ", metric.output),
                       DescriptionOf(metric.metric));
  }
}

void AddCallbacks(const std::vector<CallbackPtr>& callbacks, Facts& facts) {
  std::vector<std::string> kinds;
  Facts options;
  for (const CallbackPtr& callback : callbacks) {
    const std::optional<Callback::Influence> influence = callback->influence();
    if (!influence) continue;
    kinds.push_back(influence->kind);
    options.emplace_back(StrCat("options of ", influence->kind), influence->options);
  }
  facts.emplace_back("callbacks that act on the training", kinds.empty() ? "none" : StrJoin(kinds, ", "));
  facts.insert(facts.end(), options.begin(), options.end());
}

void AddData(const std::string& what, const data::Dataset* dataset, data::AutoShardPolicy policy, Facts& facts) {
  const std::string own = StrCat("of each worker's own, by AutoShardPolicy ", static_cast<int>(policy));
  facts.emplace_back(what, dataset == nullptr ? own : dataset->ToString());
  if (dataset == nullptr) return;
  data::SerializedDataset bytes;
  try {
    const std::vector<uint64_t> no_seeds(data::DrawnSeeds(*dataset).size());
    bytes = data::Serialize(data::WithDrawnSeeds(*dataset, no_seeds));
  } catch (const FailedPreconditionError&) {
    return;
  }
  std::vector<std::string> contents;
  for (const auto& [hash, tensor] : bytes.tensors) contents.push_back(StrCat(hash));
  facts.emplace_back(StrCat("contents of ", what), StrJoin(contents, " "));
  facts.emplace_back(StrCat("parameters and functions of ", what), StrCat(crc32c::Value(bytes.description)));
}

}  // namespace cohort::keras
