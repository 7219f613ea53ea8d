#include "cohort/ops/image_files.h"

#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

constexpr const char* kFromBytes = "the image is read from bytes";

std::vector<Shape> BytesShape(ShapeContext& c) {
  c.WithRank(0, 0);
  return {Shape()};
}

std::vector<Shape> DecodedShape(ShapeContext& c) {
  c.WithRank(0, 0);
  const auto channels = c.attr<int64_t>("channels");
  if (channels < 0 || channels > 4 || channels == 2) {
    throw InvalidArgumentError(StrCat("expected 0, 1, 3 or 4 channels; got ", channels));
  }
  return {Shape{-1, -1, channels == 0 ? -1 : channels}};
}

std::vector<Shape> EncodedShape(ShapeContext& c) {
  c.WithRank(0, 3);
  return {Shape()};
}

OpDef DecodeOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("contents: string")
      .Output("image: dtype")
      .Attr("channels: int = 0")
      .ShapeRule(DecodedShape)
      .DataDependentShape()
      .NotDifferentiable(kFromBytes)
      .Doc(doc);
}

}  // namespace

Output ReadFile(Output filename, const NodeName& name) { return Op("ReadFile", {filename}, name).Finish1(); }

Output DecodeImage(Output contents, int channels, const NodeName& name) {
  return Op("DecodeImage", {contents}, name).Attr("channels", int64_t{channels}).Finish1();
}
Output DecodePng(Output contents, int channels, const NodeName& name) {
  return Op("DecodePng", {contents}, name).Attr("channels", int64_t{channels}).Finish1();
}
Output DecodeJpeg(Output contents, const images::JpegReadOptions& options, const NodeName& name) {
  return Op("DecodeJpeg", {contents}, name)
      .Attr("channels", int64_t{options.channels})
      .Attr("ratio", int64_t{options.ratio})
      .Attr("fancy_upscaling", options.fancy_upscaling)
      .Attr("try_recover_truncated", options.try_recover_truncated)
      .Attr("dct_method", options.dct == images::JpegDct::kFast ? "INTEGER_FAST" : "INTEGER_ACCURATE")
      .Finish1();
}

Output EncodeJpeg(Output image, const images::JpegWriteOptions& options, const NodeName& name) {
  return Op("EncodeJpeg", {image}, name)
      .Attr("quality", int64_t{options.quality})
      .Attr("progressive", options.progressive)
      .Attr("optimize_size", options.optimize_size)
      .Attr("chroma_downsampling", options.chroma_downsampling)
      .Attr("density_unit", options.density_in_inches ? "in" : "cm")
      .Attr("x_density", int64_t{options.x_density})
      .Attr("y_density", int64_t{options.y_density})
      .Finish1();
}
Output EncodePng(Output image, int compression, const NodeName& name) {
  return Op("EncodePng", {image}, name).Attr("compression", int64_t{compression}).Finish1();
}

}  // namespace cohort::ops

namespace cohort {

void RegisterImageFileOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("ReadFile")
                        .Input("filename: string")
                        .Output("contents: string")
                        .ShapeRule(BytesShape)
                        .Stateful()
                        .NotDifferentiable(kFromBytes)
                        .Doc("The bytes of a file."));
  registry.Register(DecodeOp("DecodeImage", "The image in the bytes of a JPEG or PNG file; float32 is between 0 and 1.")
                        .Attr("dtype: {uint8, float32} = DT_UINT8")
                        .Attr("expand_animations: bool = true"));
  registry.Register(DecodeOp("DecodePng", "The image in the bytes of a PNG file.").Attr("dtype: {uint8} = DT_UINT8"));
  registry.Register(OpDef("DecodeJpeg")
                        .Input("contents: string")
                        .Output("image: uint8")
                        .Attr("channels: int = 0")
                        .Attr("ratio: int = 1")
                        .Attr("fancy_upscaling: bool = true")
                        .Attr("try_recover_truncated: bool = false")
                        .Attr("acceptable_fraction: float = 1.0")
                        .Attr("dct_method: string = ''")
                        .ShapeRule(DecodedShape)
                        .DataDependentShape()
                        .NotDifferentiable(kFromBytes)
                        .Doc("The image in the bytes of a JPEG file."));
  registry.Register(OpDef("EncodeJpeg")
                        .Input("image: uint8")
                        .Output("contents: string")
                        .Attr("format: {'', 'grayscale', 'rgb'} = ''")
                        .Attr("quality: int = 95")
                        .Attr("progressive: bool = false")
                        .Attr("optimize_size: bool = false")
                        .Attr("chroma_downsampling: bool = true")
                        .Attr("density_unit: {'in', 'cm'} = 'in'")
                        .Attr("x_density: int = 300")
                        .Attr("y_density: int = 300")
                        .Attr("xmp_metadata: string = ''")
                        .ShapeRule(EncodedShape)
                        .NotDifferentiable(kFromBytes)
                        .Doc("The bytes of a JPEG file with the image."));
  registry.Register(OpDef("EncodePng")
                        .Input("image: T")
                        .Output("contents: string")
                        .Attr("compression: int = -1")
                        .Attr("T: {uint8} = DT_UINT8")
                        .ShapeRule(EncodedShape)
                        .NotDifferentiable(kFromBytes)
                        .Doc("The bytes of a PNG file with the image."));
}

}  // namespace cohort
