#include "cohort/backends/cpu/kernels/pooling_call.h"

namespace cohort::cpu {
namespace {

using dnnl::memory;

dnnl::algorithm Algorithm(const PoolSpec& s) {
  return s.is_max ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
}

struct Places {
  memory::dims size;
  memory::dims strides;
  memory::dims before;
  memory::dims after;

  explicit Places(const PoolSpec& s) {
    for (int axis = 0; axis < 2; ++axis) {
      const auto i = static_cast<size_t>(axis);
      const ops::WindowExtent extent = ops::PlaceWindow(s.window, axis, s.input.dim(axis + 1), s.window.size[i]);
      size.push_back(s.window.size[i]);
      strides.push_back(s.window.strides[i]);
      before.push_back(extent.before);
      after.push_back(extent.after);
    }
  }
};

dnnl::pooling_forward::primitive_desc ForwardDesc(const PoolSpec& s) {
  const Places p(s);
  const auto kind = s.places ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const DType dtype = PrimitiveDType(s.dtype);
  return {dnnl::pooling_forward::desc(kind, Algorithm(s), ImageDesc(s.input, dtype, s.order),
                                      ImageDesc(s.output, dtype, s.order), p.strides, p.size, p.before, p.after),
          UserScratchpad(), CpuEngine()};
}

}  // namespace

OneDnnCall PoolCall(const PoolSpec& s) {
  const auto desc = ForwardDesc(s);
  std::vector<OneDnnPort> ports = {{DNNL_ARG_SRC, ImageDesc(s.input, s.dtype, s.order), desc.src_desc()},
                                   {DNNL_ARG_DST, ImageDesc(s.output, s.dtype, s.order), desc.dst_desc(), true}};
  if (s.places) ports.push_back({DNNL_ARG_WORKSPACE, desc.workspace_desc(), desc.workspace_desc(), true});
  return {dnnl::pooling_forward(desc), desc, std::move(ports)};
}

OneDnnCall PoolGradientCall(const PoolSpec& s) {
  const Places p(s);
  PoolSpec training = s;
  training.places = true;
  const DType dtype = PrimitiveDType(s.dtype);
  const dnnl::pooling_backward::primitive_desc desc(
      dnnl::pooling_backward::desc(Algorithm(s), ImageDesc(s.input, dtype, s.order),
                                   ImageDesc(s.output, dtype, s.order), p.strides, p.size, p.before, p.after),
      UserScratchpad(), CpuEngine(), ForwardDesc(training));
  std::vector<OneDnnPort> ports = {
      {DNNL_ARG_DIFF_DST, ImageDesc(s.output, s.dtype, s.order), desc.diff_dst_desc()},
      {DNNL_ARG_DIFF_SRC, ImageDesc(s.input, s.dtype, s.order), desc.diff_src_desc(), true}};
  if (s.places) ports.push_back({DNNL_ARG_WORKSPACE, desc.workspace_desc(), desc.workspace_desc()});
  return {dnnl::pooling_backward(desc), desc, std::move(ports)};
}

}  // namespace cohort::cpu
