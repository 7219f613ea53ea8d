// Launches of the kernels that change the sizes of images or move their pixels (cohort/ops/image.h).
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// Images [batch, rows, columns, channels] of the size `in` become images of the size `out`. In pairs the element [0] is
// for the rows and [1] for the columns.
struct ResizeSizes {
  int64_t batch = 0;  // all sizes are at least 1
  int64_t channels = 0;
  int64_t in[2] = {0, 0};
  int64_t out[2] = {0, 0};
  // in / out, or (in - 1) / (out - 1) with align_corners.
  float scale[2] = {1, 1};
  bool align_corners = false;
  bool half_pixel_centers = false;

  int64_t in_count() const { return batch * in[0] * in[1] * channels; }
  int64_t out_count() const { return batch * out[0] * out[1] * channels; }
};

// y, float32, = x of any type of numbers, interpolated linearly.
void LaunchResizeBilinear(Driver& driver, StreamHandle stream, ElementType type, const ResizeSizes& sizes,
                          const void* x, float* y);
// dx, of a floating type, = the gradient by x for the gradient dy.
void LaunchResizeBilinearGradient(Driver& driver, StreamHandle stream, ElementType type, const ResizeSizes& sizes,
                                  const float* dy, void* dx);
// y = the nearest pixels of x. An element has `bytes` bytes.
void LaunchResizeNearest(Driver& driver, StreamHandle stream, size_t bytes, const ResizeSizes& sizes, const void* x,
                         void* y);
// dx, of the floating type of dy, = the gradient by x for the gradient dy.
void LaunchResizeNearestGradient(Driver& driver, StreamHandle stream, ElementType type, const ResizeSizes& sizes,
                                 const void* dy, void* dx);

enum class FillMode : uint8_t { kConstant, kReflect, kWrap, kNearest };

struct ProjectiveArgs {
  const void* images = nullptr;
  const float* transforms = nullptr;
  void* out = nullptr;
  int64_t batch = 0;  // all sizes are at least 1
  int64_t channels = 0;
  int64_t in[2] = {0, 0};
  int64_t size[2] = {0, 0};  // of the result
  bool one_transform = false;
  bool nearest = false;
  FillMode fill_mode = FillMode::kConstant;
  float fill = 0;
};
// `type` is floating or kUint8.
void LaunchProjectiveTransform(Driver& driver, StreamHandle stream, ElementType type, const ProjectiveArgs& args);

}  // namespace cohort::cuda
