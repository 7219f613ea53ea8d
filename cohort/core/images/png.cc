// libpng reports an error by calling a function that must not return. Ours jumps back (setjmp). So the functions that
// call setjmp have no local objects with destructors, and errors are thrown outside of them.
#include "cohort/core/images/png.h"

#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/images/limits.h"
#include "cohort/core/str_cat.h"

namespace cohort::images {
namespace {

constexpr int kMostChannels = 4;
// Grey is this much of red and of green, and the rest of blue, as in JPEG files (ITU-R BT.601).
constexpr double kRedOfGrey = 0.299, kGreenOfGrey = 0.587;

// What libpng's functions for errors know. libpng jumps back by the buffer of its own structure.
struct Message {
  std::string text;
};

[[noreturn]] void KeepAndJump(png_structp png, png_const_charp text) {
  static_cast<Message*>(png_get_error_ptr(png))->text = text;
  png_longjmp(png, 1);
}

void IgnoreWarning(png_structp, png_const_charp) {}

class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : left_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &message_, KeepAndJump, IgnoreWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw ResourceExhaustedError("[images] libpng has no memory");
    }
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  Tensor Read(int channels) {
    if (!ReadHeader(channels)) ThrowError();
    const int64_t rows = png_get_image_height(png_, info_), columns = png_get_image_width(png_, info_);
    CheckSize("PNG", rows, columns, png_get_channels(png_, info_));
    Tensor image(DType::kUint8, Shape{rows, columns, png_get_channels(png_, info_)});
    if (!ReadRows(image.data<uint8_t>())) ThrowError();
    return image;
  }

 private:
  [[noreturn]] void ThrowError() const {
    throw InvalidArgumentError(StrCat("[images] expected a PNG file; libpng says: ", message_.text));
  }

  static void ReadBytes(png_structp png, png_bytep to, size_t size) {
    auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
    if (reader->left_.size() < size) png_error(png, "the file is cut off");
    std::memcpy(to, reader->left_.data(), size);
    reader->left_.remove_prefix(size);
  }

  bool ReadHeader(int channels) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, ReadBytes);
    png_read_info(png_, info_);
    const int colours = png_get_color_type(png_, info_);
    const bool has_opacity = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0 || (colours & PNG_COLOR_MASK_ALPHA) != 0;
    png_set_expand(png_);  // palettes to colours, few bits to 8, a transparent colour to opacity
    png_set_strip_16(png_);
    const bool is_grey = (colours & PNG_COLOR_MASK_COLOR) == 0;
    // One transparent colour of an image without a palette does not make a channel, as in TensorFlow.
    const bool keeps_opacity =
        (colours & PNG_COLOR_MASK_ALPHA) != 0 || (has_opacity && colours == PNG_COLOR_TYPE_PALETTE);
    const int wanted = channels != 0 ? channels : (is_grey ? 1 : 3) + (keeps_opacity ? 1 : 0);
    const bool wants_grey = wanted <= 2, wants_opacity = wanted % 2 == 0;
    if (is_grey && !wants_grey) png_set_gray_to_rgb(png_);
    if (!is_grey && wants_grey) png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, kRedOfGrey, kGreenOfGrey);
    if (has_opacity && !wants_opacity) png_set_strip_alpha(png_);
    if (!has_opacity && wants_opacity) png_set_add_alpha(png_, 0xff, PNG_FILLER_AFTER);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool ReadRows(uint8_t* to) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const size_t rows = png_get_image_height(png_, info_), row_size = png_get_rowbytes(png_, info_);
    for (int pass = 0; pass < passes_; ++pass) {
      for (size_t row = 0; row < rows; ++row) png_read_row(png_, to + row * row_size, nullptr);
    }
    png_read_end(png_, nullptr);
    return true;
  }

  std::string_view left_;  // the bytes that libpng has not taken yet
  Message message_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
};

class PngWriter {
 public:
  PngWriter() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &message_, KeepAndJump, IgnoreWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_write_struct(&png_, &info_);
      throw ResourceExhaustedError("[images] libpng has no memory");
    }
  }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }

  std::string Write(const Tensor& image, int compression) {
    if (!WriteRows(image, compression)) {
      throw InvalidArgumentError(
          StrCat("[images] cannot write an image of shape ", image.shape(), "; libpng says: ", message_.text));
    }
    return std::move(bytes_);
  }

 private:
  static void AppendBytes(png_structp png, png_bytep from, size_t size) {
    static_cast<PngWriter*>(png_get_io_ptr(png))->bytes_.append(reinterpret_cast<const char*>(from), size);
  }

  bool WriteRows(const Tensor& image, int compression) {
    constexpr int kColourTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                    PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const Shape& shape = image.shape();
    png_set_write_fn(png_, this, AppendBytes, nullptr);
    png_set_compression_level(png_, compression);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(shape.dim(1)), static_cast<png_uint_32>(shape.dim(0)), 8,
                 kColourTypes[shape.dim(2) - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    const auto row_size = static_cast<size_t>(shape.dim(1) * shape.dim(2));
    for (size_t row = 0; row < static_cast<size_t>(shape.dim(0)); ++row) {
      png_write_row(png_, image.data<uint8_t>() + row * row_size);
    }
    png_write_end(png_, nullptr);
    return true;
  }

  std::string bytes_;
  Message message_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

Tensor DecodePng(std::string_view bytes, int channels) {
  if (channels < 0 || channels > kMostChannels) {
    throw InvalidArgumentError(StrCat("[images] expected 0 to 4 channels of a PNG file; got ", channels));
  }
  return PngReader(bytes).Read(channels);
}

std::string EncodePng(const Tensor& image, int compression) {
  CheckImage("PNG", image, kMostChannels);
  if (compression < -1 || compression > 9) {
    throw InvalidArgumentError(StrCat("[images] expected a compression from -1 to 9; got ", compression));
  }
  return PngWriter().Write(image, compression);
}

}  // namespace cohort::images
