// Cases of ops that change the sizes of images or move their pixels. Resizing is linear in its images, so central
// differences are exact for any step, and the step is large.
#include <string>
#include <utility>

#include "cohort/ops/image.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

Tensor Images(const Shape& shape, DType dtype = DType::kFloat32, int seed = 1) {
  if (dtype == DType::kUint8) return AsType(Scatter(shape, 0, 255, seed), dtype);
  return AsType(Scatter(shape, -1, 1, seed), dtype);
}

OpCase Checked(OpCase op_case) {
  op_case.step = 0.25;
  op_case.tolerance = 1e-4;
  return op_case;
}

struct Resize {
  const char* label;
  Shape from, to;
  ops::ResizeOptions options = {};
};

using ResizeOp = Output (*)(Output images, const ops::IntList& size, const ops::ResizeOptions& options,
                            const NodeName& name);

OpCase::Build ResizeBy(ResizeOp op, const Resize& r) {
  return [op, r](Graph&, const Outputs& in) {
    return Outputs{op(in[0], {r.to.dim(1), r.to.dim(2)}, r.options, "resize")};
  };
}

OpCase::Build GradOf(const std::string& op, const ops::ResizeOptions& options) {
  return [op, options](Graph& graph, const Outputs& in) {
    return Outputs{graph.Op(op)
                       .Input(in[0])
                       .Input(in[1])
                       .Attr("align_corners", options.align_corners)
                       .Attr("half_pixel_centers", options.half_pixel_centers)
                       .Finish1()};
  };
}

void AddResize(std::vector<OpCase>& cases, const Resize& r) {
  const Tensor size =
      Tensor::Vector<int32_t>({static_cast<int32_t>(r.from.dim(1)), static_cast<int32_t>(r.from.dim(2))});
  cases.push_back(Checked({"ResizeBilinear", r.label, {Images(r.from)}, ResizeBy(ops::ResizeBilinear, r), {0}}));
  cases.push_back(Checked({"ResizeBilinearGrad",
                           r.label,
                           {Images(r.to), Images(r.from, DType::kFloat32, 2)},
                           GradOf("ResizeBilinearGrad", r.options),
                           {0}}));
  cases.push_back(
      Checked({"ResizeNearestNeighbor", r.label, {Images(r.from)}, ResizeBy(ops::ResizeNearestNeighbor, r), {0}}));
  cases.push_back(Checked({"ResizeNearestNeighborGrad",
                           r.label,
                           {Images(r.to), size},
                           GradOf("ResizeNearestNeighborGrad", r.options),
                           {0}}));
}

void AddResizeCases(std::vector<OpCase>& cases) {
  const ops::ResizeOptions corners = {.align_corners = true}, centers = {.half_pixel_centers = true};
  const Resize resizes[] = {
      {"larger", {2, 3, 4, 2}, {2, 7, 5, 2}},
      {"larger_corners", {2, 3, 4, 2}, {2, 7, 5, 2}, corners},
      {"larger_centers", {2, 3, 4, 2}, {2, 7, 5, 2}, centers},
      {"smaller", {1, 7, 8, 3}, {1, 3, 2, 3}},
      {"smaller_corners", {1, 7, 8, 3}, {1, 3, 2, 3}, corners},
      {"smaller_centers", {1, 7, 8, 3}, {1, 3, 2, 3}, centers},
      {"one_pixel", {1, 1, 5, 1}, {1, 4, 1, 1}, corners},
      {"same_size", {1, 3, 2, 2}, {1, 3, 2, 2}, centers},
      {"no_images", {0, 3, 2, 2}, {0, 4, 5, 2}, centers},
  };
  for (const Resize& r : resizes) AddResize(cases, r);

  const Resize& types = resizes[2];
  const Tensor size = Tensor::Vector<int32_t>({3, 4});
  for (const auto& [label, dtype] : {std::pair("uint8", DType::kUint8), std::pair("int32", DType::kInt32),
                                     std::pair("bfloat16", DType::kBfloat16), std::pair("float64", DType::kFloat64)}) {
    const Tensor images =
        dtype == DType::kInt32 ? AsType(Scatter(types.from, -90, 90), dtype) : Images(types.from, dtype);
    cases.push_back({"ResizeBilinear", label, {images}, ResizeBy(ops::ResizeBilinear, types)});
    cases.push_back({"ResizeNearestNeighbor", label, {images}, ResizeBy(ops::ResizeNearestNeighbor, types)});
    if (!IsFloating(dtype)) continue;
    cases.push_back(
        {"ResizeBilinearGrad", label, {Images(types.to), images}, GradOf("ResizeBilinearGrad", types.options)});
    cases.push_back({"ResizeNearestNeighborGrad",
                     label,
                     {Images(types.to, dtype), size},
                     GradOf("ResizeNearestNeighborGrad", types.options)});
  }
  // Large enough for several threads.
  AddResize(cases, {"many_pixels", {3, 40, 50, 3}, {3, 61, 33, 3}, centers});
}

