// The libraries of the process: FindBlas, FindDnn and FindNccl, and which NCCL can be used.
#include <atomic>

#include "cohort/backends/cuda/libraries/blas.h"
#include "cohort/backends/cuda/libraries/dnn.h"
#include "cohort/backends/cuda/libraries/nccl.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

std::atomic<Blas*> installed_blas{nullptr};
std::atomic<Dnn*> installed_dnn{nullptr};
std::atomic<Nccl*> installed_nccl{nullptr};

std::string VersionOfNccl(int version) { return StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100); }

}  // namespace

int AlignmentOf(const GemmOperands& operands) {
  constexpr uintptr_t kMost = 256;
  uintptr_t bits = kMost;
  for (const void* address : {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.c)}) {
    bits |= reinterpret_cast<uintptr_t>(address);
  }
  return static_cast<int>(bits & (~bits + 1));  // the lowest bit that is set
}

Blas& FindBlas() {
  if (Blas* blas = installed_blas.load()) return *blas;
  static Blas* const made = MakeBlas().release();  // streams may use it until the process ends
  return *made;
}
void InstallBlas(Blas* blas) { installed_blas.store(blas); }

Dnn& FindDnn() {
  if (Dnn* dnn = installed_dnn.load()) return *dnn;
  static Dnn* const made = MakeDnn().release();
  return *made;
}
void InstallDnn(Dnn* dnn) { installed_dnn.store(dnn); }

std::string WhyNcclIsUnusable(int version) {
  constexpr int kOldest = 21801;  // the first in which a non-blocking communicator can be aborted at any time
  constexpr int kNextMajor = 30000;
  if (version >= kOldest && version < kNextMajor) return "";
  return StrCat("its version is ", VersionOfNccl(version), "; ", VersionOfNccl(kOldest),
                " or a later NCCL 2 is needed");
}

LibraryRequest NcclRequest() {
  return {"NCCL 2", {"libnccl.so.2", "libnccl.so"}, [](const DynamicLibrary& library) -> std::string {
            const auto get_version = library.Find<int(int*)>("ncclGetVersion");
            int version = 0;
            if (get_version == nullptr || get_version(&version) != 0) return "it tells no version";
            return WhyNcclIsUnusable(version);
          }};
}

Nccl& FindNccl() {
  if (Nccl* nccl = installed_nccl.load()) return *nccl;
  static Nccl* const made = MakeNccl().release();
  return *made;
}
void InstallNccl(Nccl* nccl) { installed_nccl.store(nccl); }

}  // namespace cohort::cuda
