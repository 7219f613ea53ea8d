// ImageSummary: images as PNG files in a Summary, scaled as TensorFlow's op of that name does.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/images/png.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/event.pb.h"
#include "cohort/summary/summary.h"

namespace cohort {
namespace {

constexpr float kLeastMaximum = 1e-6f;  // an image whose numbers are all smaller is written as zeros
constexpr float kWhite = 255;
constexpr float kMiddle = 128;

struct Scaling {
  float factor = 0;
  float offset = 0;
};

// Whether all numbers of the pixel are finite.
template <typename T>
bool IsFinite(const T* pixel, int64_t channels) {
  return std::all_of(pixel, pixel + channels, [](T value) { return std::isfinite(static_cast<float>(value)); });
}

template <typename T>
Scaling ScalingOf(const T* image, int64_t pixels, int64_t channels) {
  float least = 0, largest = 0;
  for (int64_t i = 0; i < pixels; ++i, image += channels) {
    if (!IsFinite(image, channels)) continue;
    for (int64_t c = 0; c < channels; ++c) {
      least = std::min(least, static_cast<float>(image[c]));
      largest = std::max(largest, static_cast<float>(image[c]));
    }
  }
  if (least >= 0) return {largest < kLeastMaximum ? 0 : kWhite / largest, 0};
  const float distance = std::max(-least, largest);
  return {distance < kLeastMaximum ? 0 : (kMiddle - 1) / distance, kMiddle};
}

template <typename T>
void Scale(const T* image, int64_t pixels, int64_t channels, const std::vector<uint8_t>& bad_colour, uint8_t* to) {
  const Scaling scaling = ScalingOf(image, pixels, channels);
  for (int64_t i = 0; i < pixels; ++i, image += channels, to += channels) {
    if (IsFinite(image, channels)) {
      for (int64_t c = 0; c < channels; ++c) {
        to[c] = static_cast<uint8_t>(static_cast<float>(image[c]) * scaling.factor + scaling.offset);
      }
    } else {
      std::copy_n(bad_colour.begin(), channels, to);
    }
  }
}

// Returns image i of the batch as uint8 [rows, columns, channels].
Tensor PixelsOf(const Tensor& images, int64_t i, const std::vector<uint8_t>& bad_colour) {
  const Shape& shape = images.shape();
  const int64_t pixels = shape.dim(1) * shape.dim(2), channels = shape.dim(3);
  const Shape of_one{shape.dim(1), shape.dim(2), channels};
  const Tensor image = images.Slice(i, i + 1).Reshaped(of_one);
  if (image.dtype() == DType::kUint8) return image;
  Tensor scaled(DType::kUint8, of_one);
  if (image.dtype() == DType::kFloat64) {
    Scale(image.data<double>(), pixels, channels, bad_colour, scaled.data<uint8_t>());
  } else {
    Scale(image.data<float>(), pixels, channels, bad_colour, scaled.data<uint8_t>());
  }
  return scaled;
}

}  // namespace

std::string ImageSummary(std::string_view tag, const Tensor& images, int64_t max_images,
                         const std::vector<uint8_t>& bad_colour) {
  const Shape& shape = images.shape();
  const DType dtype = images.dtype();
  if ((dtype != DType::kUint8 && dtype != DType::kFloat32 && dtype != DType::kFloat64) || shape.rank() != 4 ||
      shape.dim(3) < 1 || shape.dim(3) > 4) {
    throw InvalidArgumentError(StrCat("[summary] expected images for \"", tag,
                                      "\" as uint8, float32 or float64 [batch, rows, columns, 1 to 4 channels]; got ",
                                      dtype, shape));
  }
  if (static_cast<int64_t>(bad_colour.size()) < shape.dim(3)) {
    throw InvalidArgumentError(StrCat("[summary] expected a bad_color of at least ", shape.dim(3), " numbers for \"",
                                      tag, "\"; got ", bad_colour.size()));
  }
  proto::Summary summary;
  for (int64_t i = 0; i < std::min(max_images, shape.dim(0)); ++i) {
    proto::Summary::Value* one = summary.add_value();
    one->set_tag(max_images > 1 ? StrCat(tag, "/image/", i) : StrCat(tag, "/image"));
    proto::Summary::Image* image = one->mutable_image();
    image->set_height(static_cast<int>(shape.dim(1)));
    image->set_width(static_cast<int>(shape.dim(2)));
    image->set_colorspace(static_cast<int>(shape.dim(3)));
    image->set_encoded_image_string(images::EncodePng(PixelsOf(images, i, bad_colour)));
  }
  return summary.SerializeAsString();
}

}  // namespace cohort
