// What stands for Gloo where it was not found.
#include "cohort/collective/gloo/mesh.h"
#include "cohort/core/error.h"

namespace cohort::collective {

bool GlooIsBuilt() { return false; }

std::vector<std::unique_ptr<GlooMesh>> MakeGlooMeshes(const std::string&, const std::vector<int>&, int) {
  throw UnimplementedError(
      "[collective] expected collectives that are built here; got GLOO: install Gloo (Debian: libgloo-dev) and "
      "configure again with COHORT_WITH_GLOO");
}

void BlockBrokenPipeSignal() {}

}  // namespace cohort::collective
