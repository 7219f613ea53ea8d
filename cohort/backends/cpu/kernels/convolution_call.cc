#include "cohort/backends/cpu/kernels/convolution_call.h"

#include <array>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cpu {
namespace {

using dnnl::memory;

// The only activation that oneDNN can apply to a convolution's result so that a NaN can still be seen: it becomes
// infinite. Elu makes a large number of it, and other activations a small one.
constexpr const char* kSelu = "Selu";
constexpr float kSeluScale = 1.0507009873554805f;
constexpr float kSeluAlpha = 1.6732632423543772f;

// oneDNN's description of a convolution.
struct Description {
  memory::desc input;
  memory::desc filter;
  memory::desc bias;  // empty if there is none
  memory::desc output;
  memory::dims strides;
  memory::dims dilations;  // elements left out between two of the filter
  memory::dims before;
  memory::dims after;
};

// [groups,] out / groups, in / groups, rows, columns.
memory::dims FilterDims(const ConvolutionSpec& s) {
  const int64_t groups = s.input.dim(3) / s.filter.dim(2);
  memory::dims dims = {s.filter.dim(3) / groups, s.filter.dim(2), s.filter.dim(0), s.filter.dim(1)};
  if (groups > 1) dims.insert(dims.begin(), groups);
  return dims;
}

// The filter is [rows, columns, in / groups, out]; out is [groups, out / groups].
memory::desc FilterDesc(const ConvolutionSpec& s) {
  const memory::dims dims = FilterDims(s);
  const int64_t out = s.filter.dim(3);
  const int64_t in_out = s.filter.dim(2) * out;
  memory::dims strides = {1, out, in_out * s.filter.dim(1), in_out};
  if (dims.size() == 5) strides.insert(strides.begin(), dims[1]);
  return {dims, OneDnnType(s.dtype), strides};
}

Description Describe(const ConvolutionSpec& s, bool any_order) {
  Description d;
  // Beside a blocked output an input of one channel is described as oneDNN's kernels expect it.
  const bool any_input = any_order || (s.input.dim(3) == 1 && s.output_order == Order::kBlocked);
  d.input = any_input ? AnyImageDesc(s.input, s.dtype) : ImageDesc(s.input, s.dtype, s.input_order);
  d.output = any_order ? AnyImageDesc(s.output, s.dtype) : ImageDesc(s.output, s.dtype, s.output_order);
  d.filter = memory::desc(FilterDims(s), OneDnnType(s.dtype), memory::format_tag::any);
  if (s.bias) d.bias = VectorDesc(s.output.dim(3), s.dtype);
  for (int axis = 0; axis < 2; ++axis) {
    const ops::WindowExtent extent = ops::PlaceWindow(s.window, axis, s.input.dim(axis + 1), s.filter.dim(axis));
    d.strides.push_back(s.window.strides[static_cast<size_t>(axis)]);
    d.dilations.push_back(s.window.dilations[static_cast<size_t>(axis)] - 1);
    d.before.push_back(extent.before);
    d.after.push_back(extent.after);
  }
  return d;
}

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc ForwardDesc(const Description& d, const std::string& activation) {
  dnnl::primitive_attr attr = UserScratchpad();
  if (!activation.empty()) {
    if (!CanEndIn(activation)) {
      throw InvalidArgumentError(StrCat("[backends/cpu] a convolution cannot end in '", activation, "'"));
    }
    dnnl::post_ops ops;
    ops.append_eltwise(kSeluScale, dnnl::algorithm::eltwise_elu, kSeluAlpha, 0.0f);
    attr.set_post_ops(ops);
  }
  return {dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, kAlgorithm, d.input, d.filter, d.bias,
                                          d.output, d.strides, d.dilations, d.before, d.after),
          attr, CpuEngine()};
}

dnnl::convolution_backward_data::primitive_desc InputGradientDesc(const Description& d) {
  Description hint = d;
  hint.bias = {};
  return {dnnl::convolution_backward_data::desc(kAlgorithm, d.input, d.filter, d.output, d.strides, d.dilations,
                                                d.before, d.after),
          UserScratchpad(), CpuEngine(), ForwardDesc(hint, "")};
}

dnnl::convolution_backward_weights::primitive_desc FilterGradientDesc(const Description& d) {
  return {dnnl::convolution_backward_weights::desc(kAlgorithm, d.input, d.filter, d.bias, d.output, d.strides,
                                                   d.dilations, d.before, d.after),
          UserScratchpad(), CpuEngine(), ForwardDesc(d, "")};
}

// Uses the orders of the spec. If oneDNN has only its reference implementation for them, uses the orders that oneDNN
// prefers.
template <typename Make>
auto BestDesc(ConvolutionSpec spec, const Make& make) -> decltype(make(Description())) {
  spec.dtype = PrimitiveDType(spec.dtype);
  try {
    auto desc = make(Describe(spec, false));
    if (std::string(desc.impl_info_str()).find("ref") == std::string::npos) return desc;
  } catch (const dnnl::error&) {
    // No implementation takes these orders.
  }
  return make(Describe(spec, true));
}

}  // namespace

bool CanEndIn(const std::string& activation) { return activation == kSelu; }

OneDnnCall ConvolutionCall(const ConvolutionSpec& s) {
  const auto desc = BestDesc(s, [&](const Description& d) { return ForwardDesc(d, s.activation); });
  std::vector<OneDnnPort> ports = {ImagePort(DNNL_ARG_SRC, s.input, s.dtype, s.input_order, desc.src_desc(), false),
                                   {DNNL_ARG_WEIGHTS, FilterDesc(s), desc.weights_desc()}};
  if (s.bias) ports.push_back({DNNL_ARG_BIAS, VectorDesc(s.output.dim(3), s.dtype), desc.bias_desc()});
  ports.push_back(ImagePort(DNNL_ARG_DST, s.output, s.dtype, s.output_order, desc.dst_desc(), true));
  return {dnnl::convolution_forward(desc), desc, std::move(ports)};
}

OneDnnCall InputGradientCall(const ConvolutionSpec& s) {
  const auto desc = BestDesc(s, [](const Description& d) { return InputGradientDesc(d); });
  return {dnnl::convolution_backward_data(desc),
          desc,
          {ImagePort(DNNL_ARG_DIFF_DST, s.output, s.dtype, s.output_order, desc.diff_dst_desc(), false),
           {DNNL_ARG_WEIGHTS, FilterDesc(s), desc.weights_desc()},
           ImagePort(DNNL_ARG_DIFF_SRC, s.input, s.dtype, s.input_order, desc.diff_src_desc(), true)}};
}

OneDnnCall FilterGradientCall(const ConvolutionSpec& s) {
  const auto desc = BestDesc(s, [](const Description& d) { return FilterGradientDesc(d); });
  std::vector<OneDnnPort> ports = {
      ImagePort(DNNL_ARG_SRC, s.input, s.dtype, s.input_order, desc.src_desc(), false),
      ImagePort(DNNL_ARG_DIFF_DST, s.output, s.dtype, s.output_order, desc.diff_dst_desc(), false),
      {DNNL_ARG_DIFF_WEIGHTS, FilterDesc(s), desc.diff_weights_desc(), true}};
  if (s.bias) {
    ports.push_back({DNNL_ARG_DIFF_BIAS, VectorDesc(s.output.dim(3), s.dtype), desc.diff_bias_desc(), true});
  }
  return {dnnl::convolution_backward_weights(desc), desc, std::move(ports)};
}

}  // namespace cohort::cpu
