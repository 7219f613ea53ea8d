// The kernel of a chain. All threads take the same steps, so the choice of the function costs little beside the memory.
// A thread computes a pack of elements at once, if no operand broadcasts and all are aligned.
#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/kernels/activation_functions.h"
#include "cohort/backends/cuda/kernels/activation_gradients.h"
#include "cohort/backends/cuda/kernels/binary_functions.h"
#include "cohort/backends/cuda/kernels/chain.cu.h"
#include "cohort/backends/cuda/kernels/unary_functions.h"

namespace cohort::cuda {
namespace {

// v[k] = op(x[k], y[k]).
template <int N, typename W>
COHORT_KERNEL void TakeStep(ChainOp op, const W (&x)[N], const W (&y)[N], W (&v)[N]) {
  switch (op) {
#define COHORT_CHAIN_CASE(name, function)                     \
  case ChainOp::k##name:                                      \
    for (int k = 0; k < N; ++k) v[k] = function::Apply(x[k]); \
    break;
    COHORT_UNARY_CHAIN_OPS(COHORT_CHAIN_CASE)
#undef COHORT_CHAIN_CASE
#define COHORT_CHAIN_CASE(name, function)                           \
  case ChainOp::k##name:                                            \
    for (int k = 0; k < N; ++k) v[k] = function::Apply(x[k], y[k]); \
    break;
    COHORT_BINARY_CHAIN_OPS(COHORT_CHAIN_CASE)
    COHORT_GRADIENT_CHAIN_OPS(COHORT_CHAIN_CASE)
#undef COHORT_CHAIN_CASE
  }
}

// Computes N elements. load(o, k) returns element k of operand o.
template <typename T, int N, typename Load>
COHORT_KERNEL void TakeSteps(const ChainArgs& args, const Load& load, Pack<T, N>* result) {
  using W = Wide<T>;
  W v[N] = {};
  for (int s = 0; s < args.steps; ++s) {
    const ChainStep step = args.step[s];
    W x[N], y[N];
    load(step.a, v, x);
    if (step.b == step.a) {
      for (int k = 0; k < N; ++k) y[k] = x[k];
    } else {
      load(step.b, v, y);
    }
    TakeStep<N>(step.op, x, y, v);
    for (int k = 0; k < N; ++k) v[k] = static_cast<W>(static_cast<T>(v[k]));
  }
  for (int k = 0; k < N; ++k) result->at[k] = static_cast<T>(v[k]);
}

template <typename T>
struct ChainOfElements {
  static constexpr int kAtOnce = kPackBytes / static_cast<int>(sizeof(T));
  ChainArgs args;
  int64_t packs;  // the first elements, which are computed in packs

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < packs; i += t.step()) Compute<kAtOnce>(i);
    for (int64_t i = packs * kAtOnce + t.first(); i < args.n; i += t.step()) Compute<1>(i);
  }
  // Computes pack i of N elements.
  template <int N>
  COHORT_KERNEL void Compute(int64_t i) const {
    using W = Wide<T>;
    Pack<T, N> result;
    const auto load = [&](int operand, const W(&running)[N], W(&to)[N]) {
      if (operand == ChainStep::kRunning) {
        for (int k = 0; k < N; ++k) to[k] = running[k];
        return;
      }
      const auto* data = static_cast<const T*>(args.data[operand]);
      if (args.single[operand]) {
        for (int k = 0; k < N; ++k) to[k] = static_cast<W>(data[0]);
        return;
      }
      const Pack<T, N> pack = LoadPack<N>(data, i);
      for (int k = 0; k < N; ++k) to[k] = static_cast<W>(pack.at[k]);
    };
    TakeSteps<T, N>(args, load, &result);
    StorePack(static_cast<T*>(args.out), i, result);
  }
};

template <typename T>
struct ChainWithBroadcast {
  ChainArgs args;

  COHORT_KERNEL void operator()(const Thread& t) const {
    using W = Wide<T>;
    for (int64_t i = t.first(); i < args.n; i += t.step()) {
      int64_t at[kMostChainOperands];
      Locate(args.dims, i, at);
      Pack<T, 1> result;
      const auto load = [&](int operand, const W(&running)[1], W(&to)[1]) {
        to[0] = operand == ChainStep::kRunning ? running[0]
                                               : static_cast<W>(static_cast<const T*>(args.data[operand])[at[operand]]);
      };
      TakeSteps<T, 1>(args, load, &result);
      static_cast<T*>(args.out)[i] = result.at[0];
    }
  }
};

}  // namespace

void LaunchChain(Driver& driver, StreamHandle stream, ElementType type, const ChainArgs& args) {
  ForFloating(type, "a chain", [&]<typename T>(T) {
    if (args.broadcasts) return Launch(driver, stream, SizeFor(args.n), ChainWithBroadcast<T>{args});
    constexpr int kAtOnce = ChainOfElements<T>::kAtOnce;
    bool aligned = IsAligned<T, kAtOnce>(static_cast<const T*>(args.out));
    for (int o = 0; o < args.operands; ++o) {
      aligned = aligned && (args.single[o] || IsAligned<T, kAtOnce>(static_cast<const T*>(args.data[o])));
    }
    Launch(driver, stream, SizeFor(args.n, aligned ? kAtOnce : 1),
           ChainOfElements<T>{args, aligned ? args.n / kAtOnce : 0});
  });
}

}  // namespace cohort::cuda
