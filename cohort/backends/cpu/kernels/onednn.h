// oneDNN as kernels use it: its one engine, descriptions of our tensors, and calls - primitives made once for a set of
// shapes. Internal to backends/cpu/kernels.
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
// Makes oneDNN use `threads` threads for what the calling thread makes and runs from now on.
void UseThreads(int threads);
// Whether oneDNN uses these instructions: the processor has them, and ONEDNN_MAX_CPU_ISA allows them.
bool HasIsa(dnnl::cpu_isa isa);
// Throws UnimplementedError for a dtype other than float32 and bfloat16, and for bfloat16 without AVX-512.
dnnl::memory::data_type OneDnnType(DType dtype);
// The scratchpad comes from us.
dnnl::primitive_attr UserScratchpad();

// One argument of a primitive: the order of our tensor, and the one that the primitive takes.
struct OneDnnPort {
  int arg;  // DNNL_ARG_...
  dnnl::memory::desc ours;
  dnnl::memory::desc theirs;
  bool is_output = false;
};

// How the elements of a tensor [batch, rows, columns, channels] lie in memory: as the shape says, or in blocks of 16
// channels, [batch, channels / 16, rows, columns, 16].
enum class Order { kChannelsLast, kBlocked };
inline constexpr int64_t kChannelBlock = 16;
// kBlocked where the pass of passes/layout.h has given the node the attribute `mark`.
Order OrderOf(const Node& node, const char* mark);
dnnl::memory::desc ImageDesc(const Shape& shape, DType dtype, Order order);
// The same tensor in whatever order a primitive likes best.
dnnl::memory::desc AnyImageDesc(const Shape& shape, DType dtype);
// A tensor of ours at a primitive that takes `theirs`. Where there is one channel both plain orders are the same bytes.
OneDnnPort ImagePort(int arg, const Shape& shape, DType dtype, Order order, const dnnl::memory::desc& theirs,
                     bool is_output);
// _ToBlocked and _FromBlocked, where the processor makes that order worth while.
void RegisterBlockedOrderKernels(KernelRegistry& registry);
// A vector of float32 or bfloat16.
dnnl::memory::desc VectorDesc(int64_t size, DType dtype);

// A primitive, and what brings our tensors into the order that it takes and back. Constant, so that steps may share it.
class OneDnnCall {
 public:
  template <typename PrimitiveDesc>
  OneDnnCall(const dnnl::primitive& primitive, const PrimitiveDesc& desc, std::vector<OneDnnPort> ports)
      : OneDnnCall(primitive, desc.scratchpad_desc(), desc.impl_info_str(), std::move(ports)) {}

  // Runs on data[i] for ports[i] (outputs are written), with the context's threads. Throws InternalError.
  void Run(KernelContext& ctx, std::initializer_list<const void*> data) const;
  // As oneDNN names it: "jit_1x1:avx512_core".
  const std::string& implementation() const { return implementation_; }
  bool is_reference() const { return implementation_.find("ref") != std::string::npos; }
  // Whether a tensor changes its order on the way in or out (filters aside, which always may).
  bool reorders(int arg) const;
  // Bytes that the primitive needs for the value of `arg`.
  size_t bytes(int arg) const;

 private:
  struct Side {
    OneDnnPort port;
    dnnl::reorder reorder;  // empty where the orders agree
  };
  OneDnnCall(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad, std::string implementation,
             std::vector<OneDnnPort> ports);

  dnnl::primitive primitive_;
  dnnl::memory::desc scratchpad_;
  std::string implementation_;
  std::vector<Side> sides_;
};

// The calls of one kernel by what they were made for (shapes, threads); the latest few are kept. Thread-safe.
class CallCache {
 public:
  using Key = std::vector<int64_t>;
  using CallPtr = std::shared_ptr<const OneDnnCall>;

  // `make` returns a OneDnnCall. oneDNN's errors become InternalError that names `op`.
  template <typename Make>
  CallPtr Get(Key key, const std::string& op, const Make& make) {
    MutexLock lock(mu_);
    for (const auto& [known, call] : calls_) {
      if (known == key) return call;
    }
    try {
      if (calls_.size() == kKept) calls_.pop_front();
      calls_.emplace_back(std::move(key), std::make_shared<const OneDnnCall>(make()));
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
