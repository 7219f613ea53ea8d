#include "cohort/graph/graph_def/foreign_ops.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {

void ForeignOps::Add(OpDef&& schema, Build build) {
  const std::string name = schema.name();
  if (schema.outputs().size() != 1) {
    throw InvalidArgumentError(
        StrCat("[graph] expected one output of the foreign op '", name, "'; it has ", schema.outputs().size()));
  }
  schemas_.Register(std::move(schema));
  builders_.emplace(name, std::move(build));
}

const OpDef* ForeignOps::Find(std::string_view op) const {
  const OpDef* ours = OpRegistry::Global().Find(op);
  return ours == nullptr ? schemas_.Find(op) : ours;
}

const ForeignOps::Build* ForeignOps::BuilderOf(std::string_view op) const {
  const auto it = builders_.find(op);
  return it == builders_.end() ? nullptr : &it->second;
}

}  // namespace cohort
