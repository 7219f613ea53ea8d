// RegisterMoving: registers kernels that move elements without a look at them.
#pragma once

#include <memory>
#include <string>

#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/device/kernel.h"

namespace cohort::cuda {

// Returns whether the node has strings or lists of tensors. Their tensors lie in host memory on every device.
inline bool MovesObjects(const Node& node) {
  const auto is_object = [](DType dtype) { return DTypeSize(dtype) == 0 && dtype != DType::kResource; };
  for (const Output& input : node.inputs()) {
    if (is_object(input.dtype())) return true;
  }
  return false;
}

// Registers the class K for the op. For objects, the CPU's kernel does the work.
template <typename K>
void RegisterMoving(KernelRegistry& registry, const std::string& op) {
  registry.Register(op, kGpu, [&registry](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    if (MovesObjects(c.node)) return MakeHostFallback(registry, c);
    return std::make_unique<K>(c);
  });
}

// The same for a kernel that is a function of its context.
inline void RegisterMovingFn(KernelRegistry& registry, const std::string& op, void (*fn)(KernelContext&)) {
  class FnKernel final : public OpKernel {
   public:
    explicit FnKernel(void (*fn)(KernelContext&)) : fn_(fn) {}
    void Compute(KernelContext& ctx) override { fn_(ctx); }

   private:
    void (*const fn_)(KernelContext&);
  };
  registry.Register(op, kGpu, [&registry, fn](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    if (MovesObjects(c.node)) return MakeHostFallback(registry, c);
    return std::make_unique<FnKernel>(fn);
  });
}

}  // namespace cohort::cuda
