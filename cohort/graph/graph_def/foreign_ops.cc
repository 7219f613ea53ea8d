#include "cohort/graph/graph_def/foreign_ops.h"

#include <utility>

namespace cohort {

void ForeignOps::Add(OpDef&& schema, Build build) {
  if (OpRegistry::Global().Find(schema.name()) != nullptr) return;
  const std::string name = schema.name();
  schemas_.Register(std::move(schema));
  entries_[name] = {nullptr, std::move(build)};
}

void ForeignOps::AddForm(const std::string& op, std::function<bool(const AttrMap& attrs)> applies, Build build) {
  entries_[op] = {std::move(applies), std::move(build)};
}

const OpDef* ForeignOps::Find(std::string_view op) const {
  const OpDef* ours = OpRegistry::Global().Find(op);
  return ours == nullptr ? schemas_.Find(op) : ours;
}

const ForeignOps::Build* ForeignOps::BuilderOf(std::string_view op, const AttrMap& attrs) const {
  const auto it = entries_.find(op);
  if (it == entries_.end() || (it->second.applies && !it->second.applies(attrs))) return nullptr;
  return &it->second.build;
}

}  // namespace cohort
