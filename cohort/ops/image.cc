#include "cohort/ops/image.h"

#include <optional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/dims.h"
#include "cohort/ops/image_geometry.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace ops {
namespace {

Output WithResizeOptions(NodeBuilder builder, const ResizeOptions& options) {
  return std::move(builder)
      .Attr("align_corners", options.align_corners)
      .Attr("half_pixel_centers", options.half_pixel_centers)
      .Finish1();
}

}  // namespace

void CheckImageSize(const std::vector<int64_t>& size, const char* what) {
  if (size.size() == 2 && size[0] > 0 && size[1] > 0) return;
  throw InvalidArgumentError(
      StrCat("[ops/image] expected two numbers above 0 as the ", what, "; got [", StrJoin(size, ", "), "]"));
}

void CheckResizedImages(const Shape& images) {
  if (images.rank() == 4 && images.dim(1) != 0 && images.dim(2) != 0) return;
  throw InvalidArgumentError(
      StrCat("[ops/image] expected images [batch, rows, columns, channels] with rows and columns; got ", images));
}

void CheckTransforms(const Shape& images, const Shape& transforms) {
  const bool known = images.rank() == 4 && transforms.rank() == 2;
  const int64_t batch = known ? images.dim(0) : -1, rows = known ? transforms.dim(0) : -1;
  const bool fits = rows < 0 || rows == 1 || batch < 0 || rows == batch;
  if (known && fits && (transforms.dim(1) < 0 || transforms.dim(1) == 8)) return;
  throw InvalidArgumentError(StrCat("[ops/image] expected transforms [1, 8] or [batch, 8] for images [batch, rows, ",
                                    "columns, channels]; got ", transforms, " and ", images));
}

void CheckResizeOptions(const ResizeOptions& options) {
  if (!options.align_corners || !options.half_pixel_centers) return;
  throw InvalidArgumentError("[ops/image] expected at most one of align_corners and half_pixel_centers; got both");
}

void CheckResizeGradient(const Shape& grads, const Shape& images) {
  CheckResizedImages(grads);
  CheckResizedImages(images);
  const Shape expected{images.dim(0), grads.dim(1), grads.dim(2), images.dim(3)};
  if (grads == expected) return;
  throw InvalidArgumentError(StrCat("[ops/image] expected gradients of shape ", expected, "; got ", grads));
}

Shape ResizedShape(const Shape& images, const Tensor& size) {
  CheckResizedImages(images);
  const std::vector<int64_t> known = IntegerValues(size);
  CheckImageSize(known, "size");
  return Shape{images.dim(0), known[0], known[1], images.dim(3)};
}

float ResizeScale(int64_t in, int64_t out, bool align_corners) {
  const int64_t ends = align_corners && out > 1 ? 1 : 0;
  return static_cast<float>(in - ends) / static_cast<float>(out - ends);
}

Output ResizeBilinear(Output images, const IntList& size, const ResizeOptions& options, const NodeName& name) {
  return WithResizeOptions(Op("ResizeBilinear", {images, size.In(images.graph())}, name), options);
}
Output ResizeNearestNeighbor(Output images, const IntList& size, const ResizeOptions& options, const NodeName& name) {
  return WithResizeOptions(Op("ResizeNearestNeighbor", {images, size.In(images.graph())}, name), options);
}

Output ImageProjectiveTransformV3(Output images, Output transforms, const IntList& output_shape,
                                  const Operand& fill_value, const ProjectiveTransformOptions& options,
                                  const NodeName& name) {
  return Op("ImageProjectiveTransformV3", {images, transforms, output_shape.In(images.graph()), fill_value}, name)
      .Attr("interpolation", options.interpolation)
      .Attr("fill_mode", options.fill_mode)
      .Finish1();
}

}  // namespace ops

