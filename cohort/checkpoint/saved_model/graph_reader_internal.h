// Reads the graph of a SavedModel. Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/checkpoint/saved_model/saved_model.h"
#include "cohort/graph/graph.h"

namespace cohort::saved_model {

struct ReadGraph {
  Signatures signatures;
  Node* restore = nullptr;  // restores the values; null if the graph has none
  Output filename;          // fed with the prefix of the values for `restore`
  std::vector<Node*> init;  // run after `restore`, one after another
};

// Adds to `graph`, which is empty, the part of a graph of the SavedModel `bytes` that its signatures and its restore
// and init ops need. `dir` is the folder of the SavedModel. Reads no file. Throws as SavedModel's constructor does.
ReadGraph ReadSavedModelGraph(std::string_view bytes, const std::string& dir, const std::vector<std::string>& tags,
                              Graph& graph);

}  // namespace cohort::saved_model
