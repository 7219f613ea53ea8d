// ChainSource. A text has four parts: what the headers need of the standard library (kBegin), the headers, the body of
// the chain (ChainBody), and the kernel (kEnd). The body is the function that computes some elements of the chain, and
// the loops around it (kLoops).
#include "cohort/backends/cuda/kernels/chain_source.h"

#include "cohort/backends/cuda/kernels/chain_ops.h"
#include "cohort/backends/cuda/kernels/chain_text.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr char kBegin[] = R"cohort(
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
#ifdef __CUDACC_RTC__
#define COHORT_KERNEL __device__ __forceinline__
#define COHORT_MATH(name) ::name
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#else
#define COHORT_KERNEL inline
#define COHORT_MATH(name) __builtin_##name
#define memcpy __builtin_memcpy
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;
#endif

namespace std {
template <bool, typename A, typename>
struct cohort_conditional {
  using type = A;
};
template <typename A, typename B>
struct cohort_conditional<false, A, B> {
  using type = B;
};
template <bool kFirst, typename A, typename B>
using conditional_t = typename cohort_conditional<kFirst, A, B>::type;
template <typename A, typename B>
inline constexpr bool is_same_v = false;
template <typename A>
inline constexpr bool is_same_v<A, A> = true;
template <typename T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <typename T>
inline constexpr bool is_integral_v = !is_floating_point_v<T>;
template <typename T>
inline constexpr bool is_signed_v = T(-1) < T(0);
template <typename T>
struct numeric_limits;
#define COHORT_FUNCTION(name)                                                 \
  COHORT_KERNEL float name(float x) { return COHORT_MATH(name##f)(x); }       \
  COHORT_KERNEL double name(double x) { return COHORT_MATH(name)(x); }
COHORT_FUNCTION(sqrt)
COHORT_FUNCTION(floor)
COHORT_FUNCTION(ceil)
COHORT_FUNCTION(rint)
COHORT_FUNCTION(fabs)
COHORT_FUNCTION(exp)
COHORT_FUNCTION(expm1)
COHORT_FUNCTION(log)
COHORT_FUNCTION(log1p)
COHORT_FUNCTION(sin)
COHORT_FUNCTION(cos)
COHORT_FUNCTION(tan)
COHORT_FUNCTION(tanh)
COHORT_FUNCTION(erf)
#undef COHORT_FUNCTION
#define COHORT_FUNCTION(name)                                                              \
  COHORT_KERNEL float name(float x, float y) { return COHORT_MATH(name##f)(x, y); }        \
  COHORT_KERNEL double name(double x, double y) { return COHORT_MATH(name)(x, y); }
COHORT_FUNCTION(pow)
COHORT_FUNCTION(fmod)
#undef COHORT_FUNCTION
}  // namespace std

namespace cohort::cuda {
// The compiler gets --fmad=false, so each product is rounded.
template <typename W>
COHORT_KERNEL W RoundedProduct(W a, W b) {
  return a * b;
}
}  // namespace cohort::cuda
)cohort";

// Behind the definitions of T, W and Elements<N>(call, i), and of kBroadcasts.
constexpr char kLoops[] = R"cohort(
COHORT_KERNEL void Run(const ChainCall& call, int64_t first, int64_t step) {
  constexpr int kAtOnce = kBroadcasts ? 1 : kPackBytes / static_cast<int>(sizeof(T));
  for (int64_t i = first; i < call.packs; i += step) Elements<kAtOnce>(call, i);
  for (int64_t i = call.packs * kAtOnce + first; i < call.n; i += step) Elements<1>(call, i);
}
)cohort";

// Behind the body.
constexpr char kEnd[] = R"cohort(
}  // namespace
}  // namespace cohort::cuda

