// The part of a client's graph that one signature of a session needs, as a graph of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// What a step is asked for: values put in, values taken out, nodes that just have to run.
struct Signature {
  std::vector<Output> feeds;
  std::vector<Output> fetches;
  std::vector<Node*> targets;
  friend bool operator==(const Signature&, const Signature&) = default;
};

struct PrunedGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Node*> args;      // the _Arg of each feed in `graph`; null where no fetch depends on the feed
  std::vector<Output> fetches;  // in `graph`; invalid where the fetch is fed (fed_fetch says by which feed)
  std::vector<int> fed_fetch;   // index of the feed that a fetch is answered by, or -1
};

// Copies the ancestors of fetches and targets, cut at the feeds. Throws InvalidArgumentError for a feed or fetch of
// another graph, a feed given twice, a fetched resource handle.
PrunedGraph Prune(const Graph& graph, const Signature& signature);

}  // namespace cohort
