// KernelCompiler: makes kernels from text while the program runs. The real one (nvrtc.h) is NVIDIA's. The one of tests
// (fake/host_compiler.h) makes code for the host, so that tests need no card.
#pragma once

#include <string>

#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// The compiler of one process. Thread-safe.
class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  // Returns the kernel `name` of the text, compiled for the card. The text includes nothing. The code stays as long as
  // the process, and `name` must do so. Throws FailedPreconditionError if the library of the compiler cannot be opened,
  // and InternalError, with the compiler's words, if it refuses the text.
  virtual KernelCode Compile(Driver& driver, int card, const std::string& source, const char* name) = 0;
};

// Returns the compiler for kernels of the driver's cards: the installed one, or else NVRTC. Returns null if none is
// installed and the driver runs kernels on the host.
KernelCompiler* FindKernelCompiler(Driver& driver);
// For tests: makes `compiler` what FindKernelCompiler returns; null undoes it.
void InstallKernelCompiler(KernelCompiler* compiler);

}  // namespace cohort::cuda
