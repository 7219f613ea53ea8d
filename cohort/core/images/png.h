// PNG files, read and written with libpng. The results are those of TensorFlow's ops DecodePng and EncodePng for uint8.
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::images {

// Returns the image as uint8 [rows, columns, channels]. `channels` is 1: grey, 2: grey and opacity, 3: red, green and
// blue, 4: the same and opacity, or 0: as in the file, in which colours of a palette are 3 or 4 channels, and one
// transparent colour makes none. Of numbers of 16 bits the upper 8 are read. Opacity that the file does not have is
// 255. Throws InvalidArgumentError for another number of channels, and for bytes that libpng cannot read, with its
// message; ResourceExhaustedError for an image of more than 1 GiB.
COHORT_EXPORT Tensor DecodePng(std::string_view bytes, int channels = 0);

// Returns the bytes of a PNG file. `image` is uint8 [rows, columns, channels] with 1 to 4 channels. `compression` is
// zlib's: 0 (none) to 9, or -1 for its default. Throws InvalidArgumentError for others.
COHORT_EXPORT std::string EncodePng(const Tensor& image, int compression = -1);

}  // namespace cohort::images
