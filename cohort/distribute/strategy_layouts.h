// What the kinds of strategies have in common when they are made. Internal to distribute/.
#pragma once

#include <string>
#include <vector>

#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

inline constexpr int kMostReplicas = 1024;

// Returns the devices' full names ("/device:CPU:0" for "/cpu:0"); if none is given, all logical CPUs. Throws
// InvalidArgumentError for a device without a type and a number, or of another process.
std::vector<std::string> LocalDevices(const std::vector<std::string>& given);
// The first `replicas` CPUs of a task; "": of this process.
std::vector<std::string> CpusOf(const std::string& task, int replicas);
// A strategy of this process alone.
StrategyLayout LayoutOf(const char* name, std::vector<std::string> devices, const CommunicationOptions& communication);
// "('a', 'b')".
std::string Quoted(const std::vector<std::string>& names);

}  // namespace cohort::distribute
