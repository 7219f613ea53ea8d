#include <string>

#include "cohort/core/images/jpeg.h"
#include "cohort/core/images/png.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/image_files.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

// An image of slopes and an edge, so that errors in the order of rows, columns or channels show.
Tensor Picture(int64_t rows, int64_t columns, int64_t channels) {
  Tensor image(DType::kUint8, Shape{rows, columns, channels});
  uint8_t* to = image.data<uint8_t>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t k = 0; k < channels; ++k) *to++ = static_cast<uint8_t>(7 * r + 5 * c + 60 * k + (c > r ? 40 : 0));
    }
  }
  return image;
}

void AddDecodeCases(std::vector<OpCase>& cases) {
  for (const int channels : {0, 1, 3, 4}) {
    const OpCase::Build png = Unary([=](Output x) { return ops::DecodePng(x, channels); });
    for (const int in_file : {1, 2, 3, 4}) {
      cases.push_back({"DecodePng",
                       StrCat(in_file, "_channels_as_", channels),
                       {Tensor::Scalar(images::EncodePng(Picture(5, 8, in_file)))},
                       png});
    }
    if (channels == 4) continue;
    const OpCase::Build any = Unary([=](Output x) { return ops::DecodeImage(x, channels); });
    for (const int in_file : {1, 3}) {
      const std::string jpeg = images::EncodeJpeg(Picture(21, 34, in_file));
      cases.push_back({"DecodeImage", StrCat(in_file, "_channels_as_", channels), {Tensor::Scalar(jpeg)}, any});
      for (const int ratio : {1, 2, 8}) {
        cases.push_back({"DecodeJpeg",
                         StrCat(in_file, "_channels_as_", channels, "_ratio_", ratio),
                         {Tensor::Scalar(jpeg)},
                         Unary([=](Output x) { return ops::DecodeJpeg(x, {.channels = channels, .ratio = ratio}); })});
      }
    }
  }
  const std::string jpeg = images::EncodeJpeg(Picture(40, 33, 3), {.progressive = true});
  cases.push_back({"DecodeJpeg", "accurate", {Tensor::Scalar(jpeg)}, Unary([](Output x) {
                     return ops::DecodeJpeg(x, {.fancy_upscaling = false, .dct = images::JpegDct::kAccurate});
                   })});
  cases.push_back({"DecodeImage", "float32", {Tensor::Scalar(images::EncodePng(Picture(3, 4, 3)))}, Unary([](Output x) {
                     return x.graph().Op("DecodeImage").Input(x).Attr("dtype", DType::kFloat32).Finish1();
                   })});
}

void AddEncodeCases(std::vector<OpCase>& cases) {
  for (const int channels : {1, 2, 3, 4}) {
    cases.push_back({"EncodePng", StrCat(channels, "_channels"), {Picture(6, 9, channels)}, Unary([=](Output x) {
                       return ops::DecodePng(ops::EncodePng(x, 9), channels == 2 ? 0 : channels);
                     })});
  }
  for (const int channels : {1, 3}) {
    cases.push_back({"EncodeJpeg", StrCat(channels, "_channels"), {Picture(20, 9, channels)}, Unary([](Output x) {
                       return ops::DecodeJpeg(
                           ops::EncodeJpeg(x, {.quality = 80, .optimize_size = true, .chroma_downsampling = false}));
                     })});
  }
}

}  // namespace

void AddImageFileCases(std::vector<OpCase>& cases) {
  AddDecodeCases(cases);
  AddEncodeCases(cases);
  cases.push_back(
      {"ReadFile", "name", {Tensor::Scalar("/etc/passwd")}, Unary([](Output x) { return ops::ReadFile(x); })});
}

}  // namespace cohort::testing
