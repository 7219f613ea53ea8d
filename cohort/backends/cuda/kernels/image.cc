// Images of other sizes, their gradients, and images whose pixels are moved.
#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/image.cu.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/ops/image_geometry.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

class ResizeBase : public OpKernel {
 protected:
  explicit ResizeBase(const KernelConstruction& c)
      : type_(ElementTypeOf(c.attr<DType>("T"))),
        options_{c.attr<bool>("align_corners"), c.attr<bool>("half_pixel_centers")} {
    ops::CheckResizeOptions(options_);
  }

  ResizeSizes SizesOf(const Shape& in, const Shape& out) const {
    ResizeSizes s;
    s.batch = in.dim(0);
    s.channels = in.dim(3);
    s.align_corners = options_.align_corners;
    s.half_pixel_centers = options_.half_pixel_centers;
    for (int axis = 0; axis < 2; ++axis) {
      s.in[axis] = in.dim(axis + 1);
      s.out[axis] = out.dim(axis + 1);
      s.scale[axis] = ops::ResizeScale(s.in[axis], s.out[axis], options_.align_corners);
    }
    return s;
  }

  ElementType type() const { return type_; }

 private:
  const ElementType type_;
  const ops::ResizeOptions options_;
};

template <bool is_bilinear>
class ResizeKernel final : public ResizeBase {
 public:
  explicit ResizeKernel(const KernelConstruction& c) : ResizeBase(c) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& images = ctx.input(0);
    Tensor& output = ctx.AllocateOutput(0, ops::ResizedShape(images.shape(), ctx.input(1)));
    if (output.num_elements() == 0) return;
    const ResizeSizes sizes = SizesOf(images.shape(), output.shape());
    if (is_bilinear) {
      LaunchResizeBilinear(call.driver(), call.stream(), type(), sizes, images.raw_data(),
                           static_cast<float*>(output.raw_data()));
    } else {
      LaunchResizeNearest(call.driver(), call.stream(), DTypeSize(images.dtype()), sizes, images.raw_data(),
                          output.raw_data());
    }
  }
};

class ResizeBilinearGradKernel final : public ResizeBase {
 public:
  explicit ResizeBilinearGradKernel(const KernelConstruction& c) : ResizeBase(c) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& grads = ctx.input(0);
    const Shape& images = ctx.input(1).shape();
    ops::CheckResizeGradient(grads.shape(), images);
    Tensor& output = ctx.AllocateOutput(0, images);
    if (output.num_elements() == 0) return;
    LaunchResizeBilinearGradient(call.driver(), call.stream(), type(), SizesOf(images, grads.shape()),
                                 static_cast<const float*>(grads.raw_data()), output.raw_data());
  }
};

class ResizeNearestGradKernel final : public ResizeBase {
 public:
  explicit ResizeNearestGradKernel(const KernelConstruction& c) : ResizeBase(c) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& grads = ctx.input(0);
    Tensor& output = ctx.AllocateOutput(0, ops::ResizedShape(grads.shape(), ctx.input(1)));
    if (output.num_elements() == 0) return;
    LaunchResizeNearestGradient(call.driver(), call.stream(), type(), SizesOf(output.shape(), grads.shape()),
                                grads.raw_data(), output.raw_data());
  }
};

FillMode FillModeOf(const std::string& name) {
  if (name == "REFLECT") return FillMode::kReflect;
  if (name == "WRAP") return FillMode::kWrap;
  return name == "NEAREST" ? FillMode::kNearest : FillMode::kConstant;
}

class ProjectiveTransformKernel final : public OpKernel {
 public:
  explicit ProjectiveTransformKernel(const KernelConstruction& c)
      : type_(ElementTypeOf(c.attr<DType>("dtype"))),
        nearest_(c.attr<std::string>("interpolation") == "NEAREST"),
        fill_mode_(FillModeOf(c.attr<std::string>("fill_mode"))) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& images = ctx.input(0);
    const Shape& shape = images.shape();
    const Shape& transforms = ctx.input(1).shape();
    ops::CheckResizedImages(shape);
    ops::CheckTransforms(shape, transforms);
    const std::vector<int64_t> size = ops::IntegerValues(ctx.input(2));
    ops::CheckImageSize(size, "output_shape");
    Tensor& output = ctx.AllocateOutput(0, Shape{shape.dim(0), size[0], size[1], shape.dim(3)});
    if (output.num_elements() == 0) return;
    ProjectiveArgs args;
    args.images = images.raw_data();
    args.transforms = static_cast<const float*>(ctx.input(1).raw_data());
    args.out = output.raw_data();
    args.batch = shape.dim(0);
    args.channels = shape.dim(3);
    for (int axis = 0; axis < 2; ++axis) {
      args.in[axis] = shape.dim(axis + 1);
      args.size[axis] = size[static_cast<size_t>(axis)];
    }
    args.one_transform = transforms.dim(0) == 1;
    args.nearest = nearest_;
    args.fill_mode = fill_mode_;
    args.fill = ctx.input(3).scalar<float>();
    LaunchProjectiveTransform(call.driver(), call.stream(), type_, args);
  }

 private:
  const ElementType type_;
  const bool nearest_;
  const FillMode fill_mode_;
};

}  // namespace

void RegisterImageKernels(KernelRegistry& registry) {
  registry.Register<ResizeKernel<true>>("ResizeBilinear", kGpu);
  registry.Register<ResizeBilinearGradKernel>("ResizeBilinearGrad", kGpu);
  registry.Register<ResizeKernel<false>>("ResizeNearestNeighbor", kGpu);
  registry.Register<ResizeNearestGradKernel>("ResizeNearestNeighborGrad", kGpu);
  registry.Register<ProjectiveTransformKernel>("ImageProjectiveTransformV3", kGpu);
}

}  // namespace cohort::cuda
