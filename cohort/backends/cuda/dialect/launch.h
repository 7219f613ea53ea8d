// The dialect of kernels: a small part of CUDA C++, which nvcc compiles for the card, and which every C++ compiler
// compiles for the host. docs/how-to/add-a-cuda-kernel.md shows it. A file *.cu includes this header and no file of
// NVIDIA's.
//
// A kernel is a struct of plain members with
//
//   COHORT_KERNEL void operator()(const Thread& thread) const { ... }
//
// Launch(driver, stream, size, kernel) enqueues it. If the kernel calls Thread::Sync or a function that exchanges
// values between threads, it declares `static constexpr bool kWaits = true;`. The host runs the threads of such a
// kernel as fibers, which change when they wait. It runs the threads of other kernels one after the other.
//
// Every such file is compiled once for each build: by nvcc for the card and for the host, or, in a build without CUDA,
// for the host only. So the fake driver can run the kernels of every build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <typeinfo>

#include "cohort/backends/cuda/dialect/host_block.h"
#include "cohort/backends/cuda/driver.h"

#ifdef __CUDACC__
// Templates of kernels compare numbers with 0, which is pointless for uint8. kWaits is used only when the host's
// version is compiled.
#pragma nv_diag_suppress 186
#pragma nv_diag_suppress 177
#define COHORT_KERNEL __host__ __device__ __forceinline__
#else
#define COHORT_KERNEL inline
#endif

// Declares `T name[count]` that all threads of the block share: COHORT_SHARED(thread, float, sums, 32). T is a plain
// type. A kernel that uses it waits (kWaits).
#ifdef __CUDA_ARCH__
#define COHORT_SHARED(thread, T, name, count) __shared__ T name[count]
#else
#define COHORT_SHARED(thread, T, name, count)             \
  T* const name = static_cast<T*>((thread).host().Shared( \
      [] {                                                \
        static char key;                                  \
        return &key;                                      \
      }(),                                                \
      sizeof(T) * (count)))
#endif

namespace cohort::cuda {

// The number of threads that wait for each other in an exchange of values.
inline constexpr int kWarpSize = 32;

// One thread of a launch. It knows its number in its block, and the number of its block in the grid.
class Thread {
 public:
#ifdef __CUDA_ARCH__
  COHORT_KERNEL uint32_t thread(int axis = 0) const {
    return axis == 0 ? threadIdx.x : axis == 1 ? threadIdx.y : threadIdx.z;
  }
  COHORT_KERNEL uint32_t threads(int axis = 0) const {
    return axis == 0 ? blockDim.x : axis == 1 ? blockDim.y : blockDim.z;
  }
  COHORT_KERNEL uint32_t block(int axis = 0) const {
    return axis == 0 ? blockIdx.x : axis == 1 ? blockIdx.y : blockIdx.z;
  }
  COHORT_KERNEL uint32_t blocks(int axis = 0) const {
    return axis == 0 ? gridDim.x : axis == 1 ? gridDim.y : gridDim.z;
  }
  // Waits until all threads of the block are here.
  COHORT_KERNEL void Sync() const { __syncthreads(); }
#else
  explicit Thread(HostBlock& host) : host_(&host) {}
  HostBlock& host() const { return *host_; }
  COHORT_KERNEL uint32_t thread(int axis = 0) const { return host_->thread(axis); }
  COHORT_KERNEL uint32_t threads(int axis = 0) const { return host_->size().threads[axis]; }
  COHORT_KERNEL uint32_t block(int axis = 0) const { return host_->block(axis); }
  COHORT_KERNEL uint32_t blocks(int axis = 0) const { return host_->size().blocks[axis]; }
  COHORT_KERNEL void Sync() const { host_->Sync(); }
#endif
  // Returns the number of this thread in a one-dimensional grid, and the number of threads in the grid: the start and
  // the step of a loop over all elements.
  COHORT_KERNEL int64_t first() const { return static_cast<int64_t>(block()) * threads() + thread(); }
  COHORT_KERNEL int64_t step() const { return static_cast<int64_t>(blocks()) * threads(); }

#ifndef __CUDA_ARCH__
 private:
  HostBlock* host_;
#endif
};

// Returns the dynamic shared memory of the block: LaunchSize::shared_bytes bytes, aligned to 16.
template <typename T>
COHORT_KERNEL T* DynamicShared([[maybe_unused]] const Thread& thread) {
#ifdef __CUDA_ARCH__
  extern __shared__ float4 cohort_dynamic_shared[];
  return reinterpret_cast<T*>(cohort_dynamic_shared);
#else
  return static_cast<T*>(thread.host().DynamicShared());
#endif
}

// Returns the value of the thread whose lane is this thread's lane with the bits of `mask` flipped. All threads of the
// warp must call it. T has 4 or 8 bytes.
template <typename T>
COHORT_KERNEL T ShuffleXor([[maybe_unused]] const Thread& thread, T value, int mask) {
#ifdef __CUDA_ARCH__
  return __shfl_xor_sync(0xffffffffU, value, mask);
#else
  T other;
  thread.host().Exchange(&value, &other, sizeof(T), mask);
  return other;
#endif
}

// Returns a * b, rounded before something is added to it, also in a file whose kernels multiply and add at once. W is
// float or double.
template <typename W>
COHORT_KERNEL W RoundedProduct(W a, W b) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(W) == sizeof(float)) return __fmul_rn(a, b);
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

