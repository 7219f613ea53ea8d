// Image files of any format that is known here.
#pragma once

#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::images {

enum class Format { kUnknown, kJpeg, kPng, kGif, kBmp };  // GIF and BMP are recognized, so that errors can name them

// Returns the format that the first bytes of a file tell.
COHORT_EXPORT Format FormatOf(std::string_view bytes);

// Returns a JPEG or PNG file as uint8 [rows, columns, channels]; see DecodeJpeg and DecodePng. Throws
// InvalidArgumentError for other formats, and what these functions throw.
COHORT_EXPORT Tensor DecodeImage(std::string_view bytes, int channels = 0);

}  // namespace cohort::images
