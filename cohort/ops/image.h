// Ops that make images of other sizes, or move their pixels. Images are [batch, rows, columns, channels]. All throw
// InvalidArgumentError for shapes that do not fit and for sizes below 1: when the node is added if they are known, else
// when the step runs.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/int_list.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Which place of the image belongs to row (or column) i of a result of n rows, if the image has m rows:
// - by default i * m / n;
// - with half_pixel_centers (i + 0.5) * m / n - 0.5, so that the centers of pixels are compared;
// - with align_corners i * (m - 1) / (n - 1), so that the first and the last rows are the same.
// At most one of the two may be set. tf.image.resize of TensorFlow 2 sets half_pixel_centers.
struct COHORT_EXPORT ResizeOptions {
  bool align_corners = false;
  bool half_pixel_centers = false;
};

// Returns float32 images of the size [rows, columns]. Each pixel is interpolated linearly between the four pixels
// around its place. `images` are numbers of any dtype; a gradient flows if they are floating.
COHORT_EXPORT Output ResizeBilinear(Output images, const IntList& size, const ResizeOptions& options = {},
                                    const NodeName& name = "ResizeBilinear");
// Returns images of the size [rows, columns] and of the dtype of `images`. Each pixel is the pixel of the image at its
// place, rounded down, or rounded with align_corners. (With half_pixel_centers the place is (i + 0.5) * m / n.)
COHORT_EXPORT Output ResizeNearestNeighbor(Output images, const IntList& size, const ResizeOptions& options = {},
                                           const NodeName& name = "ResizeNearestNeighbor");

// What a pixel becomes whose place is outside of the image.
struct COHORT_EXPORT ProjectiveTransformOptions {
  std::string interpolation = "BILINEAR";  // or "NEAREST"
  // "CONSTANT": fill_value. "REFLECT": (d c b a | a b c d | d c b a). "WRAP": (a b c d | a b c d | a b c d). "NEAREST":
  // (a a a a | a b c d | d d d d).
  std::string fill_mode = "CONSTANT";
};
// Returns images of the size `output_shape` (int32, [rows, columns]) and of the dtype of `images`: pixel (x, y), which
// is column x and row y, is the pixel of the image at the place
//   ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1.
// Each row of `transforms`, float32 [batch, 8] or [1, 8], is [a0, a1, a2, b0, b1, b2, c0, c1]. If k is 0, the pixel
// is fill_value (float32, a scalar). The gradient by `images`, if they are floating, is the derivative. (TensorFlow's
// moves gradients by the inverse transforms, which is only about the same.) There is none by the other inputs.
COHORT_EXPORT Output ImageProjectiveTransformV3(Output images, Output transforms, const IntList& output_shape,
                                                const Operand& fill_value = 0.0f,
                                                const ProjectiveTransformOptions& options = {},
                                                const NodeName& name = "ImageProjectiveTransformV3");

}  // namespace cohort::ops
