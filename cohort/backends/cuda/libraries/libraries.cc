// The libraries of the process: FindBlas, FindDnn, FindKernelCompiler and FindNccl.
#include <atomic>

#include "cohort/backends/cuda/libraries/blas.h"
#include "cohort/backends/cuda/libraries/dnn.h"
#include "cohort/backends/cuda/libraries/kernel_compiler.h"
#include "cohort/backends/cuda/libraries/nccl.h"
#include "cohort/backends/cuda/libraries/nvrtc.h"

namespace cohort::cuda {
namespace {

std::atomic<Blas*> installed_blas{nullptr};
std::atomic<Dnn*> installed_dnn{nullptr};
std::atomic<KernelCompiler*> installed_compiler{nullptr};
std::atomic<Nccl*> installed_nccl{nullptr};

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

KernelCompiler* FindKernelCompiler(Driver& driver) {
  if (KernelCompiler* compiler = installed_compiler.load()) return compiler;
  if (!driver.LoadsKernels()) return nullptr;
  static KernelCompiler* const made = MakeNvrtcCompiler().release();
  return made;
}
void InstallKernelCompiler(KernelCompiler* compiler) { installed_compiler.store(compiler); }

Nccl& FindNccl() {
  if (Nccl* nccl = installed_nccl.load()) return *nccl;
  static Nccl* const made = MakeNccl().release();
  return *made;
}
void InstallNccl(Nccl* nccl) { installed_nccl.store(nccl); }

}  // namespace cohort::cuda
