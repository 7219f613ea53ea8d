#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/fnv.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"

namespace cohort {
namespace {

// Levenshtein's distance, with lower and upper case taken as equal.
size_t EditDistance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

}  // namespace

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
  std::vector<std::pair<size_t, std::string>> close;
  for (const auto& [candidate, def] : ops_) {
    const size_t distance = EditDistance(name, candidate);
    if (distance <= 1 + name.size() / 3) close.emplace_back(distance, candidate);
  }
  std::sort(close.begin(), close.end());
  std::string hint;
  for (size_t i = 0; i < std::min<size_t>(close.size(), 3); ++i) hint += (i == 0 ? "" : ", ") + close[i].second;
  throw NotFoundError(StrCat("[graph] there is no op '", name, "' among the ", ops_.size(), " registered ones",
                             hint.empty() ? "" : "; did you mean ", hint, hint.empty() ? "" : "?"));
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
