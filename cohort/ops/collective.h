// Collectives: ops that run together with the same op on other devices. The devices belong to one graph (in-graph
// replication), or each process has a graph of its own (between-graph replication). A program names a group by its
// members, or by its key alone:
// - `members` lists the full names of all devices by rank. The group then forms by itself when one of its ops first
//   runs on a device: at once if all members are devices of one task, else when the tasks of all members have joined
//   the group.
// - If `members` is empty, the program joins the group (collective/group.h) and publishes it before the first step.
//   Such a group does not form by itself.
// `instance_key` tells the collectives of a group apart. It is fixed when the graph is built. All members of one
// collective must have the same instance_key. Programs that build equal graphs get equal numbers from NextInstanceKey.
// In one step, all members of a group have to run the same collectives. Members compare the collectives of their
// partitions, and, if functions are called, the collectives of each function's body. If they differ, the group fails,
// and the error names the first difference. The names of the nodes are not compared. So if a member has exchanged two
// collectives with equal signatures, this is not detected.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

struct COHORT_EXPORT CollectiveKeys {
  int64_t group_size = 0;  // 0: the number of `members`, or 1 if there are none
  int64_t group_key = 1;
  int64_t instance_key = 1;
  // The full names of the devices, by rank: "/job:worker/task:0/device:CPU:0". If a name lacks a part, the part of the
  // op's device is used.
  std::vector<std::string> members = {};
  int64_t generation = 1;                // of a group that forms by itself; after it has failed, give another number
  std::chrono::milliseconds timeout{0};  // longest time of a collective of a group that forms by itself; 0: no limit
  // The longest time without progress of a collective of a group that forms by itself; 0: no limit; not set: see
  // collective::GroupOptions::progress_limit.
  std::optional<std::chrono::milliseconds> progress_limit = {};
  // The algorithm of a group that forms by itself: a name in the table of collective/algorithm.h: "auto", "ring",
  // "gloo", ...
  std::string communication_hint = "auto";
};

// Returns the keys of a collective node. A timeout of more than a century becomes a century. Throws
// InvalidArgumentError if the node's timeout_seconds is negative, infinite or not a number.
COHORT_EXPORT CollectiveKeys KeysOf(const Node& node);

// Returns one more than the largest instance_key in the graph, or 1 if there is none. The keys of gradients do not
// count.
COHORT_EXPORT int64_t NextInstanceKey(const Graph& graph);

// Returns the reduction of all members' inputs, which must have the same shape and dtype. merge_op is "Add", "Mul",
// "Min" or "Max". final_op is "Id", or "Div" by group_size (only with "Add"). The gradient (only with "Add") is the
// same reduction of the gradients. Its instance_key is computed from that of the op, so that all members get the same.
// If a collective fails, its step fails with the error of the group. This function and the functions below throw
// InvalidArgumentError for keys or attributes that do not fit.
COHORT_EXPORT Output CollectiveReduce(Output input, const CollectiveKeys& keys, const std::string& merge_op = "Add",
                                      const std::string& final_op = "Id", const NodeName& name = "CollectiveReduce");
// Returns the inputs [n, ...] of all members, by rank: [group_size * n, ...].
COHORT_EXPORT Output CollectiveGather(Output input, const CollectiveKeys& keys,
                                      const NodeName& name = "CollectiveGather");
// Reduces inputs [group_size * n, ...]. Returns the rows [rank * n, (rank + 1) * n) of the reduction.
COHORT_EXPORT Output CollectiveReduceScatter(Output input, const CollectiveKeys& keys,
                                             const std::string& merge_op = "Add", const std::string& final_op = "Id",
                                             const NodeName& name = "CollectiveReduceScatter");
// The member of rank 0 sends its value, and the others receive it. Requires: `shape` is fully known.
COHORT_EXPORT Output CollectiveBcastSend(Output input, const CollectiveKeys& keys,
                                         const NodeName& name = "CollectiveBcastSend");
COHORT_EXPORT Output CollectiveBcastRecv(Graph& graph, DType dtype, const Shape& shape, const CollectiveKeys& keys,
                                         const NodeName& name = "CollectiveBcastRecv");
// Adds a node that waits until all members run it.
COHORT_EXPORT Node* CollectiveBarrier(Graph& graph, const CollectiveKeys& keys,
                                      const NodeName& name = "CollectiveBarrier");

}  // namespace cohort::ops
