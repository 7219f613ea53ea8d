#include "cohort/backends/cpu/kernels/batch_norm_call.h"

namespace cohort::cpu {
namespace {

using dnnl::memory;

memory::desc OurImage(const BatchNormSpec& s) { return ImageDesc(s.shape, s.dtype, s.order); }
memory::desc PrimitiveImage(const BatchNormSpec& s) { return ImageDesc(s.shape, PrimitiveDType(s.dtype), s.order); }

dnnl::batch_normalization_forward::primitive_desc ForwardDesc(const BatchNormSpec& s, dnnl::prop_kind kind) {
  auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  if (s.given_statistics) flags |= dnnl::normalization_flags::use_global_stats;
  return {dnnl::batch_normalization_forward::desc(kind, PrimitiveImage(s), s.epsilon, flags), UserScratchpad(),
          CpuEngine()};
}

OneDnnPort Same(int arg, const memory::desc& desc, bool is_output = false) { return {arg, desc, desc, is_output}; }

}  // namespace

OneDnnCall BatchNormCall(const BatchNormSpec& s) {
  const auto kind = s.given_statistics ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
  const auto desc = ForwardDesc(s, kind);
  const memory::desc channels = VectorDesc(s.shape.dim(3), DType::kFloat32);
  return {dnnl::batch_normalization_forward(desc),
          desc,
          {{DNNL_ARG_SRC, OurImage(s), desc.src_desc()},
           Same(DNNL_ARG_SCALE, channels),
           Same(DNNL_ARG_SHIFT, channels),
           Same(DNNL_ARG_MEAN, channels, !s.given_statistics),
           Same(DNNL_ARG_VARIANCE, channels, !s.given_statistics),
           {DNNL_ARG_DST, OurImage(s), desc.dst_desc(), true}}};
}

OneDnnCall BatchNormGradientCall(const BatchNormSpec& s) {
  auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  if (s.given_statistics) flags |= dnnl::normalization_flags::use_global_stats;
  const memory::desc ours = OurImage(s), image = PrimitiveImage(s);
  const dnnl::batch_normalization_backward::primitive_desc desc(
      dnnl::batch_normalization_backward::desc(dnnl::prop_kind::backward, image, image, s.epsilon, flags),
      UserScratchpad(), CpuEngine(), ForwardDesc(s, dnnl::prop_kind::forward_training));
  const memory::desc channels = VectorDesc(s.shape.dim(3), DType::kFloat32);
  return {dnnl::batch_normalization_backward(desc),
          desc,
          {{DNNL_ARG_DIFF_DST, ours, image},
           {DNNL_ARG_SRC, ours, image},
           Same(DNNL_ARG_SCALE, channels),
           Same(DNNL_ARG_SHIFT, channels),
           Same(DNNL_ARG_MEAN, channels),
           Same(DNNL_ARG_VARIANCE, channels),
           {DNNL_ARG_DIFF_SRC, ours, image, true},
           Same(DNNL_ARG_DIFF_SCALE, channels, true),
           Same(DNNL_ARG_DIFF_SHIFT, channels, true)}};
}

}  // namespace cohort::cpu
