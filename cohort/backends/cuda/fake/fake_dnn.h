// FakeDnn: a Dnn that computes with plain loops on the host, in the order of the fake driver's streams. For tests only.
#pragma once

#include "cohort/backends/cuda/libraries/dnn.h"

namespace cohort::cuda {

// A test owns it, installs it with InstallDnn, and lets it live until the driver's streams are idle. Thread-safe.
class FakeDnn final : public Dnn {
 public:
  // `driver` outlives it, and is one whose launches run on the host.
  explicit FakeDnn(Driver& driver) : driver_(driver) {}

  size_t WorkspaceBytes(int card, ConvolutionPart part, const DnnConvolution& convolution) override;
  // Overwrites the workspace. Throws InternalError for sizes that do not fit each other.
  void Compute(int card, StreamHandle stream, ConvolutionPart part, const DnnConvolution& convolution,
               const DnnOperands& operands, void* workspace) override;

 private:
  Driver& driver_;
};

}  // namespace cohort::cuda
