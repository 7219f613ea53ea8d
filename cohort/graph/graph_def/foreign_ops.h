// ForeignOps: ops, and forms of ops, that graphs of TensorFlow have and Cohort does not. Importers make nodes of
// Cohort's ops of them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/graph/op_def.h"

namespace cohort {

// A set of such ops. It never changes after it was filled, and all threads may read it.
class ForeignOps {
 public:
  // Adds nodes that compute what a node of the op computes, and returns its outputs. `attrs` are those of the node, and
  // for those that it lacks the defaults of the schema.
  using Build =
      std::function<std::vector<Output>(Graph& graph, const std::vector<Output>& inputs, const AttrMap& attrs)>;

  // Adds an op. Does nothing if Cohort has an op of this name. Throws as OpRegistry::Register does.
  void Add(OpDef&& schema, Build build);
  // Adds those nodes of one of Cohort's ops for whose attributes `applies` returns true.
  void AddForm(const std::string& op, std::function<bool(const AttrMap& attrs)> applies, Build build);
  // Returns the schema of the op, which may be one of Cohort's, or nullptr if there is none.
  const OpDef* Find(std::string_view op) const;
  // Returns the function that makes the nodes for a node of the op with these attributes, or nullptr if the set has
  // none.
  const Build* BuilderOf(std::string_view op, const AttrMap& attrs) const;

 private:
  struct Entry {
    std::function<bool(const AttrMap& attrs)> applies;  // empty: always
    Build build;
  };
  OpRegistry schemas_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace cohort
