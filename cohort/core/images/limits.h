// What the readers and writers of images have in common. Internal.
#pragma once

#include <cstdint>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/tensor.h"

namespace cohort::images {

// A small file can claim to hold an enormous image. The memory for this many bytes is taken.
constexpr int64_t kMostBytes = int64_t{1} << 30;

inline void CheckSize(const char* format, int64_t rows, int64_t columns, int64_t channels) {
  if (rows > kMostBytes / columns / channels) {
    throw ResourceExhaustedError(StrCat("[images] expected a ", format, " image of at most ", kMostBytes,
                                        " bytes; got ", rows, " rows of ", columns, " pixels with ", channels,
                                        " channels"));
  }
}

// Throws InvalidArgumentError unless `image` is uint8 [rows, columns, channels] with 1 to `most` channels and at least
// one pixel.
inline void CheckImage(const char* format, const Tensor& image, int64_t most) {
  const Shape& shape = image.shape();
  if (image.dtype() != DType::kUint8 || shape.rank() != 3 || shape.num_elements() == 0 || shape.dim(2) > most) {
    throw InvalidArgumentError(StrCat("[images] expected uint8 [rows, columns, channels] for a ", format,
                                      " file, with 1 to ", most, " channels and at least one pixel; got ",
                                      image.dtype(), shape));
  }
}

}  // namespace cohort::images
