// HostCompiler: a KernelCompiler that makes code for the host, by the C++ compiler of the machine, for tests.
#pragma once

#include <atomic>
#include <string>

#include "cohort/backends/cuda/libraries/kernel_compiler.h"

namespace cohort::cuda {

// Compiles a text to a shared library, which stays open until the process ends, and finds the function NAME_on_host in
// it. So a fake driver runs the kernel. A test owns it. Thread-safe.
class HostCompiler final : public KernelCompiler {
 public:
  // Returns whether the machine has the compiler with which this program was built.
  static bool IsThere();

  KernelCode Compile(Driver& driver, int card, const std::string& source, const char* name) override;
  // Returns how many texts were compiled.
  int compiled() const { return compiled_; }

 private:
  std::atomic<int> compiled_{0};
};

}  // namespace cohort::cuda
