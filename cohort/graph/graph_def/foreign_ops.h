// ForeignOps: ops that graphs of TensorFlow have and Cohort does not. Importers make nodes of Cohort's ops of them.
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
  // Adds nodes that compute what a node of the op computes, and returns its one value. `attrs` are those of the node,
  // and for those that it lacks the defaults of the schema.
  using Build = std::function<Output(Graph& graph, const std::vector<Output>& inputs, const AttrMap& attrs)>;

  // Adds an op with one output. Throws as OpRegistry::Register does, and InvalidArgumentError if the op has more
  // outputs.
  void Add(OpDef&& schema, Build build);
  // Returns the schema of the op, which may be one of Cohort's, or nullptr if there is none.
  const OpDef* Find(std::string_view op) const;
  // Returns the function that makes nodes of an op, or nullptr if the op is not in the set.
  const Build* BuilderOf(std::string_view op) const;

 private:
  OpRegistry schemas_;
  std::map<std::string, Build, std::less<>> builders_;
};

}  // namespace cohort
