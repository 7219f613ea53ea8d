#include "cohort/core/images/image_file.h"

#include "cohort/core/error.h"
#include "cohort/core/images/jpeg.h"
#include "cohort/core/images/png.h"
#include "cohort/core/str_cat.h"

namespace cohort::images {

Format FormatOf(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff")) return Format::kJpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return Format::kPng;
  if (bytes.starts_with("GIF8")) return Format::kGif;
  if (bytes.starts_with("BM")) return Format::kBmp;
  return Format::kUnknown;
}

Tensor DecodeImage(std::string_view bytes, int channels) {
  switch (FormatOf(bytes)) {
    case Format::kJpeg: return DecodeJpeg(bytes, {.channels = channels});
    case Format::kPng: return DecodePng(bytes, channels);
    case Format::kGif: throw InvalidArgumentError("[images] expected a JPEG or PNG file; got a GIF file");
    case Format::kBmp: throw InvalidArgumentError("[images] expected a JPEG or PNG file; got a BMP file");
    case Format::kUnknown: break;
  }
  throw InvalidArgumentError(
      StrCat("[images] expected a JPEG or PNG file; got ", bytes.size(), " bytes that begin like neither"));
}

}  // namespace cohort::images
