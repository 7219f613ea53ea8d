// MetricsText: the figures of a task in the text format of Prometheus.
#pragma once

#include <string>

#include "cohort/cluster/status/task_status.h"

namespace cohort {

// Returns the page /metrics: for each figure a HELP line, a TYPE line and its samples, which have the labels job and
// task. docs/monitoring.md lists the names. See https://prometheus.io/docs/instrumenting/exposition_formats (0.0.4).
std::string MetricsText(const TaskStatus& status);

}  // namespace cohort
