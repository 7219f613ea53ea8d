// Dnn: convolutions of images on a card, by a library of the vendor. The real one (cudnn.cc) opens cuDNN 9 when it is
// first needed. The fake one (fake/fake_dnn.h) computes on the host, so that tests need no card. Convolutions whose
// filters have one input channel are not done here, but by kernels of our own (kernels/depthwise.cu).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/libraries/algorithm.h"
#include "cohort/core/dtype.h"

namespace cohort::cuda {

// The three functions of a convolution: each computes one of its three tensors from the other two.
enum class ConvolutionPart { kOutput, kInputGradient, kFilterGradient };

// Sizes of a convolution. Images are [batch, rows, columns, channels]. The filter is [out_channels, rows, columns,
// in_channels / groups]. In pairs the element [0] is for the rows and [1] for the columns.
struct DnnConvolution {
  DType dtype = DType::kFloat32;  // float32 or bfloat16; sums of bfloat16 are float32
  int64_t batch = 0;              // all sizes are at least 1
  std::array<int64_t, 2> in_size{};
  int64_t in_channels = 0;
  std::array<int64_t, 2> filter_size{};
  std::array<int64_t, 2> out_size{};
  int64_t out_channels = 0;
  int64_t groups = 1;
  std::array<int64_t, 2> strides{1, 1};
  std::array<int64_t, 2> dilations{1, 1};
  std::array<int64_t, 2> padding{0, 0};  // the same before and after the image
  bool tensor_float_32 = false;          // as in GemmSpec
  friend auto operator<=>(const DnnConvolution&, const DnnConvolution&) = default;  // NOLINT(modernize-use-nullptr)
};

// The tensors of a call, in the card's memory. IsDnnAddress holds for each. The one that the call computes is written:
// `output` has the gradient of the output if another is computed.
struct DnnOperands {
  void* input = nullptr;
  void* filter = nullptr;
  void* output = nullptr;
};

// Returns whether a tensor may begin at this address: cuDNN wants multiples of 16 bytes.
inline bool IsDnnAddress(const void* data) {
  constexpr uintptr_t kAlignment = 16;
  return reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
}

// Returns the part and the convolution as a text, for tables of algorithms and for messages.
std::string CallText(ConvolutionPart part, const DnnConvolution& convolution);

// The convolutions of one process. Only deterministic algorithms are used; AlgorithmChooser chooses. Thread-safe. All
// functions throw FailedPreconditionError if the library cannot be opened.
class Dnn {
 public:
  virtual ~Dnn() = default;
  virtual LibraryName Name() = 0;
  // As those of Blas. There is no candidate if the library has no deterministic algorithm for this convolution.
  virtual std::vector<Algorithm> Candidates(int card, ConvolutionPart part, const DnnConvolution& convolution,
                                            size_t most) = 0;
  virtual std::optional<Algorithm> Check(int card, ConvolutionPart part, const DnnConvolution& convolution,
                                         const Algorithm& algorithm) = 0;
  // Enqueues the work, as Blas::Gemm does.
  virtual void Compute(int card, StreamHandle stream, ConvolutionPart part, const DnnConvolution& convolution,
                       const DnnOperands& operands, const Algorithm& algorithm, void* workspace) = 0;
};

// As FindBlas, InstallBlas and MakeBlas.
Dnn& FindDnn();
void InstallDnn(Dnn* dnn);
std::unique_ptr<Dnn> MakeDnn();

}  // namespace cohort::cuda
