// JPEG files, read and written with libjpeg (libjpeg-turbo on Debian). Defaults and results are those of TensorFlow's
// ops DecodeJpeg and EncodeJpeg, which use the same library.
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::images {

// How libjpeg computes the cosine transform, with whole numbers. kFast may be off by a few units of 255.
enum class JpegDct { kFast, kAccurate };

struct COHORT_EXPORT JpegReadOptions {
  int channels = 0;                    // 1: grey, 3: red, green and blue, 0: as in the file
  int ratio = 1;                       // rows and columns are divided by this while reading: 1, 2, 4 or 8
  bool fancy_upscaling = true;         // whether colour planes are enlarged smoothly; false is faster
  bool try_recover_truncated = false;  // whether a file that is cut off is read as far as it goes
  JpegDct dct = JpegDct::kFast;        // TensorFlow's default
};

struct COHORT_EXPORT JpegWriteOptions {
  int quality = 95;  // 0 to 100
  bool progressive = false;
  bool optimize_size = false;       // a smaller file with the same pixels, in more time
  bool chroma_downsampling = true;  // whether the two colour planes have half of the rows and columns
  bool density_in_inches = true;    // the unit of the densities: pixels per inch, or per centimetre
  int x_density = 300;
  int y_density = 300;
};

// Returns the image as uint8 [rows, columns, channels]. A file with four colours (CMYK) gives three channels. In a file
// that is cut off, the pixels that are not there are grey; of a progressive file they are coarse. Throws
// InvalidArgumentError for options out of range, and for bytes that libjpeg cannot read, with its message;
// DataLossError if the file is cut off and that is not allowed; ResourceExhaustedError for an image of more than 1 GiB.
COHORT_EXPORT Tensor DecodeJpeg(std::string_view bytes, const JpegReadOptions& options = {});

// Returns the bytes of a JPEG file. `image` is uint8 [rows, columns, channels] with 1 or 3 channels, and at most 65500
// rows and columns. Throws InvalidArgumentError for other images and options out of range.
COHORT_EXPORT std::string EncodeJpeg(const Tensor& image, const JpegWriteOptions& options = {});

}  // namespace cohort::images
