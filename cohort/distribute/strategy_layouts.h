// Helpers with which the kinds of strategies are made. Internal to distribute/.
#pragma once

#include <string>
#include <vector>

#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

inline constexpr int kMostReplicas = 1024;

// Returns the devices' full names ("/device:CPU:0" for "/cpu:0"). If none is given, returns all logical devices of the
// type on which replicas run (config::DeviceConfig::ReplicaType): GPUs, or CPUs if there is no visible GPU. Throws
// InvalidArgumentError for a device without a type and a number, and for a device of another process.
std::vector<std::string> LocalDevices(const std::vector<std::string>& given);
// Returns the first `replicas` devices of a type of a task. "" means this process.
std::vector<std::string> DevicesOf(const std::string& task, const std::string& type, int replicas);
// Returns the layout of a strategy that has only this process.
StrategyLayout LayoutOf(const char* name, std::vector<std::string> devices, const CommunicationOptions& communication);
// Returns for example "('a', 'b')".
std::string Quoted(const std::vector<std::string>& names);

}  // namespace cohort::distribute
