// Checks, shapes and scales of the ops of image.h, which the shape rules and the kernels share. Internal to the op
// modules and their kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/shape.h"
#include "cohort/core/tensor.h"
#include "cohort/ops/image.h"

namespace cohort::ops {

// Throws InvalidArgumentError, whose message contains `what`, unless there are two numbers above 0.
void CheckImageSize(const std::vector<int64_t>& size, const char* what);
// Throws InvalidArgumentError for a rank other than 4, and for images that are known to have no row or no column.
void CheckResizedImages(const Shape& images);
// Throws InvalidArgumentError unless `transforms` is [1, 8] or [batch, 8], with the batch of the images. Dimensions may
// be unknown.
void CheckTransforms(const Shape& images, const Shape& transforms);
// Throws InvalidArgumentError if both options are set.
void CheckResizeOptions(const ResizeOptions& options);
// Throws InvalidArgumentError unless gradients of this shape belong to images of this shape that were resized.
void CheckResizeGradient(const Shape& grads, const Shape& images);
// Returns the shape of `images` with the rows and columns that `size` says, an int32 [2] in host memory. Throws
// InvalidArgumentError as the checks above do.
Shape ResizedShape(const Shape& images, const Tensor& size);
// Returns how many rows or columns of the image one of the result stands for. `in` and `out` are their numbers.
float ResizeScale(int64_t in, int64_t out, bool align_corners);

}  // namespace cohort::ops