void AddProjectiveCases(std::vector<OpCase>& cases) {
  // A turn with a shift, a change of size, and a view from the side, each beyond the edges of the image.
  const std::vector<float> transforms = {0.6f, -0.8f, 1.3f, 0.8f, 0.6f,  -2.1f, 0,     0,  //
                                         2.5f, 0.3f,  -6,   0.2f, -3.1f, 9.3f,  0,     0,  //
                                         0.9f, 0.2f,  -1,   0.1f, 1.2f,  0.4f,  0.05f, -0.03f};
  const Tensor three = AsType(AsFloat64(Tensor::Vector(transforms)), DType::kFloat32).Reshaped(Shape{3, 8});
  const auto transform = [](const ops::ProjectiveTransformOptions& options, const ops::IntList& size) {
    return [options, size](Graph&, const Outputs& in) {
      return Outputs{ops::ImageProjectiveTransformV3(in[0], in[1], size, 0.5f, options)};
    };
  };
  const auto gradient = [](const ops::ProjectiveTransformOptions& options, const ops::IntList& size) {
    return [options, size](Graph& graph, const Outputs& in) {
      return Outputs{graph.Op("ImageProjectiveTransformV3Grad")
                         .Input(in[0])
                         .Input(in[1])
                         .Input(size.In(graph))
                         .Attr("interpolation", options.interpolation)
                         .Attr("fill_mode", options.fill_mode)
                         .Finish1()};
    };
  };
  const std::string op = "ImageProjectiveTransformV3";
  for (const char* interpolation : {"NEAREST", "BILINEAR"}) {
    for (const char* fill_mode : {"CONSTANT", "REFLECT", "WRAP", "NEAREST"}) {
      const std::string label = std::string(interpolation) + "_" + fill_mode;
      const ops::ProjectiveTransformOptions options = {interpolation, fill_mode};
      cases.push_back(Checked({op, label, {Images({3, 5, 6, 2}), three}, transform(options, {4, 7}), {0}}));
      cases.push_back(Checked({op + "Grad", label, {Images({3, 4, 7, 2}), three}, gradient(options, {5, 6}), {0}}));
    }
  }
  const Tensor one = Tensor::Vector<float>({1.2f, 0.1f, -1.6f, -0.2f, 0.8f, 0.7f, 0, 0}).Reshaped(Shape{1, 8});
  cases.push_back({op, "one_transform", {Images({2, 3, 4, 1}), one}, transform({.fill_mode = "REFLECT"}, {6, 3})});
  cases.push_back({op, "uint8", {Images({2, 3, 4, 3}, DType::kUint8), one}, transform({.fill_mode = "WRAP"}, {3, 4})});
  cases.push_back({op, "bfloat16", {Images({2, 3, 4, 3}, DType::kBfloat16), one}, transform({}, {3, 4})});
  cases.push_back({op, "float64", {Images({2, 3, 4, 3}, DType::kFloat64), one}, transform({}, {3, 4})});
  for (const DType dtype : {DType::kBfloat16, DType::kFloat64}) {
    cases.push_back({op + "Grad",
                     dtype == DType::kFloat64 ? "float64" : "bfloat16",
                     {Images({2, 3, 4, 3}, dtype), one},
                     gradient({.fill_mode = "REFLECT"}, {3, 4})});
  }
  cases.push_back({op + "Grad", "no_images", {Images({0, 3, 4, 3}), one}, gradient({}, {3, 4})});
  cases.push_back({op, "one_pixel", {Images({1, 1, 1, 2}), one}, transform({.fill_mode = "REFLECT"}, {2, 2})});
  cases.push_back({op, "no_images", {Images({0, 3, 4, 3}), one}, transform({}, {3, 4})});
  const Tensor zero_k = Tensor::Vector<float>({1, 0, 0, 0, 1, 0, -0.5f, 0}).Reshaped(Shape{1, 8});
  cases.push_back({op, "horizon", {Images({1, 3, 5, 1}), zero_k}, transform({.fill_mode = "NEAREST"}, {3, 5})});
}

}  // namespace

void AddImageCases(std::vector<OpCase>& cases) {
  AddResizeCases(cases);
  AddProjectiveCases(cases);
  // TensorFlow has no such op.
  for (OpCase& op_case : cases) op_case.compare_values &= op_case.op != "ImageProjectiveTransformV3Grad";
}

}  // namespace cohort::testing
