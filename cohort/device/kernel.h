// OpKernel: what an op does on a device. KernelContext: all that a kernel may touch while it runs.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"
#include "cohort/device/device.h"
#include "cohort/device/function_call.h"
#include "cohort/device/step.h"
#include "cohort/graph/graph.h"

namespace cohort {

class KernelContext {
 public:
  // Used by the executor. `slots` hold one tensor an output of the plan; `uses` says how many uses each still has.
  // `input_slots` says which slots are the kernel's inputs.
  KernelContext(const Node& node, Device& device, const StepInfo& step, Tensor* slots,
                std::span<const int32_t> input_slots, Tensor* outputs, int32_t* uses)
      : node_(&node),
        device_(&device),
        step_(&step),
        slots_(slots),
        input_slots_(input_slots),
        outputs_(outputs),
        uses_(uses),
        allocator_(&device.allocator()) {}

  const Node& node() const { return *node_; }
  Device& device() const { return *device_; }
  const StepInfo& step() const { return *step_; }
  int num_inputs() const { return static_cast<int>(input_slots_.size()); }
  const Tensor& input(int i) const { return slots_[input_slots_[static_cast<size_t>(i)]]; }
  int num_outputs() const { return node_->num_outputs(); }

  // A new tensor as output i, of the node's dtype. The reference stays valid until the kernel ends.
  Tensor& AllocateOutput(int i, const Shape& shape);
  // The same, but in the memory of input `input_index` where this kernel is its last user and the bytes fit: then the
  // output starts with the input's elements.
  Tensor& ForwardInputOrAllocate(int input_index, int output_index, const Shape& shape);
  // Tries the inputs in turn.
  Tensor& ForwardInputOrAllocate(std::initializer_list<int> input_indices, int output_index, const Shape& shape);
  void SetOutput(int i, Tensor value) { outputs_[i] = std::move(value); }
  // Returns input i. It is taken out of the plan if nothing but the `uses` uses that this kernel makes of it is left,
  // so that the kernel may write over it; the input is undefined afterwards. Else it is shared.
  Tensor TakeInput(int i, int32_t uses);
  Tensor AllocateTemp(DType dtype, const Shape& shape) { return Tensor(dtype, shape, *allocator_); }
  // Returns "[[OP node 'NAME' on DEVICE, inputs: DTYPE[SHAPE], ...]]" and the functions that the node stands in, for
  // messages.
  std::string Describe() const;
  // Of the device's memory; for the kernel's own thread, until the kernel ends.
  Allocator& allocator() const { return *allocator_; }
  // Used by the executor: another allocator of the same memory space.
  void set_allocator(Allocator& allocator) { allocator_ = &allocator; }
  // Size of the OpenMP team that this kernel may use now: 1 off the compute thread.
  int num_threads() const { return num_threads_; }
  void set_num_threads(int n) { num_threads_ = n; }
  // For kernels that call functions: the mode of the step, and whether it is inside the task's update gate for this
  // node's sake.
  StepMode mode() const { return mode_; }
  bool in_update_gate() const { return in_update_gate_; }
  void SetCallInfo(StepMode mode, bool in_update_gate) {
    mode_ = mode;
    in_update_gate_ = in_update_gate;
  }

 private:
  const Node* node_;
  Device* device_;
  const StepInfo* step_;
  Tensor* slots_;
  std::span<const int32_t> input_slots_;
  Tensor* outputs_;
  int32_t* uses_;
  Allocator* allocator_;
  int num_threads_ = 1;
  StepMode mode_ = StepMode::kInline;
  bool in_update_gate_ = false;
};

// One object a node of a plan; Compute may run in several steps at once, so members are constant after construction
// or guarded.
class OpKernel {
 public:
  virtual ~OpKernel() = default;
  // Sets every output, or throws cohort::Error; the executor adds op, node and device to the message.
  virtual void Compute(KernelContext& ctx) = 0;
  virtual class AsyncOpKernel* AsAsync() { return nullptr; }
};

// A kernel that waits for something (receive, queue, barrier): it never blocks the thread.
class AsyncOpKernel : public OpKernel {
 public:
  using Done = std::function<void(const Status&)>;
  // `done` is called exactly once, on any thread, after the outputs are set; `ctx` stays valid until then.
  virtual void ComputeAsync(KernelContext& ctx, Done done) = 0;
  void Compute(KernelContext& ctx) final;
  AsyncOpKernel* AsAsync() final { return this; }
};

// For the constructor of a kernel: the node (attributes, dtypes, shapes) and the device it stands on.
struct KernelConstruction {
  const Node& node;
  Device& device;
  FunctionCompiler* functions = nullptr;  // of ops that call functions

  template <typename T>
  const T& attr(std::string_view name) const {
    return node.attr<T>(name);
  }
};

using KernelFactory = std::function<std::unique_ptr<OpKernel>(const KernelConstruction&)>;

// Where the values lie that a kernel reads and makes, on a device whose memory the host cannot read.
enum class KernelMemory {
  kDevice,  // the device's memory, except for inputs and outputs that the op puts into host memory
  kHost,    // host memory
  kEither,  // an input may lie in either; the kernel puts an output where the plan wants it
};

// The kernels of ops: by op and device type, or one for every type of device (a host kernel). Filled once at start by
// the explicit registration list, read-only afterwards.
class KernelRegistry {
 public:
  static KernelRegistry& Global();
  // Throws AlreadyExistsError if there is one.
  void Register(const std::string& op, const std::string& device_type, KernelFactory factory);
  // Registers class K, whose constructor takes a KernelConstruction.
  template <typename K>
  void Register(const std::string& op, const std::string& device_type) {
    Register(op, device_type,
             [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> { return std::make_unique<K>(c); });
  }
  // A kernel that is a function of its context.
  void RegisterFn(const std::string& op, const std::string& device_type, void (*fn)(KernelContext&));
  // Registers a host kernel: it serves every type of device that has no kernel of its own for the op. `memory` is kHost
  // or kEither.
  void RegisterHost(const std::string& op, KernelFactory factory, KernelMemory memory = KernelMemory::kHost);
  template <typename K>
  void RegisterHost(const std::string& op, KernelMemory memory = KernelMemory::kHost) {
    RegisterHost(
        op, [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> { return std::make_unique<K>(c); }, memory);
  }
  void RegisterHostFn(const std::string& op, void (*fn)(KernelContext&), KernelMemory memory = KernelMemory::kHost);
  // Whether the type has a kernel for the op. A host kernel counts for every type.
  bool Has(std::string_view op, std::string_view device_type) const;
  // Returns where the kernel that Create makes has its values; kDevice if there is none.
  KernelMemory MemoryOf(std::string_view op, std::string_view device_type) const;
  // Throws NotFoundError that names op, node, device type and the types that have one.
  std::unique_ptr<OpKernel> Create(const KernelConstruction& construction) const;
  // Returns the ops that have a kernel of the type's own.
  std::vector<std::string> OpsOn(std::string_view device_type) const;
  // Returns the ops that have a host kernel.
  std::vector<std::string> HostOps() const;

 private:
  struct HostKernel {
    KernelFactory factory;
    KernelMemory memory;
  };
  std::map<std::pair<std::string, std::string>, KernelFactory, std::less<>> kernels_;
  std::map<std::string, HostKernel, std::less<>> host_kernels_;
};

}  // namespace cohort
