// On x86-64, compiles loops for several vector widths. When a kernel is made, it chooses a version that the processor
// can run (see Widest). On other processors there is one version. Internal to backends/cpu/kernels.
#pragma once

namespace cohort::cpu {

// In this file a Loop is a struct with a static function Run. Run, and the functions that it calls, must be marked
// COHORT_INLINE; then they are compiled with the instructions of each version.
#define COHORT_INLINE inline __attribute__((always_inline))
#define COHORT_INLINE_LAMBDA __attribute__((always_inline))  // for lambdas: put it after the parameters

// Put this macro before a loop if no iteration uses what another iteration writes. Two pointers of the loop may be
// equal, such as those of an input and of an output that is written in place. Unlike `#pragma omp simd` it
// acts after inlining, so the loop may use small arrays and references.
#if defined(__clang__)
#define COHORT_INDEPENDENT_PASSES _Pragma("clang loop vectorize(assume_safety)")
#else
#define COHORT_INDEPENDENT_PASSES _Pragma("GCC ivdep")
#endif

#if defined(__x86_64__)

template <typename Loop, typename... Args>
__attribute__((target("avx2"))) void RunAvx2(Args... args) {
  Loop::Run(args...);
}
template <typename Loop, typename... Args>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void RunAvx512(Args... args) {
  Loop::Run(args...);
}
template <typename Loop, typename... Args>
void RunPlain(Args... args) {
  Loop::Run(args...);
}

inline bool HasAvx2() { return __builtin_cpu_supports("avx2") != 0; }
inline bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

// Returns a version of Loop::Run for this processor, as a function of type void(Args...): AVX-512 if `wide` is true and
// the processor has it, else AVX2 if the processor has it, else the plain version. Set `wide` if arithmetic, and not
// memory, limits the speed of the loop. Only such a loop is faster with AVX-512.
template <typename Loop, typename... Args>
auto Widest(void (*)(Args...), bool wide) -> void (*)(Args...) {
  if (wide && HasAvx512()) return &RunAvx512<Loop, Args...>;
  return HasAvx2() ? &RunAvx2<Loop, Args...> : &RunPlain<Loop, Args...>;
}
template <typename Loop>
auto Widest(bool wide = false) {
  return Widest<Loop>(&Loop::Run, wide);
}

#else

template <typename Loop>
auto Widest(bool = false) {
  return &Loop::Run;
}

#endif

}  // namespace cohort::cpu
