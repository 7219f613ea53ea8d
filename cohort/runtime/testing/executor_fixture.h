// The base of the executor's tests: a device of each type, a graph with arguments and results, and steps.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cpu/cpu_variable.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/device/backend.h"
#include "cohort/device/cancellation.h"
#include "cohort/device/kernel.h"
#include "cohort/runtime/execution/executor.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort::testing {

// Keeps the `done` of kernels that wait (HoldingKernel) until a test calls Release. Thread-safe.
class HeldKernels {
 public:
  void Hold(AsyncOpKernel::Done done) {
    MutexLock lock(mu_);
    held_.push_back(std::move(done));
    changed_.NotifyAll();
  }
  // Waits until `count` kernels are held. Throws DeadlineExceededError after a minute.
  void WaitFor(size_t count) {
    MutexLock lock(mu_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (held_.size() < count) {
      if (!changed_.WaitUntil(mu_, deadline)) throw DeadlineExceededError("kernels did not come within a minute");
    }
  }
  // Ends the kernels that are held now: calls their `done` on the calling thread.
  void Release() {
    std::vector<AsyncOpKernel::Done> all;
    {
      MutexLock lock(mu_);
      all.swap(held_);
    }
    for (const auto& done : all) done(Status());
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::vector<AsyncOpKernel::Done> held_ COHORT_GUARDED_BY(mu_);
};

// A kernel whose output is its input. It ends when a test calls held().Release().
template <HeldKernels& (*held)()>
class HoldingKernel final : public AsyncOpKernel {
 public:
  explicit HoldingKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ctx.SetOutput(0, ctx.input(0));
    held().Hold(std::move(done));
  }
};

// A test whose parameter is a device type. It builds `graph_`, compiles it, and runs steps.
class ExecutorFixture : public DeviceKindTest {
 protected:
  static constexpr std::chrono::seconds kPatience{60};

  ExecutorFixture()
      : task_(std::make_shared<TaskResources>()),
        devices_(BackendRegistry::Global().MakeDevices(DeviceName::Parse("/job:localhost/replica:0/task:0"),
                                                       {{GetParam(), 1}}, 1, task_, "test")),
        graph_(std::make_unique<Graph>()),
        g_(*graph_) {}

  // Returns the device of the type under test.
  Device& its_device() { return *devices_.back(); }
  // Returns a float32 variable of the class that the device's kernels use.
  std::shared_ptr<VariableResource> MakeVariable(const std::string& name, const Shape& shape) {
    if (is_cpu()) {
      return task_->resources.LookupOrCreate<CpuVariable>(
          "", name, [&] { return std::make_shared<CpuVariable>(name, DType::kFloat32, shape); });
    }
    return task_->resources.LookupOrCreate<VariableResource>("", name, [&] {
      return std::make_shared<VariableResource>(name, DType::kFloat32, shape, its_device().allocator());
    });
  }
  Output Arg(DType dtype, int index) { return g_.Op("_Arg").Attr("T", dtype).Attr("index", index).Finish1(); }
  void Retval(Output value, int index) { g_.Op("_Retval").Input(value).Attr("index", index).Finish(); }
  // Adds a node of the op `op`, such as an op that the test has registered, with the one input `x`.
  Output Own(const std::string& op, Output x) { return g_.Op(op).Input(x).Finish1(); }
  // Compiles `graph_`, which is moved away.
  std::unique_ptr<Executor> Compile() { return std::make_unique<Executor>(std::move(graph_), its_device()); }

  // One step. It may still be running. Requires: it has ended before the test destroys it.
  struct Step {
    std::vector<Tensor> args;
    std::vector<Tensor> rets;
    CancellationManager cancellation;
    StepInfo info;
    std::promise<Status> ended;
    std::future<Status> end = ended.get_future();

    // Waits until the step has ended and returns its status. Returns kDeadlineExceeded if the step has not ended after
    // a minute. May be called once.
    Status Wait() {
      if (end.wait_for(kPatience) != std::future_status::ready)
        return Status(Code::kDeadlineExceeded, "the step hangs");
      return end.get();
    }
  };
  // Returns a step that has not started. `rets` is the number of its results.
  static std::unique_ptr<Step> Prepare(std::vector<Tensor> args, int rets) {
    auto step = std::make_unique<Step>();
    step->args = std::move(args);
    step->rets.resize(static_cast<size_t>(rets));
    step->info = {1, nullptr, &step->cancellation, step->args, step->rets};
    return step;
  }
  static void Start(Executor& executor, Step& step, Executor::Mode mode = Executor::Mode::kInline) {
    executor.RunAsync(step.info, mode, [&step](const Status& status) { step.ended.set_value(status); });
  }
  static std::unique_ptr<Step> Start(Executor& executor, std::vector<Tensor> args, int rets,
                                     Executor::Mode mode = Executor::Mode::kInline) {
    auto step = Prepare(std::move(args), rets);
    Start(executor, *step, mode);
    return step;
  }
  // Runs a step, waits for its end and returns its results. Throws the error that made the step fail.
  static std::vector<Tensor> Run(Executor& executor, std::vector<Tensor> args, int rets,
                                 Executor::Mode mode = Executor::Mode::kInline) {
    const auto step = Start(executor, std::move(args), rets, mode);
    step->Wait().ThrowIfError();
    return step->rets;
  }

  std::shared_ptr<TaskResources> task_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Graph> graph_;
  Graph& g_;
};

}  // namespace cohort::testing
