#include "cohort/backends/cpu/kernels/bfloat16_matmul.h"

#include <dnnl.hpp>
#include <string>
#include <unordered_map>

#include "cohort/backends/cpu/kernels/onednn.h"
#include "cohort/core/error.h"

namespace cohort::cpu {
namespace {

using dnnl::memory;

memory::desc MatrixDesc(int64_t rows, int64_t columns, bool transposed) {
  const memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{columns, 1};
  return memory::desc({rows, columns}, memory::data_type::bf16, strides);
}

bool SameSizes(const GemmShape& a, const GemmShape& b) { return a.m == b.m && a.n == b.n && a.k == b.k; }

dnnl::matmul::primitive_desc Describe(const GemmShape& s) {
  return {dnnl::matmul::desc(MatrixDesc(s.m, s.k, s.transpose_a), MatrixDesc(s.k, s.n, s.transpose_b),
                             MatrixDesc(s.m, s.n, false)),
          UserScratchpad(), CpuEngine()};
}

}  // namespace

struct Bfloat16MatMul::Primitive {
  explicit Primitive(const GemmShape& s) : shape(s) {
    try {
      desc = Describe(s);
      usable = std::string(desc.impl_info_str()).find("ref") == std::string::npos;
      if (usable) primitive = dnnl::matmul(desc);
    } catch (const dnnl::error&) {
      usable = false;
    }
  }
  GemmShape shape;
  dnnl::matmul::primitive_desc desc;
  dnnl::matmul primitive;
  bool usable = false;
};

Bfloat16MatMul::Bfloat16MatMul() = default;
Bfloat16MatMul::~Bfloat16MatMul() = default;

std::string Bfloat16MatMul::Implementation(const GemmShape& shape) {
  const auto size = [](int64_t given) { return given == 0 ? DNNL_RUNTIME_DIM_VAL : given; };
  const Primitive primitive({size(shape.m), size(shape.n), size(shape.k), shape.transpose_a, shape.transpose_b});
  return primitive.usable ? primitive.desc.impl_info_str() : "";
}

bool Bfloat16MatMul::SeenLately(const GemmShape& shape) {
  for (const GemmShape& seen : lately_) {
    if (SameSizes(seen, shape)) return true;
  }
  if (lately_.size() == kCached) lately_.pop_front();
  lately_.push_back(shape);
  return false;
}

std::shared_ptr<Bfloat16MatMul::Primitive> Bfloat16MatMul::Find(const GemmShape& shape) {
  MutexLock lock(mu_);
  for (const auto& entry : cache_) {
    if (SameSizes(entry->shape, shape)) return entry;
  }
  if (any_size_ == nullptr) {
    constexpr int64_t kAny = DNNL_RUNTIME_DIM_VAL;
    any_size_ = std::make_shared<Primitive>(GemmShape{kAny, kAny, kAny, shape.transpose_a, shape.transpose_b});
  }
  if (any_size_->usable && !SeenLately(shape)) return any_size_;
  if (cache_.size() == kCached) cache_.pop_front();
  cache_.push_back(std::make_shared<Primitive>(shape));
  return cache_.back();
}

bool Bfloat16MatMul::Run(KernelContext& ctx, const GemmShape& shape, const bfloat16* a, const bfloat16* b,
                         bfloat16* c) {
  const std::shared_ptr<Primitive> found = Find(shape);
  if (!found->usable) return false;
  const auto wrap = [](const memory::desc& desc, const void* data) {
    return memory(desc, CpuEngine(), const_cast<void*>(data));
  };
  const auto matrix = [&](const void* data, int64_t rows, int64_t columns, bool transposed) {
    return wrap(MatrixDesc(rows, columns, transposed), data);
  };
  const memory::desc scratch_desc = found->desc.scratchpad_desc();
  Tensor scratch = ctx.AllocateTemp(DType::kUint8, Shape{static_cast<int64_t>(scratch_desc.get_size())});
  try {
    dnnl::stream stream(CpuEngine());
    found->primitive.execute(stream, {{DNNL_ARG_SRC, matrix(a, shape.m, shape.k, shape.transpose_a)},
                                      {DNNL_ARG_WEIGHTS, matrix(b, shape.k, shape.n, shape.transpose_b)},
                                      {DNNL_ARG_DST, matrix(c, shape.m, shape.n, false)},
                                      {DNNL_ARG_SCRATCHPAD, wrap(scratch_desc, scratch.raw_data())}});
    stream.wait();
  } catch (const dnnl::error& error) {
    throw InternalError(StrCat("[backends/cpu] oneDNN failed in a bfloat16 product of [", shape.m, ",", shape.k,
                               "] and [", shape.k, ",", shape.n, "]: ", error.what()));
  }
  return true;
}

}  // namespace cohort::cpu
