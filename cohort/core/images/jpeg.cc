// libjpeg reports an error by calling a function that must not return. Ours jumps back (setjmp). So the functions that
// call setjmp have no local objects with destructors, and errors are thrown outside of them.
#include "cohort/core/images/jpeg.h"

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/images/limits.h"
#include "cohort/core/str_cat.h"

namespace cohort::images {
namespace {

// The state that libjpeg's error functions change. `base` is first, because libjpeg knows only its address.
struct Errors {
  jpeg_error_mgr base = {};
  std::jmp_buf back = {};
  char message[JMSG_LENGTH_MAX] = {};
  bool cut_off = false;  // the bytes have ended before the image
};

[[noreturn]] void JumpBack(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->back, 1);
}

// Warnings are about damage that libjpeg can bridge. It goes on, as TensorFlow does.
void NoteWarning(j_common_ptr info, int level) {
  if (level >= 0) return;
  ++info->err->num_warnings;
  if (info->err->msg_code == JWRN_JPEG_EOF) reinterpret_cast<Errors*>(info->err)->cut_off = true;
}

void PrintNothing(j_common_ptr) {}

void Prepare(Errors* errors) {
  jpeg_std_error(&errors->base);
  errors->base.error_exit = JumpBack;
  errors->base.emit_message = NoteWarning;
  errors->base.output_message = PrintNothing;
}

constexpr int kColours = 3;
constexpr int kInks = 4;  // cyan, magenta, yellow and black
constexpr int kMostValue = 255;

class JpegReader {
 public:
  JpegReader(std::string_view bytes, const JpegReadOptions& options) : options_(options) {
    Prepare(&errors_);
    info_.err = &errors_.base;
    if (setjmp(errors_.back) == 0) {
      jpeg_create_decompress(&info_);
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    } else {
      failed_ = true;
    }
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&info_); }

  Tensor Read() {
    if (failed_ || !ReadHeader()) ThrowError();
    if (has_inks() && options_.channels == 1) {
      throw InvalidArgumentError(
          "[images] cannot read a JPEG file of four colours (CMYK) as grey; expected 3 channels");
    }
    const auto rows = static_cast<int64_t>(info_.output_height), columns = static_cast<int64_t>(info_.output_width);
    if (info_.output_components == 2 || info_.output_components > kInks) {
      throw InvalidArgumentError(
          StrCat("[images] expected a JPEG file of 1, 3 or 4 colours; got ", info_.output_components));
    }
    // A progressive file is decoded as a whole: libjpeg keeps all of it in memory, so its own size counts.
    CheckSize("JPEG", info_.image_height, info_.image_width, info_.num_components);
    const int64_t channels = has_inks() ? kColours : info_.output_components;
    CheckSize("JPEG", rows, columns, channels);
    Tensor image(DType::kUint8, Shape{rows, columns, channels});
    inks_.resize(has_inks() ? static_cast<size_t>(columns) * kInks : 0);
    if (!ReadRows(image.data<uint8_t>(), static_cast<size_t>(columns * channels))) ThrowError();
    if (errors_.cut_off && !options_.try_recover_truncated) {
      throw DataLossError(
          "[images] the JPEG file is cut off (with try_recover_truncated it is read as far as it goes)");
    }
    return image;
  }

 private:
  bool has_inks() const { return info_.out_color_space == JCS_CMYK; }

  [[noreturn]] void ThrowError() const {
    throw InvalidArgumentError(StrCat("[images] expected a JPEG file; libjpeg says: ", errors_.message));
  }

  bool ReadHeader() {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_read_header(&info_, TRUE);
    if (info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK) {
      info_.out_color_space = JCS_CMYK;
    } else if (options_.channels == 1) {
      info_.out_color_space = JCS_GRAYSCALE;
    } else if (options_.channels == kColours || info_.num_components == kColours) {
      info_.out_color_space = JCS_RGB;
    }
    info_.do_fancy_upsampling = static_cast<boolean>(options_.fancy_upscaling);
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(options_.ratio);
    info_.dct_method = options_.dct == JpegDct::kFast ? JDCT_IFAST : JDCT_ISLOW;
    jpeg_calc_output_dimensions(&info_);
    return true;
  }

