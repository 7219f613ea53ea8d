// What Keras's metrics share in files. A metric writes its options in Serialized(), and a function beside it makes it
// from them. A new source of metrics adds a function here and to the list in metric.cc. Internal to keras/.
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
std::vector<MetricMaker> AccuracyMakers();  // accuracies.cc
std::vector<MetricMaker> AucMakers();       // auc.cc

// Returns the metric's name, or `fallback` if the file has none. Passes over the dtype.
std::string ReadMetricName(ConfigReader& reader, const char* fallback);

}  // namespace cohort::keras
