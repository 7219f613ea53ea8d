// Placer: decides on which device each node of a graph runs. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cohort/device/device.h"
#include "cohort/graph/graph.h"

namespace cohort {

// The options of Place. A SignatureBuilder sets them from the session's config.
struct PlacementOptions {
  // If a requested device does not exist, or an op has no kernel for it, uses any device of the same job, replica and
  // task. If false, this is an error.
  bool allow_soft_placement = false;
  DeviceName default_task;  // nodes that name no task are placed there
};

// Returns the device of each node of `graph`, by node id. The pointers point into `devices`, which must have full
// names.
//
// All nodes of a colocation group (colocation.h) get one device. It has all parts that any node of the group requests,
// and there is a kernel for each node. If several devices are possible, the first in this order is taken: devices of
// the default task, then by job, replica, task, type and number. A type whose backend takes unplaced
// nodes goes before the host's. Other types are taken only if a node requests them. A node that is in no group and
// requests nothing is placed near its data: a node without inputs on the device of its consumers, if these share a
// device; Shape, Size and Rank on the device of their input.
//
// Throws InvalidArgumentError if no device is possible. The message names op, node, requested device and the devices
// that exist. If the requests of a group contradict each other, it names two nodes and their requests.
std::vector<const DeviceAttributes*> Place(const Graph& graph, const std::vector<DeviceAttributes>& devices,
                                           const PlacementOptions& options);

// Returns one line for each node, in the order in which the nodes were added: "MatMul: (MatMul):
// /job:worker/replica:0/task:0/device:CPU:0\n".
std::string PlacementLog(const Graph& graph, const std::vector<const DeviceAttributes*>& placement);

}  // namespace cohort
