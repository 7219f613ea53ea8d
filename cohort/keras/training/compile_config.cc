#include "cohort/keras/training/compile_config.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/training/step_parts.h"

namespace cohort::keras {
namespace {

ConfigValue::List MetricList(const std::vector<MetricArgument>& metrics) {
  ConfigValue::List list;
  for (const MetricArgument& metric : metrics) list.push_back(metric.Serialized());
  return list;
}

// If there are several outputs, Keras wants a list for each.
ConfigValue MetricsInFile(const std::vector<MetricArgument>& metrics, const CompiledModel& compiled) {
  if (metrics.empty()) return nullptr;
  if (compiled.losses.size() == 1) return MetricList(metrics);
  ConfigValue::List lists;
  for (const LossPtr& loss : compiled.losses) lists.emplace_back(loss ? MetricList(metrics) : ConfigValue::List());
  return lists;
}

// Returns one value for each output, null for an output without one.
std::vector<ConfigValue> ByOutput(const ConfigValue& value, const std::vector<std::string>& names) {
  std::vector<ConfigValue> values(names.size());
  if (!value.is_object() || value.Find("class_name") != nullptr) {
    if (value.is_list()) return value.AsList();
    return {value};
  }
  for (const auto& [name, item] : value.AsObject()) {
    bool found = false;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] != name) continue;
      values[i] = item;
      found = true;
    }
    if (found) continue;
    throw InvalidArgumentError(StrCat("[keras/load_model] expected the name of an output's layer (",
                                      StrJoin(names, ", "), "); got '", name, "'"));
  }
  return values;
}

// One metric, or a list of them.
void AddMetrics(const ConfigValue& value, std::vector<MetricArgument>& to) {
  if (value.is_null()) return;
  if (!value.is_list()) {
    to.push_back(DeserializeMetric(value));
    return;
  }
  for (const ConfigValue& item : value.AsList()) AddMetrics(item, to);
}

std::vector<MetricArgument> MetricsFromFile(const ConfigValue* value, const std::vector<std::string>& names,
                                            const std::vector<LossArgument>& losses) {
  std::vector<MetricArgument> metrics;
  if (value == nullptr || value->is_null()) return metrics;
  if (names.size() == 1) {
    for (const ConfigValue& item : ByOutput(*value, names)) AddMetrics(item, metrics);
    return metrics;
  }
  // Cohort's metrics are for all outputs that have a loss.
  std::string first;
  const std::vector<ConfigValue> all = ByOutput(*value, names);
  for (size_t i = 0; i < all.size(); ++i) {
    if (losses.size() == names.size() && !losses[i]) continue;
    std::vector<MetricArgument> own;
    AddMetrics(all[i], own);
    const std::string text = ConfigValue(MetricList(own)).ToJson();
    if (first.empty()) {
      first = text;
      metrics = std::move(own);
    } else if (text != first) {
      throw UnimplementedError(StrCat("[keras/load_model] expected the same metrics for every output; got ", first,
                                      " and ", text, "; load it with LoadOptions::compile = false"));
    }
  }
  return metrics;
}

}  // namespace

ConfigValue SerializedCompile(const CompileOptions& options, const CompiledModel& compiled) {
  ConfigValue::List losses;
  for (const LossPtr& loss : compiled.losses) losses.push_back(loss ? loss->Serialized() : ConfigValue());
  ConfigValue weights;
  if (!options.loss_weights.empty()) {
    weights = compiled.loss_weights.size() == 1
                  ? ConfigValue(compiled.loss_weights[0])
                  : ConfigValue(ConfigValue::List(compiled.loss_weights.begin(), compiled.loss_weights.end()));
  }
  return ConfigValue::Object{{"optimizer", compiled.optimizer->Serialized()},
                             {"loss", losses.size() == 1 ? losses[0] : ConfigValue(losses)},
                             {"loss_weights", weights},
                             {"metrics", MetricsInFile(options.metrics, compiled)},
                             {"weighted_metrics", MetricsInFile(options.weighted_metrics, compiled)},
                             {"run_eagerly", false},
                             {"steps_per_execution", options.steps_per_execution},
                             {"jit_compile", false}};
}

CompileOptions DeserializeCompile(const ConfigValue& value, const std::vector<std::string>& output_names) {
  CompileOptions options;
  options.optimizer = DeserializeOptimizer(value.At("optimizer"));
  std::vector<LossArgument> losses;
  for (const ConfigValue& loss : ByOutput(value.At("loss"), output_names)) {
    losses.push_back(loss.is_null() ? LossArgument() : LossArgument(DeserializeLoss(loss)));
  }
  const ConfigValue* weights = value.Find("loss_weights");
  if (weights != nullptr && !weights->is_null()) {
    for (const ConfigValue& weight : ByOutput(*weights, output_names)) {
      options.loss_weights.push_back(weight.is_null() ? 1.0 : weight.AsDouble());
    }
  }
  options.metrics = MetricsFromFile(value.Find("metrics"), output_names, losses);
  options.weighted_metrics = MetricsFromFile(value.Find("weighted_metrics"), output_names, losses);
  options.loss = LossList(std::move(losses));
  const ConfigValue* steps = value.Find("steps_per_execution");
  // Keras also writes "auto": it chooses the number while it trains.
  if (steps != nullptr && !steps->is_null() && !steps->is_string())
    options.steps_per_execution = static_cast<int>(steps->AsInt());
  return options;
}

}  // namespace cohort::keras