  bool ReadRows(uint8_t* to, size_t row_size) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = has_inks() ? inks_.data() : to + info_.output_scanline * row_size;
      uint8_t* colours = to + info_.output_scanline * row_size;
      jpeg_read_scanlines(&info_, &row, 1);
      if (has_inks()) InksToColours(colours);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  // Files with inks by Adobe hold 255 minus the ink, which is what most of them are. Then a colour is ink x black /
  // 255.
  void InksToColours(uint8_t* to) const {
    for (size_t i = 0; i < inks_.size(); i += kInks) {
      const int black = info_.saw_Adobe_marker != 0 ? inks_[i + 3] : kMostValue - inks_[i + 3];
      for (size_t c = 0; c < kColours; ++c) {
        const int ink = info_.saw_Adobe_marker != 0 ? inks_[i + c] : kMostValue - inks_[i + c];
        *to++ = static_cast<uint8_t>(ink * black / kMostValue);
      }
    }
  }

  const JpegReadOptions options_;
  Errors errors_;
  jpeg_decompress_struct info_ = {};
  bool failed_ = false;
  std::vector<JSAMPLE> inks_;  // a row of a file with four colours
};

class JpegWriter {
 public:
  JpegWriter() {
    Prepare(&errors_);
    info_.err = &errors_.base;
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;
  ~JpegWriter() {
    jpeg_destroy_compress(&info_);
    std::free(bytes_);
  }

  std::string Write(const Tensor& image, const JpegWriteOptions& options) {
    if (!WriteRows(image, options)) {
      throw InvalidArgumentError(
          StrCat("[images] cannot write an image of shape ", image.shape(), "; libjpeg says: ", errors_.message));
    }
    return std::string(reinterpret_cast<const char*>(bytes_), size_);
  }

 private:
  bool WriteRows(const Tensor& image, const JpegWriteOptions& options) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &bytes_, &size_);
    info_.image_height = static_cast<JDIMENSION>(image.shape().dim(0));
    info_.image_width = static_cast<JDIMENSION>(image.shape().dim(1));
    info_.input_components = static_cast<int>(image.shape().dim(2));
    info_.in_color_space = info_.input_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, options.quality, TRUE);
    if (options.progressive) jpeg_simple_progression(&info_);
    info_.optimize_coding = static_cast<boolean>(options.optimize_size);
    if (!options.chroma_downsampling && info_.input_components == kColours) {
      info_.comp_info[0].h_samp_factor = 1;
      info_.comp_info[0].v_samp_factor = 1;
    }
    info_.density_unit = options.density_in_inches ? 1 : 2;
    info_.X_density = static_cast<UINT16>(options.x_density);
    info_.Y_density = static_cast<UINT16>(options.y_density);
    jpeg_start_compress(&info_, TRUE);
    const size_t row_size = static_cast<size_t>(info_.image_width) * static_cast<size_t>(info_.input_components);
    while (info_.next_scanline < info_.image_height) {
      auto* row =
          const_cast<JSAMPROW>(image.data<uint8_t>() + info_.next_scanline * row_size);  // libjpeg only reads it
      jpeg_write_scanlines(&info_, &row, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }

  Errors errors_;
  jpeg_compress_struct info_ = {};
  unsigned char* bytes_ = nullptr;
  unsigned long size_ = 0;  // NOLINT(google-runtime-int): libjpeg's type
};

}  // namespace

Tensor DecodeJpeg(std::string_view bytes, const JpegReadOptions& options) {
  if (options.channels != 0 && options.channels != 1 && options.channels != kColours) {
    throw InvalidArgumentError(StrCat("[images] expected 0, 1 or 3 channels of a JPEG file; got ", options.channels));
  }
  if (options.ratio != 1 && options.ratio != 2 && options.ratio != 4 && options.ratio != 8) {
    throw InvalidArgumentError(StrCat("[images] expected a ratio of 1, 2, 4 or 8; got ", options.ratio));
  }
  if (bytes.empty()) throw InvalidArgumentError("[images] expected a JPEG file; got no bytes");
  return JpegReader(bytes, options).Read();
}

std::string EncodeJpeg(const Tensor& image, const JpegWriteOptions& options) {
  CheckImage("JPEG", image, kColours);
  if (image.shape().dim(2) == 2) throw InvalidArgumentError("[images] expected 1 or 3 channels for a JPEG file; got 2");
  if (options.quality < 0 || options.quality > 100) {
    throw InvalidArgumentError(StrCat("[images] expected a quality from 0 to 100; got ", options.quality));
  }
  constexpr int kMostDensity = 65535;
  for (const int density : {options.x_density, options.y_density}) {
    if (density < 1 || density > kMostDensity) {
      throw InvalidArgumentError(StrCat("[images] expected densities from 1 to ", kMostDensity, "; got ", density));
    }
  }
  return JpegWriter().Write(image, options);
}

}  // namespace cohort::images
