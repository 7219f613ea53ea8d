// OpKernel: computes an op on a device. KernelContext: everything that a kernel may use while it runs.
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

// The argument of a kernel: its inputs, its outputs, its device and its step. A run makes it for one execution of one
// node, and owns it. One thread at a time may use it: the thread that calls Compute, or for an AsyncOpKernel the
// threads that work on its result, until the kernel calls `done`.
class KernelContext {
 public:
  // Used by the executor. `slots` hold a tensor for each output of the plan's nodes. `uses` says for each slot how many
  // uses of it are left. `input_slots` says which slots are the kernel's inputs.
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

  // Makes a new tensor with the node's dtype, and makes it output i. The reference is valid until the kernel ends.
  Tensor& AllocateOutput(int i, const Shape& shape);
  // As AllocateOutput, but the output gets the memory of input `input_index` if no later kernel uses that input,
  // nothing else holds the input's buffer, and the input has the size and the memory space that the output needs. The
  // output then begins with the input's elements.
  Tensor& ForwardInputOrAllocate(int input_index, int output_index, const Shape& shape);
  // As above, with the first of these inputs that can give its memory.
  Tensor& ForwardInputOrAllocate(std::initializer_list<int> input_indices, int output_index, const Shape& shape);
  void SetOutput(int i, Tensor value) { outputs_[i] = std::move(value); }
  // Returns input i. `uses` is how often this value is an input of this kernel. If no other kernel will use the value,
  // moves it out of its slot: input(i) is then undefined, and the kernel may overwrite the value if it owns the buffer
  // alone. Otherwise the result shares the input's buffer.
  Tensor TakeInput(int i, int32_t uses);
  Tensor AllocateTemp(DType dtype, const Shape& shape) { return Tensor(dtype, shape, *allocator_); }
  // Returns "[[OP node 'NAME' on DEVICE, inputs: DTYPE[SHAPE], ...]]" for error messages. If the node is in the body of
  // a function, adds the functions that were called. Adds the node's kErrorNote, if it has one.
  std::string Describe() const;
  // Returns the same, without a note, with another op and name: for a kernel that does a part of the work of that node.
  std::string DescribeAs(const std::string& op, const std::string& name) const;
  // Returns the allocator for this kernel: of the device's memory, or of host memory for a host kernel. During Compute,
  // only the thread that runs Compute may use it. An AsyncOpKernel may use it on any thread until it calls `done`.
  Allocator& allocator() const { return *allocator_; }
  // Used by the executor. Sets another allocator of the same memory space.
  void set_allocator(Allocator& allocator) { allocator_ = &allocator; }
  // Returns how many OpenMP threads the kernel may use now. It is 1 on every thread but the compute thread.
  int num_threads() const { return num_threads_; }
  void set_num_threads(int n) { num_threads_ = n; }
  // For kernels that call functions. Returns the mode in which the function is to run.
  StepMode mode() const { return mode_; }
  // For kernels that call functions. Returns whether this node changes variables. If it does, the step is inside the
  // task's update gate while the node runs.
  bool in_update_gate() const { return in_update_gate_; }
  // Used by the executor. Sets what the two functions above return.
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

// The kernel of one node of a plan. The plan owns it. Several steps may call Compute or ComputeAsync at the same time,
// so members must be constant after construction, or guarded by a lock.
class OpKernel {
 public:
  virtual ~OpKernel() = default;
  // Computes the outputs and sets all of them. Throws an exception if it fails, usually a cohort::Error. The run adds
  // op, node and device to the message, and fails the step.
  virtual void Compute(KernelContext& ctx) = 0;
  virtual class AsyncOpKernel* AsAsync() { return nullptr; }
};

// A kernel that waits for something, such as a receive, a queue or a barrier. No thread is blocked while it waits.
class AsyncOpKernel : public OpKernel {
 public:
  using Done = std::function<void(const Status&)>;
  // Starts the work and returns. Calls `done` exactly once, on any thread, when the outputs are set or the work has
  // failed. `ctx` is valid until then. May throw instead, but then must never call `done`.
  virtual void ComputeAsync(KernelContext& ctx, Done done) = 0;
  void Compute(KernelContext& ctx) final;  // throws InternalError
  AsyncOpKernel* AsAsync() final { return this; }
};

// The argument of a kernel's constructor: the node with its attributes, dtypes and shapes, and its device.
struct KernelConstruction {
  const Node& node;
  Device& device;
  FunctionCompiler* functions = nullptr;  // for kernels that call functions

  template <typename T>
  const T& attr(std::string_view name) const {
    return node.attr<T>(name);
  }
};

using KernelFactory = std::function<std::unique_ptr<OpKernel>(const KernelConstruction&)>;

// The memory in which inputs and outputs of a kernel lie, on a device whose memory the host cannot read.
enum class KernelMemory {
  kDevice,  // device memory; host memory for inputs and outputs that the op declares as host values
  kHost,    // host memory
  kEither,  // inputs may lie in either memory; the kernel puts outputs where the plan wants them
};

// The kernels of all ops. A kernel is registered for an op and one device type, or as a host kernel for every device
// type. cohort/registration.h fills it once at the start. After that it never changes, and all threads may read it.
class KernelRegistry {
 public:
  static KernelRegistry& Global();
  // Throws AlreadyExistsError if the op has a kernel for this device type.
  void Register(const std::string& op, const std::string& device_type, KernelFactory factory);
  // Registers the class K. Its constructor takes a KernelConstruction.
  template <typename K>
  void Register(const std::string& op, const std::string& device_type) {
    Register(op, device_type,
             [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> { return std::make_unique<K>(c); });
  }
  // Registers a kernel that is a function of its context.
  void RegisterFn(const std::string& op, const std::string& device_type, void (*fn)(KernelContext&));
  // Registers a host kernel. It serves every device type that has no kernel of its own for the op. Throws
  // AlreadyExistsError if the op has a host kernel. Requires: `memory` is kHost or kEither.
  void RegisterHost(const std::string& op, KernelFactory factory, KernelMemory memory = KernelMemory::kHost);
  template <typename K>
  void RegisterHost(const std::string& op, KernelMemory memory = KernelMemory::kHost) {
    RegisterHost(
        op, [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> { return std::make_unique<K>(c); }, memory);
  }
  void RegisterHostFn(const std::string& op, void (*fn)(KernelContext&), KernelMemory memory = KernelMemory::kHost);
  // Returns whether devices of the type have a kernel for the op. A host kernel counts for every type.
  bool Has(std::string_view op, std::string_view device_type) const;
  // Returns the memory of the inputs and outputs of the kernel that Create would make. Returns kDevice if there is no
  // kernel.
  KernelMemory MemoryOf(std::string_view op, std::string_view device_type) const;
  // Returns a new kernel for the node. Throws NotFoundError if there is none; the message names op, node, device type,
  // and the device types that have a kernel for the op. Throws also what the constructor of the kernel throws.
  std::unique_ptr<OpKernel> Create(const KernelConstruction& construction) const;
  // Returns the ops that have a kernel registered for this device type.
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
