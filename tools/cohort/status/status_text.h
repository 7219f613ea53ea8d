// What `cohort status` and `cohort top` print: the answers of a cluster as a table for people, and as JSON.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cohort/cluster/status/cluster_report.h"

namespace cohort::tools {

// Returns the verdict, a row for each task, and below the table what is known of tasks with a finding. Every line ends
// with a newline. Texts of the tasks lose their control characters.
std::string StatusText(const ClusterReport& report, const Verdict& verdict);

// Returns the same figures as one JSON object (docs/monitoring.md), with a newline.
std::string StatusJson(const ClusterReport& report, const Verdict& verdict);
// Returns a JSON object with "well": false and this verdict, for a cluster that cannot be asked.
std::string StatusJson(const std::string& verdict);

// Returns job and index of a task's name: "worker/1", "worker:1", "worker 1" or "/job:worker/task:1". Returns nullopt
// if the text has another form.
std::optional<std::pair<std::string, int>> ParseTaskName(const std::string& text);

}  // namespace cohort::tools
