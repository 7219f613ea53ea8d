// Loops over elements, for kernels: each element of the result is a function of the elements at the same place of one,
// two or three operands. Files *.cu include it.
//
// A function is a struct with `static W Apply(W x)`, or of two or three arguments, in the type Wide<T>. A struct with
// members has an Apply that is not static.
//
// Without broadcasting, an operand moves by one element for each element of the result, or not at all, if it is a
// scalar. A thread then computes packs of elements, if all operands are aligned. With broadcasting, a thread computes
// the place in each operand from the dimensions (BroadcastDims).
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/kernels/binary_args.h"
#include "cohort/backends/cuda/kernels/broadcast_dims.h"

namespace cohort::cuda {

// How many elements a thread computes at once: as many as fit into a pack of the larger of the two types.
template <typename T, typename R>
inline constexpr int kElementsAtOnce = kPackBytes / static_cast<int>(sizeof(T) > sizeof(R) ? sizeof(T) : sizeof(R));

// y = fn(x).
template <typename Fn, typename T, typename R>
struct UnaryElements {
  static constexpr int kAtOnce = kElementsAtOnce<T, R>;
  Fn fn;
  const T* x;
  R* y;
  int64_t n;
  int64_t packs;  // the first elements, which are computed in packs of kAtOnce

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < packs; i += t.step()) {
      const Pack<T, kAtOnce> in = LoadPack<kAtOnce>(x, i);
      Pack<R, kAtOnce> out;
      for (int k = 0; k < kAtOnce; ++k) out.at[k] = One(in.at[k]);
      StorePack(y, i, out);
    }
    for (int64_t i = packs * kAtOnce + t.first(); i < n; i += t.step()) y[i] = One(x[i]);
  }
  COHORT_KERNEL R One(T value) const { return static_cast<R>(fn.Apply(static_cast<Wide<T>>(value))); }
};

// Requires: n is at least 1. x and y may be the same memory.
template <typename T, typename R, typename Fn>
void LaunchUnaryElements(Driver& driver, StreamHandle stream, const void* x, void* y, int64_t n, const Fn& fn) {
  using Kernel = UnaryElements<Fn, T, R>;
  constexpr int kAtOnce = Kernel::kAtOnce;
  const auto* in = static_cast<const T*>(x);
  auto* out = static_cast<R*>(y);
  const bool aligned = IsAligned<T, kAtOnce>(in) && IsAligned<R, kAtOnce>(out);
  Launch(driver, stream, SizeFor(n, aligned ? kAtOnce : 1), Kernel{fn, in, out, n, aligned ? n / kAtOnce : 0});
}

// out = fn(a, b), without broadcasting. `a_step` and `b_step` are 0 for a scalar operand, else 1.
template <typename Fn, typename T, typename R>
struct BinaryElements {
  static constexpr int kAtOnce = kElementsAtOnce<T, R>;
  Fn fn;
  const T* a;
  const T* b;
  R* out;
  int64_t n;
  int64_t packs;
  int a_step;
  int b_step;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < packs; i += t.step()) {
      const Pack<T, kAtOnce> x = Load(a, a_step, i);
      const Pack<T, kAtOnce> y = Load(b, b_step, i);
      Pack<R, kAtOnce> z;
      for (int k = 0; k < kAtOnce; ++k) z.at[k] = One(x.at[k], y.at[k]);
      StorePack(out, i, z);
    }
    for (int64_t i = packs * kAtOnce + t.first(); i < n; i += t.step()) out[i] = One(a[i * a_step], b[i * b_step]);
  }
  COHORT_KERNEL R One(T x, T y) const {
    return static_cast<R>(fn.Apply(static_cast<Wide<T>>(x), static_cast<Wide<T>>(y)));
  }
  COHORT_KERNEL static Pack<T, kAtOnce> Load(const T* data, int step, int64_t i) {
    if (step != 0) return LoadPack<kAtOnce>(data, i);
    Pack<T, kAtOnce> same;
    for (int k = 0; k < kAtOnce; ++k) same.at[k] = data[0];
    return same;
  }
};

// The same with broadcasting.
template <typename Fn, typename T, typename R>
struct BinaryBroadcast {
  Fn fn;
  const T* a;
  const T* b;
  R* out;
  int64_t n;
  BroadcastDims<2> dims;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < n; i += t.step()) {
      int64_t at[2];
      Locate(dims, i, at);
      out[i] = static_cast<R>(fn.Apply(static_cast<Wide<T>>(a[at[0]]), static_cast<Wide<T>>(b[at[1]])));
    }
  }
};

template <typename T, typename R, typename Fn>
void LaunchBinaryElements(Driver& driver, StreamHandle stream, const BinaryArgs& args, const Fn& fn) {
  const auto* a = static_cast<const T*>(args.a);
  const auto* b = static_cast<const T*>(args.b);
  auto* out = static_cast<R*>(args.out);
  if (args.broadcasts) {
    Launch(driver, stream, SizeFor(args.n), BinaryBroadcast<Fn, T, R>{fn, a, b, out, args.n, args.dims});
    return;
  }
  using Kernel = BinaryElements<Fn, T, R>;
  constexpr int kAtOnce = Kernel::kAtOnce;
  const bool aligned = (args.a_step == 0 || IsAligned<T, kAtOnce>(a)) &&
                       (args.b_step == 0 || IsAligned<T, kAtOnce>(b)) && IsAligned<R, kAtOnce>(out);
  Launch(driver, stream, SizeFor(args.n, aligned ? kAtOnce : 1),
         Kernel{fn, a, b, out, args.n, aligned ? args.n / kAtOnce : 0, args.a_step, args.b_step});
}

}  // namespace cohort::cuda
