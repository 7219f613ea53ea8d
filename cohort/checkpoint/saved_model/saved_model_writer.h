// Writes SavedModels, whatever their values come from. Internal: programs use saved_model.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/checkpoint/saved_model/saved_model.h"

namespace cohort::saved_model {

// What a SavedModel is written from. `graph` and `signatures` must outlive it. Used by one thread.
struct Contents {
  const Graph& graph;
  const Signatures& signatures;
  std::vector<std::string> tags = {kServingTag};
  std::vector<const VariableInfo*> variables;  // whose values are written, sorted by name
  // Returns the values of some of `variables`. It is called several times, each time with the next ones, so that not
  // all values have to be in memory.
  std::function<std::vector<Tensor>(const std::vector<const VariableInfo*>&)> read;
};

// Return variables of the graph that are not local, sorted by name: all of them, or only those that the signatures
// need, directly or through the initial values of local variables. Throw InvalidArgumentError as WriteSavedModel does.
std::vector<const VariableInfo*> SavedVariables(const Graph& graph);
std::vector<const VariableInfo*> NeededVariables(const Graph& graph, const Signatures& signatures);

// Writes the files of the SavedModel into the folder `dir`, which must exist. Equal contents give equal files. Does not
// change the graph. Throws InvalidArgumentError if a value does not fit its variable, or if there is no tag; what
// WriteSavedModel throws; and what `read` throws.
void WriteContents(const Contents& contents, const std::string& dir);

// Writes the files into a new folder, which is called `export_dir` when it is complete. Throws also what
// NewExportFolder throws (export_folder.h).
void ExportContents(const Contents& contents, const std::string& export_dir);

}  // namespace cohort::saved_model
