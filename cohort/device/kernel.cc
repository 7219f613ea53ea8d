// How a kernel gets its outputs (in new memory, or in the memory of an input), and the registry of kernels.
#include "cohort/device/kernel.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

Allocator& OutputAllocator(const Node& node, int output, Allocator& allocator) {
  return node.output_arg(output).host_memory ? HostAllocator() : allocator;
}

// Returns whether a tensor of this dtype and shape can use the memory of `input`, which must lie in `space`. It cannot
// if the elements of one of the two are objects (size 0).
bool CanForward(const Tensor& input, DType dtype, const Shape& shape, MemorySpace space) {
  if (!input.OwnsBufferAlone() || input.raw_data() != input.buffer()->data() || input.space() != space) return false;
  const size_t element = DTypeSize(dtype);
  const int64_t count = shape.num_elements();
  return element != 0 && count >= 0 && input.bytes() == static_cast<size_t>(count) * element &&
         DTypeSize(input.dtype()) != 0;
}

KernelFactory FactoryOf(void (*fn)(KernelContext&)) {
  class FnKernel final : public OpKernel {
   public:
    explicit FnKernel(void (*fn)(KernelContext&)) : fn_(fn) {}
    void Compute(KernelContext& ctx) override { fn_(ctx); }

   private:
    void (*fn_)(KernelContext&);
  };
  return [fn](const KernelConstruction&) -> std::unique_ptr<OpKernel> { return std::make_unique<FnKernel>(fn); };
}

}  // namespace

Tensor& KernelContext::AllocateOutput(int i, const Shape& shape) {
  outputs_[i] = Tensor(node_->output_dtype(i), shape, OutputAllocator(*node_, i, *allocator_));
  return outputs_[i];
}

Tensor& KernelContext::ForwardInputOrAllocate(int input_index, int output_index, const Shape& shape) {
  return ForwardInputOrAllocate({input_index}, output_index, shape);
}

Tensor& KernelContext::ForwardInputOrAllocate(std::initializer_list<int> input_indices, int output_index,
                                              const Shape& shape) {
  const DType dtype = node_->output_dtype(output_index);
  Allocator& allocator = OutputAllocator(*node_, output_index, *allocator_);
  for (const int index : input_indices) {
    const int32_t slot = input_slots_[static_cast<size_t>(index)];
    // Acquire: another consumer of the slot may have read it on another thread. That consumer has read it before it
    // gave up its use.
    if (std::atomic_ref<int32_t>(uses_[slot]).load(std::memory_order_acquire) != 1) continue;
    if (!CanForward(slots_[slot], dtype, shape, allocator.space())) continue;
    // The slot keeps its tensor, so that the kernel can still read its input through it.
    outputs_[output_index] = Tensor(dtype, shape, slots_[slot].buffer(), 0);
    return outputs_[output_index];
  }
  outputs_[output_index] = Tensor(dtype, shape, allocator);
  return outputs_[output_index];
}

Tensor KernelContext::TakeInput(int i, int32_t uses) {
  const int32_t slot = input_slots_[static_cast<size_t>(i)];
  if (std::atomic_ref<int32_t>(uses_[slot]).load(std::memory_order_acquire) != uses) return slots_[slot];
  Tensor taken = std::move(slots_[slot]);
  slots_[slot].Reset();
  return taken;
}

std::string KernelContext::Describe() const {
  std::string text = DescribeAs(node_->op_name(), node_->name());
  if (node_->has_attr(kErrorNote)) text += StrCat("\n  ", node_->attr<std::string>(kErrorNote));
  return text;
}

std::string KernelContext::DescribeAs(const std::string& op, const std::string& name) const {
  constexpr int kMostInputs = 24;  // a node that joins updates may have hundreds
  std::string inputs;
  for (int i = 0; i < std::min(num_inputs(), kMostInputs); ++i) {
    inputs += StrCat(i > 0 ? ", " : "", input(i).dtype(), input(i).shape());
  }
  if (num_inputs() > kMostInputs) inputs += StrCat(" and ", num_inputs() - kMostInputs, " more");
  std::string callers;
  for (const CallFrame* frame = step_->caller; frame != nullptr; frame = frame->outer) {
    callers += StrCat("\n  in function '", frame->function, "', called by ", frame->caller.op_name(), " node '",
                      frame->caller.name(), "'");
  }
  return StrCat("[[", op, " node '", name, "' on ", device_->name(), ", inputs: ", inputs, "]]", callers);
}

void AsyncOpKernel::Compute(KernelContext& ctx) {
  throw InternalError(StrCat("[kernel] ", ctx.node().Describe(), " is asynchronous: it is run by ComputeAsync"));
}

KernelRegistry& KernelRegistry::Global() {
  static auto* const registry = new KernelRegistry;
  return *registry;
}

void KernelRegistry::Register(const std::string& op, const std::string& device_type, KernelFactory factory) {
  if (!kernels_.emplace(std::make_pair(op, device_type), std::move(factory)).second) {
    throw AlreadyExistsError(StrCat("[kernel] op ", op, " has a kernel for device type ", device_type, " already"));
  }
}

void KernelRegistry::RegisterFn(const std::string& op, const std::string& device_type, void (*fn)(KernelContext&)) {
  Register(op, device_type, FactoryOf(fn));
}

void KernelRegistry::RegisterHost(const std::string& op, KernelFactory factory, KernelMemory memory) {
  if (!host_kernels_.emplace(op, HostKernel{std::move(factory), memory}).second) {
    throw AlreadyExistsError(StrCat("[kernel] op ", op, " has a host kernel already"));
  }
}

void KernelRegistry::RegisterHostFn(const std::string& op, void (*fn)(KernelContext&), KernelMemory memory) {
  RegisterHost(op, FactoryOf(fn), memory);
}

bool KernelRegistry::Has(std::string_view op, std::string_view device_type) const {
  return host_kernels_.contains(op) || kernels_.contains(std::make_pair(std::string(op), std::string(device_type)));
}

KernelMemory KernelRegistry::MemoryOf(std::string_view op, std::string_view device_type) const {
  const auto host = host_kernels_.find(op);
  if (host == host_kernels_.end()) return KernelMemory::kDevice;
  const bool own = kernels_.contains(std::make_pair(std::string(op), std::string(device_type)));
  return own ? KernelMemory::kDevice : host->second.memory;
}

std::unique_ptr<OpKernel> KernelRegistry::Create(const KernelConstruction& construction) const {
  const Node& node = construction.node;
  const std::string& type = construction.device.type();
  const auto own = kernels_.find(std::make_pair(node.op_name(), type));
  if (own != kernels_.end()) return own->second(construction);
  const auto host = host_kernels_.find(node.op_name());
  if (host != host_kernels_.end()) return host->second.factory(construction);
  std::vector<std::string> types;
  for (const auto& [key, factory] : kernels_) {
    if (key.first == node.op_name()) types.push_back(key.second);
  }
  throw NotFoundError(StrCat("[kernel] op ", node.op_name(), " (node '", node.name(),
                             "') has no kernel for device type ", type, " (", construction.device.name(),
                             "); types that have one: [", StrJoin(types, ", "), "]"));
}

std::vector<std::string> KernelRegistry::HostOps() const {
  std::vector<std::string> ops;
  for (const auto& [op, kernel] : host_kernels_) ops.push_back(op);
  return ops;
}

std::vector<std::string> KernelRegistry::OpsOn(std::string_view device_type) const {
  std::vector<std::string> ops;
  for (const auto& [key, factory] : kernels_) {
    if (key.second == device_type) ops.push_back(key.first);
  }
  return ops;
}

}  // namespace cohort
