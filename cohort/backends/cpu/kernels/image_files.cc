// Kernels of ops/image_files.h.
#include "cohort/ops/image_files.h"

#include <string>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/images/image_file.h"
#include "cohort/core/images/jpeg.h"
#include "cohort/core/images/png.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/files/file_access.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

// The product of a pixel and this number is between 0 and 1.
constexpr float kUnit = 1.0f / 255;

// Returns an attribute whose range is checked later. In a graph of unknown origin it may be any number.
int IntAttr(const KernelConstruction& c, const char* name) {
  const auto value = c.attr<int64_t>(name);
  if (value != static_cast<int>(value)) throw InvalidArgumentError(StrCat(name, " is out of range: ", value));
  return static_cast<int>(value);
}

void ReadFileKernel(KernelContext& ctx) {
  const std::string& path = ctx.input(0).scalar<std::string>();
  FileAccess::CheckPath(ctx.device().resources(), ctx.step().origin, path);
  *ctx.AllocateOutput(0, Shape()).data<std::string>() = ReadFile(path);
}

void DecodeImageKernel(KernelContext& ctx) {
  const Node& node = ctx.node();
  const Tensor image =
      images::DecodeImage(ctx.input(0).scalar<std::string>(), static_cast<int>(node.attr<int64_t>("channels")));
  if (node.output_dtype(0) == DType::kUint8) return ctx.SetOutput(0, image);
  Tensor& out = ctx.AllocateOutput(0, image.shape());
  const uint8_t* from = image.data<uint8_t>();
  float* to = out.data<float>();
  for (int64_t i = 0; i < image.num_elements(); ++i) to[i] = static_cast<float>(from[i]) * kUnit;
}

class DecodeJpegKernel final : public OpKernel {
 public:
  explicit DecodeJpegKernel(const KernelConstruction& c)
      : options_{.channels = IntAttr(c, "channels"),
                 .ratio = IntAttr(c, "ratio"),
                 .fancy_upscaling = c.attr<bool>("fancy_upscaling"),
                 // As in TensorFlow, acceptable_fraction changes nothing: libjpeg makes up the rows that are missing.
                 .try_recover_truncated = c.attr<bool>("try_recover_truncated")} {
    const std::string& dct = c.attr<std::string>("dct_method");
    if (dct == "INTEGER_ACCURATE") {
      options_.dct = images::JpegDct::kAccurate;
    } else if (!dct.empty() && dct != "INTEGER_FAST") {
      throw InvalidArgumentError(
          StrCat("expected a dct_method \"\", \"INTEGER_FAST\" or \"INTEGER_ACCURATE\"; got \"", dct, "\""));
    }
  }
  void Compute(KernelContext& ctx) override {
    const std::string& bytes = ctx.input(0).scalar<std::string>();
    if (images::FormatOf(bytes) != images::Format::kPng) return ctx.SetOutput(0, images::DecodeJpeg(bytes, options_));
    if (options_.ratio != 1) {
      throw InvalidArgumentError(StrCat("expected a JPEG file for a ratio of ", options_.ratio, "; got a PNG file"));
    }
    ctx.SetOutput(0, images::DecodePng(bytes, options_.channels));
  }

 private:
  images::JpegReadOptions options_;
};

class EncodeJpegKernel final : public OpKernel {
 public:
  explicit EncodeJpegKernel(const KernelConstruction& c)
      : format_(c.attr<std::string>("format")),
        options_{.quality = IntAttr(c, "quality"),
                 .progressive = c.attr<bool>("progressive"),
                 .optimize_size = c.attr<bool>("optimize_size"),
                 .chroma_downsampling = c.attr<bool>("chroma_downsampling"),
                 .density_in_inches = c.attr<std::string>("density_unit") == "in",
                 .x_density = IntAttr(c, "x_density"),
                 .y_density = IntAttr(c, "y_density")} {
    if (!c.attr<std::string>("xmp_metadata").empty()) {
      throw UnimplementedError("EncodeJpeg writes no xmp_metadata; leave it empty");
    }
  }
  void Compute(KernelContext& ctx) override {
    const Tensor& image = ctx.input(0);
    const int64_t channels = image.shape().dim(2), wanted = format_ == "grayscale" ? 1 : 3;
    if (!format_.empty() && channels != wanted) {
      throw InvalidArgumentError(
          StrCat("expected ", wanted, " channels for the format \"", format_, "\"; got ", channels));
    }
    *ctx.AllocateOutput(0, Shape()).data<std::string>() = images::EncodeJpeg(image, options_);
  }

 private:
  const std::string format_;
  const images::JpegWriteOptions options_;
};

class EncodePngKernel final : public OpKernel {
 public:
  explicit EncodePngKernel(const KernelConstruction& c) : compression_(IntAttr(c, "compression")) {}
  void Compute(KernelContext& ctx) override {
    *ctx.AllocateOutput(0, Shape()).data<std::string>() = images::EncodePng(ctx.input(0), compression_);
  }

 private:
  const int compression_;
};

}  // namespace

void RegisterImageFileKernels(KernelRegistry& registry) {
  registry.RegisterFn("ReadFile", "CPU", ReadFileKernel);
  registry.RegisterFn("DecodeImage", "CPU", DecodeImageKernel);
  registry.RegisterFn("DecodePng", "CPU", DecodeImageKernel);
  registry.Register<DecodeJpegKernel>("DecodeJpeg", "CPU");
  registry.Register<EncodeJpegKernel>("EncodeJpeg", "CPU");
  registry.Register<EncodePngKernel>("EncodePng", "CPU");
}

}  // namespace cohort
