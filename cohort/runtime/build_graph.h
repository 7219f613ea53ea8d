// Prune(): copies the part of a session's graph that one signature needs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// The request of a step: values to feed, values to fetch, and targets (nodes that must run and have no result).
struct Signature {
  std::vector<Output> feeds;
  std::vector<Output> fetches;
  std::vector<Node*> targets;
  friend bool operator==(const Signature&, const Signature&) = default;
};

// The result of Prune.
struct PrunedGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Node*> args;      // the _Arg node of each feed; null if no fetch and no target needs the feed
  std::vector<Output> fetches;  // values of `graph`; invalid if the fetch is also a feed
  std::vector<int> fed_fetch;   // for each fetch: the index of the feed that has its value, or -1
};

// Copies the nodes that fetches and targets need. A feed is replaced by an _Arg node, so the nodes before it are not
// copied. Throws InvalidArgumentError if a feed, fetch or target is of another graph, if a feed occurs twice, or if a
// fetch is a resource handle.
PrunedGraph Prune(const Graph& graph, const Signature& signature);

}  // namespace cohort
