// MakeClientNode: the node of a program that uses a cluster without being a task of it.
#pragma once

#include <memory>
#include <string>

#include "cohort/cluster/cluster_node.h"

namespace cohort {

// Returns a new node of /job:client with a random number. It runs no task and does not listen. `protocol` is the name
// of a transport. The caller owns the node, and ends it with ClusterNode::Stop.
// A node that `asks_only` asks tasks for their status. It reaches also tasks that know other ops than this program.
std::shared_ptr<ClusterNode> MakeClientNode(const std::string& protocol, const TransportOptions& transport,
                                            bool asks_only = false);

}  // namespace cohort
