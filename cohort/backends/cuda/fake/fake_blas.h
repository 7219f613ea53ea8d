// FakeBlas: a Blas that computes with plain loops on the host, in the order of the fake driver's streams. For tests
// only.
#pragma once

#include <atomic>

#include "cohort/backends/cuda/libraries/blas.h"

namespace cohort::cuda {

// It stands for a library that computes every spec, except those with an end for float64. A test owns it, installs it
// with InstallBlas, and lets it live until the driver's streams are idle. Thread-safe.
class FakeBlas final : public Blas {
 public:
  // `driver` outlives it, and is one whose launches run on the host.
  explicit FakeBlas(Driver& driver) : driver_(driver) {}

  bool Has(int card, const GemmSpec& spec) override;
  size_t WorkspaceBytes(int card, const GemmSpec& spec) override;
  // Overwrites the workspace. Throws InternalError for a spec that breaks a rule of GemmSpec.
  void Gemm(int card, StreamHandle stream, const GemmSpec& spec, const GemmOperands& operands,
            void* workspace) override;

  // Returns how many calls had an end other than kPlain.
  int calls_with_end() const { return calls_with_end_.load(); }

 private:
  Driver& driver_;
  std::atomic<int> calls_with_end_{0};
};

}  // namespace cohort::cuda
