// The parts of oneDNN that kernels use: its engine, descriptions of Cohort's tensors, and OneDnnCall. A oneDNN
// primitive is an operation that is compiled for certain shapes. Internal to backends/cpu/kernels.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <initializer_list>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/kernel.h"

namespace cohort::cpu {

const dnnl::engine& CpuEngine();
// Makes oneDNN use `threads` threads for everything that the calling thread makes and runs from now on.
void UseThreads(int threads);
// Returns true if oneDNN uses these instructions: the processor has them, and ONEDNN_MAX_CPU_ISA allows them.
bool HasIsa(dnnl::cpu_isa isa);
// Returns oneDNN's name of the dtype. Throws UnimplementedError for a dtype other than float32 and bfloat16.
dnnl::memory::data_type OneDnnType(DType dtype);
// Returns the dtype for which a primitive on images of `dtype` is made: float32 for bfloat16 without AVX-512, which
// oneDNN's primitives for bfloat16 need, and `dtype` otherwise.
DType PrimitiveDType(DType dtype);
// Returns attributes which say that the caller provides the scratchpad.
dnnl::primitive_attr UserScratchpad();

// One argument of a primitive: the order of Cohort's tensor, and the order that the primitive needs. `ours` may be
// bfloat16 where `theirs` is float32.
struct OneDnnPort {
  int arg;  // DNNL_ARG_...
  dnnl::memory::desc ours;
  dnnl::memory::desc theirs;
  bool is_output = false;
};

// The order in memory of a tensor [batch, rows, columns, channels]. kChannelsLast: as the shape says. kBlocked: in
// blocks of 16 channels, [batch, channels / 16, rows, columns, 16].
enum class Order { kChannelsLast, kBlocked };
inline constexpr int64_t kChannelBlock = 16;
// Returns kBlocked if the pass in passes/layout.h has given the node the attribute `mark`.
Order OrderOf(const Node& node, const char* mark);
// Describes a tensor [batch, rows, columns, channels] whose order in memory is `order`.
dnnl::memory::desc ImageDesc(const Shape& shape, DType dtype, Order order);
// Describes such a tensor without an order, so that the primitive chooses the fastest order. If there is one channel,
// describes it in the plain order.
dnnl::memory::desc AnyImageDesc(const Shape& shape, DType dtype);
// Returns the argument `arg` for a primitive that needs the order `theirs`. The tensor has the order `order`. If there
// is one channel and `theirs` has no padding, `order` and `theirs` mean the same bytes. Then the result has `theirs` in
// both of its fields `ours` and `theirs`, so that the tensor is not copied.
OneDnnPort ImagePort(int arg, const Shape& shape, DType dtype, Order order, const dnnl::memory::desc& theirs,
                     bool is_output);
// Registers _ToBlocked and _FromBlocked if blocked order is faster on this processor.
void RegisterBlockedOrderKernels(KernelRegistry& registry);
// Describes a vector of float32 or bfloat16.
dnnl::memory::desc VectorDesc(int64_t size, DType dtype);

// A primitive, and the copies that change the dtype and the order of tensors before and after it. It does not change
// after the constructor, so several steps may use it at the same time. Thread-safe. A CallCache and the steps that run
// it share ownership.
class OneDnnCall {
 public:
  template <typename PrimitiveDesc>
  OneDnnCall(const dnnl::primitive& primitive, const PrimitiveDesc& desc, std::vector<OneDnnPort> ports)
      : OneDnnCall(primitive, desc.scratchpad_desc(), desc.impl_info_str(), std::move(ports)) {}

  // Runs the primitive on data[i] for ports[i], with the context's threads. If ports[i] is an output, writes to
  // data[i]. Throws InternalError if oneDNN fails.
  void Run(KernelContext& ctx, std::initializer_list<const void*> data) const;
  // Returns oneDNN's name of the implementation: "jit_1x1:avx512_core".
  const std::string& implementation() const { return implementation_; }
  // Returns true if this is one of oneDNN's slow reference implementations.
  bool is_reference() const { return implementation_.find("ref") != std::string::npos; }
  // Returns true if the tensor `arg` is copied into another order before or after the primitive. Returns false if there
  // is no argument `arg`.
  bool reorders(int arg) const;
  // Returns the number of bytes that the value of `arg` has in the primitive's order.
  size_t bytes(int arg) const;

 private:
  struct Side {
    OneDnnPort port;        // `ours` has the dtype of `theirs`
    bool converted;         // the tensor is bfloat16, and the primitive float32
    dnnl::reorder reorder;  // empty if the orders are equal
  };
  OneDnnCall(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad, std::string implementation,
             std::vector<OneDnnPort> ports);

  dnnl::primitive primitive_;
  dnnl::memory::desc scratchpad_;
  std::string implementation_;
  std::vector<Side> sides_;
};

// The OneDnnCalls of one kernel. A key has the shapes and the number of threads for which a OneDnnCall was constructed.
// The cache keeps the 16 that were constructed last. The kernel owns it. Thread-safe.
class CallCache {
 public:
  using Key = std::vector<int64_t>;
  using CallPtr = std::shared_ptr<const OneDnnCall>;

  // Returns the call for `key`, and makes it with `make` if there is none. oneDNN's errors become InternalError that
  // names `op`.
  template <typename Make>
  CallPtr Get(Key key, const std::string& op, const Make& make) {
    MutexLock lock(mu_);
    for (const auto& [known, call] : calls_) {
      if (known == key) return call;
    }
    try {
      calls_.emplace_back(std::move(key), std::make_shared<const OneDnnCall>(make()));
      if (calls_.size() > kKept) calls_.pop_front();
    } catch (const dnnl::error& error) {
      Fail(op, error);
    }
    return calls_.back().second;
  }

 private:
  static constexpr size_t kKept = 16;
  [[noreturn]] static void Fail(const std::string& op, const dnnl::error& error);

  Mutex mu_;
  std::list<std::pair<Key, CallPtr>> calls_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::cpu