namespace {

// Returns [batch, rows, columns, channels] of the images at input 0, with the rows and columns that input `size` says.
Shape ImagesOfSize(ShapeContext& c, int size, const char* what) {
  const Shape images = c.WithRank(0, 4);
  if (const auto known = ops::KnownIntegers(c, size)) ops::CheckImageSize(*known, what);
  const Shape rows_columns = Shape::UnknownDims(2).MergedWith(c.input_as_shape(size));
  return Shape{images.dim(0), rows_columns.dim(0), rows_columns.dim(1), images.dim(3)};
}

ops::ResizeOptions OptionsOf(const GradientContext& c) {
  return {c.attr<bool>("align_corners"), c.attr<bool>("half_pixel_centers")};
}

std::vector<Shape> ResizeShape(ShapeContext& c) {
  ops::CheckResizeOptions({c.attr<bool>("align_corners"), c.attr<bool>("half_pixel_centers")});
  ops::CheckResizedImages(c.WithRank(0, 4));
  return {ImagesOfSize(c, 1, "size")};
}

std::vector<Shape> BilinearGradShape(ShapeContext& c) {
  ops::CheckResizeOptions({c.attr<bool>("align_corners"), c.attr<bool>("half_pixel_centers")});
  const Shape grads = c.WithRank(0, 4), images = c.WithRank(1, 4);
  ops::CheckResizedImages(grads);
  ops::CheckResizedImages(images);
  const Shape ends = Shape{grads.dim(0), grads.dim(3)}.MergedWith(Shape{images.dim(0), images.dim(3)});
  return {Shape{ends.dim(0), images.dim(1), images.dim(2), ends.dim(1)}};
}

// Returns the rows and columns of images.
Output SizeOf(const Output& images) { return ops::DimValues(images, 1, 3); }

OpDef&& WithResizeAttrs(OpDef&& def) {
  return std::move(std::move(def).Attr("align_corners: bool = false").Attr("half_pixel_centers: bool = false"));
}

void RegisterBilinear(OpRegistry& registry) {
  registry.Register(WithResizeAttrs(OpDef("ResizeBilinear")
                                        .Input("images: T")
                                        .HostInput("size: int32")
                                        .Output("resized_images: float32")
                                        .Attr("T: {uint8, int32, int64, float32, float64, bfloat16}"))
                        .ShapeRule(ResizeShape)
                        .Gradient([](GradientContext& c) {
                          if (!IsFloating(c.input(0).dtype())) return;
                          const auto options = OptionsOf(c);
                          c.SetInput(0, ops::Op("ResizeBilinearGrad", {c.grad(), c.input(0)})
                                            .Attr("align_corners", options.align_corners)
                                            .Attr("half_pixel_centers", options.half_pixel_centers)
                                            .Finish1());
                        })
                        .Doc("Images of another size, interpolated linearly."));
  registry.Register(
      WithResizeAttrs(OpDef("ResizeBilinearGrad")
                          .Input("grads: float32")
                          .Input("original_image: T")
                          .Output("output: T")
                          .Attr("T: {float32, float64, bfloat16}"))
          .ShapeRule(BilinearGradShape)
          .Gradient([](GradientContext& c) {
            c.SetInput(0, ops::ResizeBilinear(c.grad(), SizeOf(c.input(0)), OptionsOf(c)));
          })
          .Doc("Gradient of ResizeBilinear by images of the shape of original_image, whose elements are not read."));
}

void RegisterNearest(OpRegistry& registry) {
  registry.Register(WithResizeAttrs(OpDef("ResizeNearestNeighbor")
                                        .Input("images: T")
                                        .HostInput("size: int32")
                                        .Output("resized_images: T")
                                        .Attr("T: {uint8, int32, int64, float32, float64, bfloat16}"))
                        .ShapeRule(ResizeShape)
                        .Gradient([](GradientContext& c) {
                          if (!IsFloating(c.input(0).dtype())) return;
                          const auto options = OptionsOf(c);
                          c.SetInput(0, ops::Op("ResizeNearestNeighborGrad", {c.grad(), SizeOf(c.input(0))})
                                            .Attr("align_corners", options.align_corners)
                                            .Attr("half_pixel_centers", options.half_pixel_centers)
                                            .Finish1());
                        })
                        .Doc("Images of another size, each pixel one of the image's."));
  registry.Register(WithResizeAttrs(OpDef("ResizeNearestNeighborGrad")
                                        .Input("grads: T")
                                        .HostInput("size: int32")
                                        .Output("output: T")
                                        .Attr("T: {float32, float64, bfloat16}"))
                        .ShapeRule(ResizeShape)
                        .Gradient([](GradientContext& c) {
                          c.SetInput(0, ops::ResizeNearestNeighbor(c.grad(), SizeOf(c.input(0)), OptionsOf(c)));
                        })
                        .Doc("Gradient of ResizeNearestNeighbor by images of the rows and columns `size`."));
}

std::vector<Shape> ProjectiveShape(ShapeContext& c) {
  const Shape transforms = c.WithRank(1, 2).MergedWith(Shape{-1, 8});
  const Shape images = c.WithRank(0, 4);
  ops::CheckResizedImages(images);
  ops::CheckTransforms(images, transforms);
  c.WithRank(3, 0);
  return {ImagesOfSize(c, 2, "output_shape")};
}

std::vector<Shape> ProjectiveGradShape(ShapeContext& c) {
  const Shape grads = c.WithRank(0, 4);
  ops::CheckResizedImages(grads);
  ops::CheckTransforms(grads, c.WithRank(1, 2));
  return {ImagesOfSize(c, 2, "size")};
}

void RegisterProjective(OpRegistry& registry) {
  registry.Register(OpDef("ImageProjectiveTransformV3")
                        .Input("images: dtype")
                        .Input("transforms: float32")
                        .HostInput("output_shape: int32")
                        .HostInput("fill_value: float32")
                        .Output("transformed_images: dtype")
                        .Attr("dtype: {uint8, float32, float64, bfloat16}")
                        .Attr("interpolation: {'NEAREST', 'BILINEAR'}")
                        .Attr("fill_mode: {'CONSTANT', 'REFLECT', 'WRAP', 'NEAREST'} = 'CONSTANT'")
                        .ShapeRule(ProjectiveShape)
                        .Gradient([](GradientContext& c) {
                          if (!IsFloating(c.input(0).dtype())) return;
                          const std::vector<ops::Operand> inputs = {c.grad(), c.input(1), SizeOf(c.input(0))};
                          c.SetInput(0, ops::Op("ImageProjectiveTransformV3Grad", inputs)
                                            .Attr("interpolation", c.attr<std::string>("interpolation"))
                                            .Attr("fill_mode", c.attr<std::string>("fill_mode"))
                                            .Finish1());
                        })
                        .Doc("Images whose pixels are taken from the places that a projective transform says."));
  registry.Register(OpDef("ImageProjectiveTransformV3Grad")
                        .Input("grads: dtype")
                        .Input("transforms: float32")
                        .HostInput("size: int32")
                        .Output("output: dtype")
                        .Attr("dtype: {float32, float64, bfloat16}")
                        .Attr("interpolation: {'NEAREST', 'BILINEAR'}")
                        .Attr("fill_mode: {'CONSTANT', 'REFLECT', 'WRAP', 'NEAREST'} = 'CONSTANT'")
                        .ShapeRule(ProjectiveGradShape)
                        .Gradient([](GradientContext& c) {
                          c.SetInput(0, ops::ImageProjectiveTransformV3(
                                            c.grad(), c.input(1), SizeOf(c.input(0)), 0.0f,
                                            {c.attr<std::string>("interpolation"), c.attr<std::string>("fill_mode")}));
                        })
                        .Doc("Gradient of ImageProjectiveTransformV3 by images of the rows and columns `size`."));
}

}  // namespace

void RegisterImageOps(OpRegistry& registry) {
  RegisterBilinear(registry);
  RegisterNearest(registry);
  RegisterProjective(registry);
}

}  // namespace cohort
