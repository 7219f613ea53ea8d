// FakeBlas: a Blas that computes with plain loops on the host, in the order of the fake driver's streams. For tests
// only.
#pragma once

#include <atomic>

#include "cohort/backends/cuda/fake/fake_algorithms.h"
#include "cohort/backends/cuda/libraries/blas.h"

namespace cohort::cuda {

// It stands for a library that computes every spec, except those with an end for float64. A test owns it, installs it
// with InstallBlas, and lets it live until the driver's streams are idle. Thread-safe.
class FakeBlas final : public Blas {
 public:
  // `driver` outlives it, and is one whose launches run on the host.
  explicit FakeBlas(Driver& driver) : driver_(driver) {}

  LibraryName Name() override { return {"FakeBlas", "1.0.0"}; }
  std::vector<Algorithm> Candidates(int card, const GemmSpec& spec, size_t most) override;
  std::optional<Algorithm> Check(int card, const GemmSpec& spec, const Algorithm& algorithm) override;
  // Overwrites the workspace. Throws InternalError for a spec that breaks a rule of GemmSpec.
  void Gemm(int card, StreamHandle stream, const GemmSpec& spec, const GemmOperands& operands,
            const Algorithm& algorithm, void* workspace) override;

  // Returns how many calls had an end other than kPlain.
  int calls_with_end() const { return calls_with_end_.load(); }
  FakeAlgorithms& algorithms() { return algorithms_; }

 private:
  static constexpr size_t kWorkspaceBytes = 1024;

  Driver& driver_;
  FakeAlgorithms algorithms_{kWorkspaceBytes};
  std::atomic<int> calls_with_end_{0};
};

}  // namespace cohort::cuda
