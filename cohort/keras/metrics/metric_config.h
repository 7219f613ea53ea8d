// Helpers for the form of Keras's metrics in files. A metric returns its options in Serialized(), and a function beside
// its class makes it from them. A new source of metrics adds a function below and a line to the list in metric.cc.
// Internal to keras/.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/metrics/metric.h"

namespace cohort::keras {

// The name of a class in files, and the function that makes its metrics.
using MetricMaker = std::pair<std::string, std::function<MetricPtr(ConfigReader& reader)>>;
std::vector<MetricMaker> AccuracyMakers();        // accuracies.cc
std::vector<MetricMaker> AucMakers();             // auc.cc
std::vector<MetricMaker> ConfusionMakers();       // confusion_metrics.cc
std::vector<MetricMaker> LossMetricMakers();      // loss_metrics.cc
std::vector<MetricMaker> OperatingPointMakers();  // operating_point.cc
std::vector<MetricMaker> FScoreMakers();          // f_score.cc
std::vector<MetricMaker> IouMakers();             // iou_metrics.cc
std::vector<MetricMaker> R2ScoreMakers();         // r2_score.cc

// Metrics of losses that have another name than the loss, or the other sign: the mean over the examples of the cosine
// of the angle between y_true and y_pred, and of the loss LogCosh. In loss_metrics.cc.
MetricPtr NamedCosineSimilarity(const std::string& name);
MetricPtr NamedLogCosh(const std::string& name);

// Returns the metric's name, or `fallback` if the file has none. Ignores the dtype.
std::string ReadMetricName(ConfigReader& reader, const char* fallback);

}  // namespace cohort::keras
