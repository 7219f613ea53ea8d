// Collectives: ops that run together with the same op on other devices. These are devices of one graph (in-graph
// replication), or of graphs of their own (between-graph replication). A group is named by its members, or by its key
// alone:
// - `members` lists the full names of all devices by rank. The group then forms when one of its ops first runs on a
//   device: at once if all members are of one task, else when the tasks of the cluster have joined each other.
// - Without members, the program joins the group (collective/group.h) and publishes it before the first step.
// `instance_key` tells the collectives of a group apart. It is fixed when the graph is built, and has to be the same at
// all members. Programs that build equal graphs get equal numbers from NextInstanceKey.
// All members have to run the same collectives with a group in a step (of a graph, or of a function's body). If the
// step of a member runs other collectives, the group fails, and the error names the first difference. Names of nodes do
// not count: if two collectives that look alike have changed places at one member, this is not detected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

struct COHORT_EXPORT CollectiveKeys {
  int64_t group_size = 0;  // 0: as many as `members`, or 1
  int64_t group_key = 1;
  int64_t instance_key = 1;
  std::vector<std::string> members = {};  // "/job:worker/task:0/device:CPU:0"; parts that are missing are the op's
  int64_t generation = 1;                 // of a group that forms itself; another one after it has failed
  float timeout_seconds = 0;              // of a collective of a group that forms itself; 0: none
  // The algorithm of a group that forms itself: the name of any row of collective/algorithm.h, "auto", "ring", "gloo",
  // ...
  std::string communication_hint = "auto";
};

// Returns one more than the largest instance_key in the graph, or 1 if there is none. The keys of gradients do not
// count.
COHORT_EXPORT int64_t NextInstanceKey(const Graph& graph);

// Returns the reduction of all members' inputs, which have one shape and one dtype. merge_op is "Add", "Mul", "Min" or
// "Max". final_op is "Id", or "Div" by group_size (only with "Add"). The gradient (of "Add") is the same reduction of
// the gradients. Its instance_key follows from that of the op, so that members get equal ones. If it fails, the step
// fails with the group's error. Throw InvalidArgumentError for keys or attributes that do not fit.
COHORT_EXPORT Output CollectiveReduce(Output input, const CollectiveKeys& keys, const std::string& merge_op = "Add",
                                      const std::string& final_op = "Id", const std::string& name = "CollectiveReduce");
// Returns the inputs [n, ...] of all members, by rank: [group_size * n, ...].
COHORT_EXPORT Output CollectiveGather(Output input, const CollectiveKeys& keys,
                                      const std::string& name = "CollectiveGather");
// Reduces inputs [group_size * n, ...]. Returns the rows [rank * n, (rank + 1) * n) of the reduction.
COHORT_EXPORT Output CollectiveReduceScatter(Output input, const CollectiveKeys& keys,
                                             const std::string& merge_op = "Add", const std::string& final_op = "Id",
                                             const std::string& name = "CollectiveReduceScatter");
// The member of rank 0 sends its value, and the others receive it. Requires: `shape` is fully known.
COHORT_EXPORT Output CollectiveBcastSend(Output input, const CollectiveKeys& keys,
                                         const std::string& name = "CollectiveBcastSend");
COHORT_EXPORT Output CollectiveBcastRecv(Graph& graph, DType dtype, const Shape& shape, const CollectiveKeys& keys,
                                         const std::string& name = "CollectiveBcastRecv");
// Adds a node that ends when it runs at all members.
COHORT_EXPORT Node* CollectiveBarrier(Graph& graph, const CollectiveKeys& keys,
                                      const std::string& name = "CollectiveBarrier");

}  // namespace cohort::ops
