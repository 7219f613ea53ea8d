// Compiled in place of the other sources of this folder if CMake does not find Gloo.
#include "cohort/collective/engine.h"

namespace cohort::collective {

EngineFactory GlooEngineFactory() {
  return {false,
          [](const GroupOptions& options, const MemberList& members) {
            return options.algorithm == Algorithm::kGloo && !members.has_one_process();
          },
          [](EngineHost&, const std::string&) -> std::unique_ptr<CollectiveEngine> {
            throw UnimplementedError(
                "[collective] expected collectives that are built here; got GLOO: install Gloo (Debian: libgloo-dev) "
                "and configure again with COHORT_WITH_GLOO");
          }};
}

}  // namespace cohort::collective
