#include "cohort/collective/engine.h"

#include "cohort/collective/plan/plan_engine.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

struct NamedFactory {
  Algorithm algorithm;
  EngineFactory factory;
};

// In the order in which `serves` is called.
std::vector<NamedFactory> Factories() {
  return {
#define COHORT_ENGINE_ROW(enumerator, number, name, functions) {Algorithm::enumerator, functions##EngineFactory()},
#define COHORT_IGNORE(...)
      COHORT_COLLECTIVE_ALGORITHMS(COHORT_IGNORE, COHORT_ENGINE_ROW)
#undef COHORT_ENGINE_ROW
#undef COHORT_IGNORE
  };
}

}  // namespace

bool IsBuilt(Algorithm algorithm) {
  for (const NamedFactory& one : Factories()) {
    if (one.algorithm == algorithm) return one.factory.is_built;
  }
  return true;
}

std::unique_ptr<CollectiveEngine> MakeEngine(EngineHost& host, const std::string& own_address, bool only_protected) {
  for (const NamedFactory& one : Factories()) {
    if (!one.factory.serves(host.options(), host.members())) continue;
    const bool chosen = host.options().algorithm == one.algorithm;
    if (only_protected && !one.factory.uses_transport && !chosen) continue;
    if (only_protected && !one.factory.uses_transport) {
      throw PermissionDeniedError(StrCat(
          "[collective] expected collectives over the connections that TLS protects; got ",
          AlgorithmName(one.algorithm),
          ", which has connections of its own that are not encrypted; use AUTO or RING, or, if you trust the network, ",
          "set allow_insecure_collectives (ServerOptions, --allow_insecure_collectives)"));
    }
    return one.factory.make(host, own_address);
  }
  return std::make_unique<PlanEngine>(host);
}

}  // namespace cohort::collective
