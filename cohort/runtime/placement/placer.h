// Placer: which device each node of a graph runs on. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cohort/device/device.h"
#include "cohort/graph/graph.h"

namespace cohort {

struct PlacementOptions {
  // A requested device that is not there, or for which an op has no kernel: any device of the same job,
  // replica and task instead of an error.
  bool allow_soft_placement = false;
  DeviceName default_task;  // the session's own task
};

// Device of every node of `graph`, by node id; they point into `devices`, which are full names.
//
// The nodes of a colocation group (colocation.h) get one device, which has all fields that any of them
// requests and for whose type all have a kernel. Of several: the default task's first, then by job, replica,
// task, type and number. Types whose backend takes unplaced nodes go before the host's; other types are taken only if
// one is requested. Nodes that no group and no request binds follow their data where they can: one without inputs
// stands with its consumers when these share a device, Shape, Size and Rank stand with the producer of their input.
//
// Throws InvalidArgumentError that names op, node, requested device and the devices there are; for a group
// that cannot be brought together, two nodes and their requests.
std::vector<const DeviceAttributes*> Place(const Graph& graph, const std::vector<DeviceAttributes>& devices,
                                           const PlacementOptions& options);

// One line a node, in the order of adding: "MatMul: (MatMul): /job:worker/replica:0/task:0/device:CPU:0\n".
std::string PlacementLog(const Graph& graph, const std::vector<const DeviceAttributes*>& placement);

}  // namespace cohort
