// FakeDnn: a Dnn that computes with plain loops on the host, in the order of the fake driver's streams. For tests only.
#pragma once

#include "cohort/backends/cuda/fake/fake_algorithms.h"
#include "cohort/backends/cuda/libraries/dnn.h"

namespace cohort::cuda {

// A test owns it, installs it with InstallDnn, and lets it live until the driver's streams are idle. Thread-safe.
class FakeDnn final : public Dnn {
 public:
  // `driver` outlives it, and is one whose launches run on the host.
  explicit FakeDnn(Driver& driver) : driver_(driver) {}

  LibraryName Name() override { return {"FakeDnn", "1.0.0"}; }
  std::vector<Algorithm> Candidates(int, ConvolutionPart, const DnnConvolution&, size_t most) override {
    return algorithms_.Candidates(most);
  }
  std::optional<Algorithm> Check(int, ConvolutionPart, const DnnConvolution&, const Algorithm& algorithm) override {
    return algorithms_.Check(algorithm);
  }
  // Overwrites the workspace. Throws InternalError for sizes that do not fit each other, and for addresses that cuDNN
  // does not take.
  void Compute(int card, StreamHandle stream, ConvolutionPart part, const DnnConvolution& convolution,
               const DnnOperands& operands, const Algorithm& algorithm, void* workspace) override;

  FakeAlgorithms& algorithms() { return algorithms_; }

 private:
  static constexpr size_t kWorkspaceBytes = 2048;

  Driver& driver_;
  FakeAlgorithms algorithms_{kWorkspaceBytes};
};

}  // namespace cohort::cuda
