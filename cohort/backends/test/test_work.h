// TestWork: the work that a kernel of a TEST device enqueues on the compute stream for one call.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/backends/cpu/cpu_variable.h"
#include "cohort/backends/test/test_device.h"
#include "cohort/device/kernel.h"

namespace cohort {

// A tensor as the work on a stream knows it. A tensor in device memory is known by its address, and `host` is
// undefined. A tensor in host memory is kept in `host`, and `address` is null.
struct TestPlace {
  explicit TestPlace(const Tensor& value);
  // Returns a tensor over the bytes. If they are in device memory, it may be used only on the stream's thread, or on
  // another thread while the device has nothing to do.
  Tensor View() const;
  // Copies the elements of `value`, which the kernel has made, to this place. Throws InternalError for another dtype or
  // shape; `what` and `index` name the value in the error ("output", 0).
  void CopyFrom(const Tensor& value, const char* what, int index) const;

  DType dtype;
  Shape shape;
  void* address;
  Tensor host;
};

// Makes a KernelContext for one run of a CPU kernel, and owns what an executor would own: slots and use counts.
class TestHostRun {
 public:
  TestHostRun(const Node& node, Device& host, const StepInfo& step, std::vector<Tensor> inputs);
  KernelContext& context() { return *context_; }
  const Tensor& output(int i) const { return slots_[num_inputs_ + static_cast<size_t>(i)]; }

 private:
  const StepInfo step_;
  const size_t num_inputs_;
  std::vector<Tensor> slots_;
  std::vector<int32_t> input_slots_;
  std::vector<int32_t> uses_;
  std::optional<KernelContext> context_;
};

// A variable that the work reads or changes. The CPU's kernel does not get the variable itself, but a new CpuVariable
// that holds a copy of the old value.
struct TestVariablePlace {
  TestVariablePlace(int input, const VariableResource& variable, const Tensor& old)
      : input(input), name(variable.name()), declared(variable.shape()), old(old) {}
  // Returns a new CpuVariable that holds a copy of the old value.
  std::shared_ptr<CpuVariable> Shadow() const;
  // Copies the old value to `out`. The variable's value lies in `out` after an update, even if the kernel has failed.
  // So the variable keeps its old value. Does nothing if `out` is not set. Run calls it if the kernel does not run, or
  // fails.
  void KeepOld() const;

  int input;  // index of the kernel's input that is the variable's handle
  std::string name;
  Shape declared;
  TestPlace old;
  // The memory for the new value. It may be the memory of the old value. It is not set if the kernel only reads the
  // variable.
  std::optional<TestPlace> out;
};

// Runs a CPU kernel for one call of a kernel of the TEST device. It knows tensors in device memory by address only, so
// it does not keep them alive. It keeps tensors in host memory alive, and also the resources of handles, such as
// variables. The work on the stream owns it. The kernel, and the node, device and step error of `ctx`, must outlive it.
class TestWork {
 public:
  TestWork(OpKernel& kernel, const KernelContext& ctx);
  // Adds the kernel's next output (the first call: output 0). Run copies it to the memory of `value`.
  void AddOutput(const Tensor& value) { outputs_.emplace_back(value); }
  // Adds a variable that the kernel reads or changes.
  void AddVariable(TestVariablePlace variable) { variables_.push_back(std::move(variable)); }
  // Runs the kernel on views, unless the step has failed or was cancelled, and copies the results. If the kernel fails,
  // reports this to the step error. If it did not run or failed, variables keep their old values. Called by the stream.
  void Run() const;

 private:
  void Compute() const;

  OpKernel& kernel_;
  const Node& node_;
  Device& host_;
  const StepInfo step_;
  StepError& error_;
  const std::string where_;
  std::vector<TestPlace> inputs_;
  std::vector<TestPlace> outputs_;
  std::vector<TestVariablePlace> variables_;
};

inline TestDevice& TestDeviceOf(const KernelContext& ctx) { return static_cast<TestDevice&>(ctx.device()); }
// Returns the step error of the kernel's step. Throws InternalError if the step has none.
StepError& TestErrorOf(const KernelContext& ctx);
// Copies `bytes` bytes. Does nothing if `to` and `from` are the same address.
void CopyTestBytes(void* to, const void* from, size_t bytes);

}  // namespace cohort
