// The libraries of the process: FindBlas, FindDnn, FindKernelCompiler and FindNccl, and the texts of calls.
#include <array>
#include <atomic>

#include "cohort/backends/cuda/libraries/blas.h"
#include "cohort/backends/cuda/libraries/dnn.h"
#include "cohort/backends/cuda/libraries/kernel_compiler.h"
#include "cohort/backends/cuda/libraries/nccl.h"
#include "cohort/backends/cuda/libraries/nvrtc.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

std::atomic<Blas*> installed_blas{nullptr};
std::atomic<Dnn*> installed_dnn{nullptr};
std::atomic<KernelCompiler*> installed_compiler{nullptr};
std::atomic<Nccl*> installed_nccl{nullptr};

const char* NameOf(GemmEnd end) {
  switch (end) {
    case GemmEnd::kBias: return "bias";
    case GemmEnd::kBiasRelu: return "bias_relu";
    default: return "plain";
  }
}

const char* NameOf(ConvolutionPart part) {
  switch (part) {
    case ConvolutionPart::kInputGradient: return "input_gradient";
    case ConvolutionPart::kFilterGradient: return "filter_gradient";
    default: return "convolution";
  }
}

// TensorFloat-32 is a property of float32 only.
std::string NameOf(DType dtype, bool tensor_float_32) {
  return dtype == DType::kFloat32 && tensor_float_32 ? "tf32" : StrCat(dtype);
}

std::string Pair(const std::array<int64_t, 2>& pair) { return StrCat(pair[0], "x", pair[1]); }

}  // namespace

int AlignmentOf(const GemmOperands& operands) {
  constexpr uintptr_t kMost = 256;
  uintptr_t bits = kMost;
  for (const void* address : {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.c)}) {
    bits |= reinterpret_cast<uintptr_t>(address);
  }
  return static_cast<int>(bits & (~bits + 1));  // the lowest bit that is set
}

std::string CallText(const GemmSpec& s) {
  return StrCat("product ", NameOf(s.dtype, s.tensor_float_32), " m=", s.m, " n=", s.n, " k=", s.k,
                " a=", s.transpose_a ? "t" : "n", " b=", s.transpose_b ? "t" : "n", " batches=", s.batches,
                " steps=", s.step_a, ",", s.step_b, ",", s.step_c, " end=", NameOf(s.end), " alignment=", s.alignment);
}

std::string CallText(ConvolutionPart part, const DnnConvolution& c) {
  return StrCat(NameOf(part), " ", NameOf(c.dtype, c.tensor_float_32), " batch=", c.batch, " in=", Pair(c.in_size), "x",
                c.in_channels, " filter=", Pair(c.filter_size), " out=", Pair(c.out_size), "x", c.out_channels,
                " groups=", c.groups, " strides=", Pair(c.strides), " dilations=", Pair(c.dilations),
                " padding=", Pair(c.padding));
}

Blas& FindBlas() {
  if (Blas* blas = installed_blas.load()) return *blas;
  static Blas* const made = MakeBlas().release();  // streams may use it until the process ends
  return *made;
}
void InstallBlas(Blas* blas) { installed_blas.store(blas); }

Dnn& FindDnn() {
  if (Dnn* dnn = installed_dnn.load()) return *dnn;
  static Dnn* const made = MakeDnn().release();
  return *made;
}
void InstallDnn(Dnn* dnn) { installed_dnn.store(dnn); }

KernelCompiler* FindKernelCompiler(Driver& driver) {
  if (KernelCompiler* compiler = installed_compiler.load()) return compiler;
  if (!driver.LoadsKernels()) return nullptr;
  static KernelCompiler* const made = MakeNvrtcCompiler().release();
  return made;
}
void InstallKernelCompiler(KernelCompiler* compiler) { installed_compiler.store(compiler); }

Nccl& FindNccl() {
  if (Nccl* nccl = installed_nccl.load()) return *nccl;
  static Nccl* const made = MakeNccl().release();
  return *made;
}
void InstallNccl(Nccl* nccl) { installed_nccl.store(nccl); }

}  // namespace cohort::cuda
