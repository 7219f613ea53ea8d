#include "cohort/backends/cuda/fake/fake_dnn.h"

#include <cstring>
#include <vector>

#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/fake/fake_driver.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

// Computes one part of a convolution. It is launched with one thread.
template <typename T>
struct ConvolutionOnHost {
  ConvolutionPart part;
  DnnConvolution c;
  DnnOperands operands;
  void* workspace;
  size_t workspace_bytes;
  double microseconds;

  void operator()(const Thread&) const {
    SpendFakeTime(microseconds);
    std::memset(workspace, 0x5a, workspace_bytes);
    const std::vector<float> x = Load(operands.input, InputSize()), w = Load(operands.filter, FilterSize()),
                             y = Load(operands.output, OutputSize());
    switch (part) {
      case ConvolutionPart::kOutput: {
        std::vector<float> sums(y.size(), 0.0f);
        ForTriples([&](int64_t at_x, int64_t at_w, int64_t at_y) { sums[U(at_y)] += x[U(at_x)] * w[U(at_w)]; });
        return Store(sums, operands.output);
      }
      case ConvolutionPart::kInputGradient: {
        std::vector<float> sums(x.size(), 0.0f);
        ForTriples([&](int64_t at_x, int64_t at_w, int64_t at_y) { sums[U(at_x)] += y[U(at_y)] * w[U(at_w)]; });
        return Store(sums, operands.input);
      }
      case ConvolutionPart::kFilterGradient: {
        std::vector<float> sums(w.size(), 0.0f);
        ForTriples([&](int64_t at_x, int64_t at_w, int64_t at_y) { sums[U(at_w)] += y[U(at_y)] * x[U(at_x)]; });
        return Store(sums, operands.filter);
      }
    }
  }

 private:
  static size_t U(int64_t value) { return static_cast<size_t>(value); }
  int64_t InputSize() const { return c.batch * c.in_size[0] * c.in_size[1] * c.in_channels; }
  int64_t FilterSize() const {
    return c.out_channels * c.filter_size[0] * c.filter_size[1] * (c.in_channels / c.groups);
  }
  int64_t OutputSize() const { return c.batch * c.out_size[0] * c.out_size[1] * c.out_channels; }

  static std::vector<float> Load(const void* data, int64_t n) {
    const T* from = static_cast<const T*>(data);
    return std::vector<float>(from, from + n);
  }
  static void Store(const std::vector<float>& values, void* data) {
    for (size_t i = 0; i < values.size(); ++i) static_cast<T*>(data)[i] = static_cast<T>(values[i]);
  }

  // Calls body with the places of an element of the input and one of the filter whose product belongs to an element of
  // the output, and with the place of that one.
  template <typename Body>
  void ForTriples(const Body& body) const {
    for (int64_t b = 0; b < c.batch; ++b) {
      for (int64_t r = 0; r < c.out_size[0]; ++r) {
        for (int64_t q = 0; q < c.out_size[1]; ++q) {
          for (int64_t i = 0; i < c.filter_size[0]; ++i) {
            const int64_t row = r * c.strides[0] - c.padding[0] + i * c.dilations[0];
            if (row < 0 || row >= c.in_size[0]) continue;
            for (int64_t j = 0; j < c.filter_size[1]; ++j) {
              const int64_t column = q * c.strides[1] - c.padding[1] + j * c.dilations[1];
              if (column < 0 || column >= c.in_size[1]) continue;
              ForChannels((b * c.in_size[0] + row) * c.in_size[1] + column, i * c.filter_size[1] + j,
                          (b * c.out_size[0] + r) * c.out_size[1] + q, body);
            }
          }
        }
      }
    }
  }

  // The same for one point of the input, the filter and the output.
  template <typename Body>
  void ForChannels(int64_t point_x, int64_t point_w, int64_t point_y, const Body& body) const {
    const int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups;
    const int64_t points = c.filter_size[0] * c.filter_size[1];
    for (int64_t k = 0; k < c.out_channels; ++k) {
      for (int64_t n = 0; n < in; ++n) {
        body(point_x * c.in_channels + k / out * in + n, (k * points + point_w) * in + n, point_y * c.out_channels + k);
      }
    }
  }
};

// Returns whether a window of the filter at each place of the output lies in the padded image, and no more would.
bool Fits(const DnnConvolution& c) {
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t reach = (c.filter_size[axis] - 1) * c.dilations[axis] + 1;
    const int64_t room = c.in_size[axis] + 2 * c.padding[axis] - reach;
    if (room < 0 || room / c.strides[axis] + 1 != c.out_size[axis]) return false;
  }
  return c.batch > 0 && c.groups > 0 && c.in_channels % c.groups == 0 && c.out_channels % c.groups == 0 &&
         c.in_channels > 0 && c.out_channels > 0;
}

}  // namespace

void FakeDnn::Compute(int, StreamHandle stream, ConvolutionPart part, const DnnConvolution& c,
                      const DnnOperands& operands, const Algorithm& algorithm, void* workspace) {
  if (!Fits(c) || workspace == nullptr || reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
    throw InternalError(StrCat("[fake dnn] expected a call that keeps the rules of dnn.h; got an image of [", c.batch,
                               ",", c.in_size[0], ",", c.in_size[1], ",", c.in_channels, "], a filter of [",
                               c.filter_size[0], ",", c.filter_size[1], "], an output of [", c.out_size[0], ",",
                               c.out_size[1], ",", c.out_channels, "], ", c.groups, " groups"));
  }
  if (!IsDnnAddress(operands.input) || !IsDnnAddress(operands.filter) || !IsDnnAddress(operands.output)) {
    throw InternalError(StrCat("[fake dnn] expected tensors at addresses that are multiples of 16; got an input at ",
                               operands.input, ", a filter at ", operands.filter, ", an output at ", operands.output,
                               ": CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER (2003, on the fake library)"));
  }
  const double microseconds = algorithms_.Use(algorithm);
  const auto enqueue = [&]<typename T>(T) {
    Launch(driver_, stream, LaunchSize(),
           ConvolutionOnHost<T>{part, c, operands, workspace, algorithm.workspace, microseconds});
  };
  switch (c.dtype) {
    case DType::kFloat32: return enqueue(float());
    case DType::kBfloat16: return enqueue(bfloat16());
    default: throw InternalError(StrCat("[fake dnn] expected float32 or bfloat16; got ", c.dtype));
  }
}

}  // namespace cohort::cuda
