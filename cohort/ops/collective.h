// Collectives: ops that run together with the same op at other devices - of one graph (in-graph replication) or of
// graphs of their own (between-graph). A group is told by its members or by its key alone:
//   - `members` lists the full names of all devices by rank. The group then forms itself when one of its ops first runs
//     on a device: at once where all members are of one task, else as the tasks of the cluster join each other.
//   - Without members the program joins (collective/group.h) and publishes the group before the first step.
// `instance_key` tells the collectives of a group apart. It is fixed when the graph is built, and the same at all
// members: programs that build equal graphs get equal numbers from NextInstanceKey.
// What one step runs with a group, of a graph or of a function's body, is the same at all members but for the names; a
// member whose step runs something else fails the group, and the error names the first difference. Names do not count:
// two collectives that look alike and have changed places at one member are not found out.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort::ops {

struct CollectiveKeys {
  int64_t group_size = 0;  // 0: as many as `members`, or 1
  int64_t group_key = 1;
  int64_t instance_key = 1;
  std::vector<std::string> members = {};  // "/job:worker/task:0/device:CPU:0"; parts that are missing are the op's
  int64_t generation = 1;                 // of a group that forms itself; another one after it has failed
  std::chrono::milliseconds timeout{0};   // of a collective of a group that forms itself; 0: none
  // The algorithm of a group that forms itself: the name of any row of collective/algorithm.h, "auto", "ring", "gloo",
  // ...
  std::string communication_hint = "auto";
};

// One more than the largest instance_key in the graph (those of gradients do not count), 1 where there is none.
int64_t NextInstanceKey(const Graph& graph);

// The reduction of all members' inputs, which have one shape. merge_op: "Add", "Mul", "Min", "Max"; final_op: "Id", or
// "Div" by group_size (with "Add" only). The gradient (of "Add") is the same reduction of the gradients: its
// instance_key is made of that of the op, so that members get equal ones.
Output CollectiveReduce(Output input, const CollectiveKeys& keys, const std::string& merge_op = "Add",
                        const std::string& final_op = "Id", const NodeName& name = "CollectiveReduce");
// [n, ...] of each, by rank: [group_size * n, ...].
Output CollectiveGather(Output input, const CollectiveKeys& keys, const NodeName& name = "CollectiveGather");
// [group_size * n, ...] of each: rows [rank * n, (rank + 1) * n) of the reduction.
Output CollectiveReduceScatter(Output input, const CollectiveKeys& keys, const std::string& merge_op = "Add",
                               const std::string& final_op = "Id", const NodeName& name = "CollectiveReduceScatter");
// The member of rank 0 sends its value, the others receive it. `shape` is fully known.
Output CollectiveBcastSend(Output input, const CollectiveKeys& keys, const NodeName& name = "CollectiveBcastSend");
Output CollectiveBcastRecv(Graph& graph, DType dtype, const Shape& shape, const CollectiveKeys& keys,
                           const NodeName& name = "CollectiveBcastRecv");
// Ends when all members have come to it.
Node* CollectiveBarrier(Graph& graph, const CollectiveKeys& keys, const NodeName& name = "CollectiveBarrier");

}  // namespace cohort::ops