#ifdef __CUDACC_RTC__
extern "C" __global__ void cohort_chain(const __grid_constant__ cohort::cuda::ChainCall call) {
  const int64_t threads = blockDim.x;
  cohort::cuda::Run(call, blockIdx.x * threads + threadIdx.x, gridDim.x * threads);
}
#else
extern "C" void cohort_chain_on_host(const void* call, const void* size) {
  const uint32_t* sizes = static_cast<const uint32_t*>(size);  // three numbers of blocks, three of threads
  const int64_t threads = static_cast<int64_t>(sizes[0]) * sizes[3];
  for (int64_t i = 0; i < threads; ++i) {
    cohort::cuda::Run(*static_cast<const cohort::cuda::ChainCall*>(call), i, threads);
  }
}
#endif
)cohort";

const char* NameOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32: return "float";
    case ElementType::kFloat64: return "double";
    case ElementType::kBfloat16: return "BFloat16";
    default: break;
  }
  throw InternalError(StrCat("[backends/cuda] expected float32, float64 or bfloat16 for a chain; got element type ",
                             static_cast<int>(type)));
}

// The function that computes pack i of N elements. All operands are loaded before the result is stored, because one of
// them may be in the result's memory.
std::string Elements(const ChainArgs& args) {
  std::string text = "template <int N>\nCOHORT_KERNEL void Elements(const ChainCall& call, int64_t i) {\n";
  if (args.broadcasts) text += "  int64_t at[kMostChainOperands];\n  Locate(call.dims, i, at);\n";
  for (int o = 0; o < args.operands; ++o) {
    const std::string data = StrCat("static_cast<const T*>(call.data[", o, "])");
    if (args.broadcasts || args.single[o]) {
      text += StrCat("  const T p", o, " = ", data, args.broadcasts ? StrCat("[at[", o, "]]") : "[0]", ";\n");
    } else {
      text += StrCat("  const Pack<T, N> p", o, " = LoadPack<N>(", data, ", i);\n");
    }
  }
  text += "  Pack<T, N> result;\n  for (int k = 0; k < N; ++k) {\n";
  for (int o = 0; o < args.operands; ++o) {
    const char* element = args.broadcasts || args.single[o] ? "" : ".at[k]";
    text += StrCat("    const W x", o, " = static_cast<W>(p", o, element, ");\n");
  }
  text += "    W v = W(0);\n";
  for (int s = 0; s < args.steps; ++s) {
    const ChainStep& step = args.step[s];
    const ChainOpInfo& info = InfoOf(step.op);
    text += StrCat("    v = Rounded(", info.function, "::Apply(", OperandName(step.a),
                   info.operands() == 2 ? StrCat(", ", OperandName(step.b)) : std::string(), "));\n");
  }
  return text + "    result.at[k] = static_cast<T>(v);\n  }\n  StorePack(static_cast<T*>(call.out), i, result);\n}\n";
}

}  // namespace

ChainKey::ChainKey(ElementType type, const ChainArgs& args) {
  const auto add = [this](int number) { bytes_[size_++] = static_cast<char>(number); };
  add(static_cast<int>(type));
  add(args.operands);
  for (int o = 0; o < args.operands; ++o) add(args.broadcasts ? 2 : args.single[o] ? 1 : 0);
  for (int s = 0; s < args.steps; ++s) {
    add(static_cast<int>(args.step[s].op));
    add(args.step[s].a);
    add(args.step[s].b);
  }
}

std::string ChainBody(ElementType type, const ChainArgs& args) {
  return StrCat("// ", ChainText(type, args), "\nusing T = ", NameOf(type),
                ";\nusing W = Wide<T>;\nconstexpr bool kBroadcasts = ", args.broadcasts ? "true" : "false",
                ";\n\n// A bfloat16 is rounded after each step.\nCOHORT_KERNEL W Rounded(W v) { return "
                "static_cast<W>(static_cast<T>(v)); }\n\n",
                Elements(args), kLoops);
}

std::string ChainSource(ElementType type, const ChainArgs& args) {
  return StrCat(kBegin, kChainHeaders, "\nnamespace cohort::cuda {\nnamespace {\n\n", ChainBody(type, args), kEnd);
}

}  // namespace cohort::cuda
