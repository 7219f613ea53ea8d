#include "cohort/backends/cpu/kernels/onednn.h"

#include <omp.h>

#include <unordered_map>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cpu {
namespace {

using dnnl::memory;

memory::dims ChannelsSecond(const Shape& shape) { return {shape.dim(0), shape.dim(3), shape.dim(1), shape.dim(2)}; }

memory Wrap(const memory::desc& desc, const void* data) { return {desc, CpuEngine(), const_cast<void*>(data)}; }

template <typename To, typename From>
void Convert(const void* from, void* to, int64_t n, int threads) {
  ForBlocks(n, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      static_cast<To*>(to)[i] = static_cast<To>(static_cast<const From*>(from)[i]);
    }
  });
}

}  // namespace

const dnnl::engine& CpuEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

bool HasIsa(dnnl::cpu_isa isa) {
  const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), wanted = static_cast<unsigned>(isa);
  return (has & wanted) == wanted;
}

void UseThreads(int threads) {
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

memory::data_type OneDnnType(DType dtype) {
  if (dtype == DType::kFloat32) return memory::data_type::f32;
  if (dtype == DType::kBfloat16) return memory::data_type::bf16;
  throw UnimplementedError(StrCat("[backends/cpu] expected float32 or bfloat16; got ", dtype));
}

DType PrimitiveDType(DType dtype) {
  return dtype == DType::kBfloat16 && !HasIsa(dnnl::cpu_isa::avx512_core) ? DType::kFloat32 : dtype;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Order OrderOf(const Node& node, const char* mark) {
  return node.has_attr(mark) && node.attr<bool>(mark) ? Order::kBlocked : Order::kChannelsLast;
}

memory::desc ImageDesc(const Shape& shape, DType dtype, Order order) {
  const auto tag = order == Order::kBlocked ? memory::format_tag::nChw16c : memory::format_tag::nhwc;
  return {ChannelsSecond(shape), OneDnnType(dtype), tag};
}

memory::desc AnyImageDesc(const Shape& shape, DType dtype) {
  // With one channel, both plain orders are the same bytes. Primitives with blocked outputs accept this one.
  const auto tag = shape.dim(3) == 1 ? memory::format_tag::nchw : memory::format_tag::any;
  return {ChannelsSecond(shape), OneDnnType(dtype), tag};
}

OneDnnPort ImagePort(int arg, const Shape& shape, DType dtype, Order order, const memory::desc& theirs,
                     bool is_output) {
  const bool same =
      shape.dim(3) == 1 && theirs.get_size() == static_cast<size_t>(shape.num_elements()) * DTypeSize(dtype);
  return {arg, same ? theirs : ImageDesc(shape, dtype, order), theirs, is_output};
}

memory::desc VectorDesc(int64_t size, DType dtype) { return {{size}, OneDnnType(dtype), memory::format_tag::x}; }

OneDnnCall::OneDnnCall(const dnnl::primitive& primitive, const memory::desc& scratchpad, std::string implementation,
                       std::vector<OneDnnPort> ports)
    : primitive_(primitive), scratchpad_(scratchpad), implementation_(std::move(implementation)) {
  for (OneDnnPort& port : ports) {
    Side side{std::move(port), false, {}};
    side.converted = side.port.ours.data_type() != side.port.theirs.data_type();
    side.port.ours.data.data_type = side.port.theirs.data.data_type;
    const memory::desc& from = side.port.is_output ? side.port.theirs : side.port.ours;
    const memory::desc& to = side.port.is_output ? side.port.ours : side.port.theirs;
    if (from != to) side.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(CpuEngine(), from, CpuEngine(), to));
    sides_.push_back(std::move(side));
  }
}

bool OneDnnCall::reorders(int arg) const {
  for (const Side& side : sides_) {
    if (side.port.arg == arg) return static_cast<bool>(side.reorder);
  }
  return false;
}

size_t OneDnnCall::bytes(int arg) const {
  for (const Side& side : sides_) {
    if (side.port.arg == arg) return side.port.theirs.get_size();
  }
  return 0;
}

void OneDnnCall::Run(KernelContext& ctx, std::initializer_list<const void*> data) const {
  UseThreads(ctx.num_threads());
  std::vector<Tensor> temporaries;
  const auto allocate = [&](const memory::desc& desc) {
    temporaries.push_back(ctx.AllocateTemp(DType::kUint8, Shape{static_cast<int64_t>(desc.get_size())}));
    return temporaries.back().raw_data();
  };
  const auto elements = [](const Side& side) {
    return static_cast<int64_t>(side.port.ours.get_size() / sizeof(float));
  };
  try {
    dnnl::stream stream(CpuEngine());
    std::unordered_map<int, memory> args;
    std::vector<const void*> ours;  // the tensors in the dtypes of the primitive
    for (const void* value : data) {
      const Side& side = sides_.at(ours.size());
      if (side.converted) {
        void* wide = allocate(side.port.ours);
        if (!side.port.is_output) Convert<float, bfloat16>(value, wide, elements(side), ctx.num_threads());
        value = wide;
      }
      ours.push_back(value);
      const void* used = value;
      if (side.reorder) {
        used = allocate(side.port.theirs);
        if (!side.port.is_output) {
          memory from = Wrap(side.port.ours, value), to = Wrap(side.port.theirs, used);
          side.reorder.execute(stream, from, to);
        }
      }
      args.emplace(side.port.arg, Wrap(side.port.theirs, used));
    }
    if (scratchpad_.get_size() > 0) args.emplace(DNNL_ARG_SCRATCHPAD, Wrap(scratchpad_, allocate(scratchpad_)));
    primitive_.execute(stream, args);
    size_t i = 0;
    for (const void* value : data) {
      const Side& side = sides_[i];
      const void* wide = ours[i++];
      if (!side.port.is_output) continue;
      if (side.reorder) {
        memory to = Wrap(side.port.ours, wide);
        side.reorder.execute(stream, args.at(side.port.arg), to);
      }
      if (side.converted) Convert<bfloat16, float>(wide, const_cast<void*>(value), elements(side), ctx.num_threads());
    }
    stream.wait();
  } catch (const dnnl::error& error) {
    throw InternalError(StrCat("[backends/cpu] oneDNN failed in ", implementation_, ": ", error.what()));
  }
}

void CallCache::Fail(const std::string& op, const dnnl::error& error) {
  throw InternalError(StrCat("[backends/cpu] oneDNN has no ", op, " for these shapes: ", error.what()));
}

}  // namespace cohort::cpu