// Adds to, and returns the old value of, an integer in device memory that other threads change too.
COHORT_KERNEL uint32_t AtomicAdd(uint32_t* to, uint32_t value) {
#ifdef __CUDA_ARCH__
  return atomicAdd(to, value);
#else
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
#endif
}
// Sets *to to `value` if it is `expected`. Returns the old value.
COHORT_KERNEL uint64_t AtomicCompareAndSet(uint64_t* to, uint64_t expected, uint64_t value) {
#ifdef __CUDA_ARCH__
  return atomicCAS(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(expected),
                   static_cast<unsigned long long>(value));
#else
  __atomic_compare_exchange_n(to, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
#endif
}
// Sets *to, which other threads may set or read at the same time.
COHORT_KERNEL void AtomicSet(uint64_t* to, uint64_t value) {
#ifdef __CUDA_ARCH__
  atomicExch(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
#else
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
#endif
}
// Orders what this thread has written or read before and what it writes or reads afterwards, for all threads of the
// card. On the host all threads of a launch run on one thread, which needs no order.
COHORT_KERNEL void Fence() {
#ifdef __CUDA_ARCH__
  __threadfence();
#endif
}

template <typename K, typename = void>
struct WaitsOf : std::false_type {};
template <typename K>
struct WaitsOf<K, std::void_t<decltype(K::kWaits)>> : std::bool_constant<K::kWaits> {};

// Runs a whole launch on the host.
template <typename K>
void RunOnHost(const void* argument, const LaunchSize& size) {
#ifndef __CUDA_ARCH__
  const K& kernel = *static_cast<const K*>(argument);
  RunHostBlocks(size, WaitsOf<K>::value, [&kernel](HostBlock& block) { kernel(Thread(block)); });
#endif
}

#ifdef __CUDACC__
template <typename K>
__global__ void RunOnCard(const __grid_constant__ K kernel) {
  kernel(Thread());
}
#endif

template <typename K>
const KernelCode& CodeOf() {
#ifdef __CUDACC__
  static const KernelCode code{typeid(K).name(), reinterpret_cast<const void*>(&RunOnCard<K>), &RunOnHost<K>};
#else
  static const KernelCode code{typeid(K).name(), nullptr, &RunOnHost<K>};
#endif
  return code;
}

// The largest kernel object. CUDA takes 32764 bytes of arguments on every card that CUDA 13 compiles for. A launch
// copies all bytes of the object, used or not, so a kernel whose tables are mostly short has a smaller version for
// those.
inline constexpr size_t kMostArgumentBytes = 32000;

// Enqueues `kernel` on a stream.
template <typename K>
void Launch(Driver& driver, StreamHandle stream, const LaunchSize& size, const K& kernel) {
  static_assert(std::is_trivially_copyable_v<K>, "a kernel's members travel as bytes");
  static_assert(sizeof(K) <= kMostArgumentBytes, "a launch carries at most kMostArgumentBytes of arguments");
  driver.Launch(CodeOf<K>(), size, &kernel, sizeof(K), stream);
}

// Returns the size of a launch of blocks of 256 threads for a loop over n elements (Thread::first, Thread::step), each
// thread doing about `per_thread` of them. Requires: n is at least 1.
inline LaunchSize SizeFor(int64_t n, int64_t per_thread = 1) {
  constexpr int64_t kThreads = 256;
  constexpr int64_t kMostBlocks = 65535;
  const int64_t blocks = (n + kThreads * per_thread - 1) / (kThreads * per_thread);
  LaunchSize size;
  size.threads[0] = kThreads;
  size.blocks[0] = static_cast<uint32_t>(blocks < kMostBlocks ? blocks : kMostBlocks);
  return size;
}

}  // namespace cohort::cuda
