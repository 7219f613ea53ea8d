// DropNeedlessOrder: TensorFlow 2 orders all nodes that use a resource, also where only values are read. Internal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/proto/graph.pb.h"

namespace cohort {

// Removes control inputs that order no effect: no node with an effect runs before them, and none after them. Then
// removes Identity nodes without control inputs, and gives their readers the input instead. So kernels can be fused
// across the borders of functions. `nodes` are those of a graph, or of a function if `in_graph` is false. The nodes of
// `ends`, which are names of nodes or values, stay.
void DropNeedlessOrder(const std::vector<std::string>& ends, bool in_graph,
                       const std::function<bool(const proto::NodeDef&)>& has_effect,
                       google::protobuf::RepeatedPtrField<proto::NodeDef>& nodes);

}  // namespace cohort
