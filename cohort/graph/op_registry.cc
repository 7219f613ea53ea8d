#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/fnv.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/nearest_names.h"
#include "cohort/graph/op_def.h"

namespace cohort {

OpRegistry& OpRegistry::Global() {
  static OpRegistry* const registry = new OpRegistry;
  return *registry;
}

void OpRegistry::Register(OpDef&& def) {
  def.ResolveArgs();
  if (ops_.find(def.name()) != ops_.end()) {
    throw AlreadyExistsError(StrCat("[graph] op '", def.name(), "' is registered twice; register each op once"));
  }
  std::string name = def.name();
  ops_.emplace(std::move(name), std::make_unique<OpDef>(std::move(def)));
}

const OpDef* OpRegistry::Find(std::string_view name) const {
  const auto it = ops_.find(name);
  return it == ops_.end() ? nullptr : it->second.get();
}

const OpDef& OpRegistry::Get(std::string_view name) const {
  if (const OpDef* def = Find(name)) return *def;
  std::vector<std::string> known;
  for (const auto& [candidate, def] : ops_) known.push_back(candidate);
  throw NotFoundError(StrCat("[graph] there is no op '", name, "' among the ", ops_.size(), " registered ones",
                             DidYouMean(name, known)));
}

std::vector<const OpDef*> OpRegistry::All() const {
  std::vector<const OpDef*> all;
  all.reserve(ops_.size());
  for (const auto& [name, def] : ops_) all.push_back(def.get());
  return all;
}

uint64_t OpRegistry::Fingerprint() const {
  uint64_t hash = kFnvBasis;
  for (const auto& [name, def] : ops_) hash = Fnv1a(def->Signature() + "\n", hash);
  return hash;
}

}  // namespace cohort
