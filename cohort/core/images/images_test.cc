#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/images/image_file.h"
#include "cohort/core/images/jpeg.h"
#include "cohort/core/images/png.h"

namespace cohort::images {
namespace {

using ::testing::HasSubstr;

// An image that changes slowly, so that JPEG keeps it well.
Tensor Slope(int64_t rows, int64_t columns, int64_t channels) {
  Tensor image(DType::kUint8, Shape{rows, columns, channels});
  uint8_t* to = image.data<uint8_t>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t k = 0; k < channels; ++k) *to++ = static_cast<uint8_t>(20 + 3 * r + 2 * c + 25 * k);
    }
  }
  return image;
}

int LargestDifference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  int largest = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    largest = std::max(largest, std::abs(a.data<uint8_t>()[i] - b.data<uint8_t>()[i]));
  }
  return largest;
}

template <typename E, typename F>
std::string MessageOf(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error of this class";
}

TEST(ImagesTest, PngKeepsEachPixel) {
  for (const int channels : {1, 2, 3, 4}) {
    const Tensor image = Slope(7, 13, channels);
    for (const int compression : {-1, 0, 9}) {
      const std::string bytes = EncodePng(image, compression);
      EXPECT_EQ(FormatOf(bytes), Format::kPng);
      EXPECT_EQ(LargestDifference(DecodePng(bytes), image), 0);
      EXPECT_EQ(LargestDifference(DecodeImage(bytes, channels), image), 0);
    }
  }
}

