#include "cohort/cluster/node_service.h"

#include "cohort/cluster/steps/protocol.h"
#include "cohort/core/str_cat.h"

namespace cohort {

NodeServices& NodeServices::Global() {
  static auto* const services = new NodeServices;
  return *services;
}

void NodeServices::Register(uint16_t first_kind, uint16_t last_kind, Factory factory) {
  if (first_kind < kFirstServiceKind || last_kind < first_kind) {
    throw InvalidArgumentError(StrCat("[cluster] expected message kinds from ", kFirstServiceKind, " on; got ",
                                      first_kind, " to ", last_kind));
  }
  for (const Entry& other : entries_) {
    if (first_kind <= other.last_kind && other.first_kind <= last_kind) {
      throw AlreadyExistsError(StrCat("[cluster] message kinds ", other.first_kind, " to ", other.last_kind,
                                      " have a service; got ", first_kind, " to ", last_kind));
    }
  }
  entries_.push_back({first_kind, last_kind, std::move(factory)});
}

}  // namespace cohort