TEST(ImagesTest, PngAddsAndLeavesOutChannels) {
  const Tensor grey = Slope(2, 3, 1);
  const Tensor colours = DecodePng(EncodePng(grey), 4);
  ASSERT_EQ(colours.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(colours.Slice(0, 1).ToVector<uint8_t>(),
            (std::vector<uint8_t>{20, 20, 20, 255, 22, 22, 22, 255, 24, 24, 24, 255}));
  EXPECT_EQ(DecodePng(EncodePng(colours), 3).ToVector<uint8_t>()[3], 22);
  EXPECT_EQ(LargestDifference(DecodePng(EncodePng(colours), 1), grey), 0);
}

TEST(ImagesTest, JpegKeepsTheImageNearly) {
  for (const int channels : {1, 3}) {
    const Tensor image = Slope(21, 30, channels);
    for (const bool other : {false, true}) {
      const std::string bytes = EncodeJpeg(
          image, {.quality = 98, .progressive = other, .optimize_size = other, .chroma_downsampling = !other});
      EXPECT_EQ(FormatOf(bytes), Format::kJpeg);
      EXPECT_LE(LargestDifference(DecodeJpeg(bytes), image), 4);
      EXPECT_EQ(DecodeImage(bytes, 1).shape(), (Shape{21, 30, 1}));
      EXPECT_EQ(DecodeJpeg(bytes, {.channels = 3, .ratio = 2}).shape(), (Shape{11, 15, 3}));
    }
  }
}

TEST(ImagesTest, ACutOffJpegIsReadOnlyIfThisIsAllowed) {
  Tensor image = Slope(128, 128, 3);  // with details, so that most bytes of the file are not headers
  for (int64_t i = 0; i < image.num_elements(); ++i) image.data<uint8_t>()[i] ^= static_cast<uint8_t>(i * i % 61);
  for (const bool progressive : {false, true}) {
    const std::string whole = EncodeJpeg(image, {.progressive = progressive});
    const std::string_view most = std::string_view(whole).substr(0, whole.size() * 3 / 4);
    EXPECT_THAT(MessageOf<DataLossError>([&] { DecodeJpeg(most); }), HasSubstr("cut off"));
    const Tensor part = DecodeJpeg(most, {.try_recover_truncated = true});
    ASSERT_EQ(part.shape(), (Shape{128, 128, 3}));
    EXPECT_LE(LargestDifference(part.Slice(0, 8), DecodeJpeg(whole).Slice(0, 8)), progressive ? 60 : 0);
  }
}

TEST(ImagesTest, EveryCutOffFileIsAnError) {
  const std::string png = EncodePng(Slope(9, 9, 3)), jpeg = EncodeJpeg(Slope(9, 9, 3));
  for (size_t size = 0; size < png.size() - 12; ++size) {  // the last 12 bytes say only that it ends
    EXPECT_THROW(DecodePng(std::string_view(png).substr(0, size)), InvalidArgumentError) << size;
  }
  for (size_t size = 0; size < jpeg.size() - 2; ++size) {
    EXPECT_THROW(DecodeJpeg(std::string_view(jpeg).substr(0, size)), Error) << size;
  }
}

TEST(ImagesTest, DamagedFilesEndInAnErrorOrAnImage) {
  std::string png = EncodePng(Slope(9, 9, 3)), jpeg = EncodeJpeg(Slope(9, 9, 3));
  for (std::string* bytes : {&png, &jpeg}) {
    for (size_t i = 0; i < bytes->size() * 8; ++i) {
      (*bytes)[i / 8] = static_cast<char>((*bytes)[i / 8] ^ (1 << i % 8));
      try {
        EXPECT_GT(DecodeImage(*bytes).num_elements(), 0);
      } catch (const Error&) {
      }
      (*bytes)[i / 8] = static_cast<char>((*bytes)[i / 8] ^ (1 << i % 8));
    }
  }
}

TEST(ImagesTest, ASmallFileOfAnEnormousImageTakesNoMemory) {
  std::string png = EncodePng(Slope(1, 1, 3));
  png.replace(16, 8, std::string("\x00\x00\xc3\x50\x00\x00\xc3\x50", 8));  // columns and rows
  png.replace(29, 4, std::string("\xc4\xcd\xaa\x9d", 4));
  EXPECT_THAT(MessageOf<ResourceExhaustedError>([&] { DecodePng(png); }), HasSubstr("50000 rows"));
  std::string jpeg = EncodeJpeg(Slope(1, 1, 1));
  const size_t frame = jpeg.find("\xff\xc0");
  jpeg.replace(frame + 5, 4, "\xff\xdb\xff\xdb");
  EXPECT_THAT(MessageOf<ResourceExhaustedError>([&] { DecodeJpeg(jpeg); }), HasSubstr("65499 rows"));
}

TEST(ImagesTest, BadArgumentsAreNamed) {
  const std::string png = EncodePng(Slope(2, 2, 3)), jpeg = EncodeJpeg(Slope(2, 2, 3));
  const auto message = [](const auto& f) { return MessageOf<InvalidArgumentError>(f); };
  EXPECT_THAT(message([&] { DecodePng(png, 5); }), HasSubstr("got 5"));
  EXPECT_THAT(message([&] { DecodePng(jpeg); }), HasSubstr("libpng says"));
  EXPECT_THAT(message([&] { DecodeJpeg(png); }), HasSubstr("libjpeg says"));
  EXPECT_THAT(message([&] { DecodeJpeg(jpeg, {.channels = 2}); }), HasSubstr("got 2"));
  EXPECT_THAT(message([&] { DecodeJpeg(jpeg, {.ratio = 3}); }), HasSubstr("got 3"));
  EXPECT_THAT(message([&] { DecodeImage("GIF89a"); }), HasSubstr("GIF"));
  EXPECT_THAT(message([&] { DecodeImage("BMxx"); }), HasSubstr("BMP"));
  EXPECT_THAT(message([&] { DecodeImage("text"); }), HasSubstr("4 bytes"));
  EXPECT_THAT(message([&] { EncodeJpeg(Slope(2, 2, 2)); }), HasSubstr("got 2"));
  EXPECT_THAT(message([&] { EncodeJpeg(Slope(2, 2, 3), {.quality = 101}); }), HasSubstr("101"));
  EXPECT_THAT(message([&] { EncodeJpeg(Slope(2, 2, 3), {.y_density = 0}); }), HasSubstr("got 0"));
  EXPECT_THAT(message([&] { EncodePng(Slope(2, 2, 5)); }), HasSubstr("[2,2,5]"));
  EXPECT_THAT(message([&] { EncodePng(Slope(2, 2, 1), 10); }), HasSubstr("got 10"));
  EXPECT_THAT(message([&] { EncodePng(Tensor::Zeros(DType::kFloat32, Shape{2, 2, 1})); }), HasSubstr("float32"));
}

}  // namespace
}  // namespace cohort::images
