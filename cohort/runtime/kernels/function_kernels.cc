// Kernels of ops that call functions. They serve every device type, because the called functions do the computing. A
// kernel takes the inputs, calls the function, and makes its results the outputs (SetResults). A Loop calls the
// condition and the body of a While in turn.
#include <atomic>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/kernels/waiting_kernel.h"
#include "cohort/runtime/placement/memory_placement.h"

namespace cohort {
namespace {

using Done = AsyncOpKernel::Done;

CompiledFunction& FunctionOf(const KernelConstruction& c, const char* attr) {
  if (c.functions == nullptr) {
    throw InternalError(StrCat("[kernel] nobody compiles functions for ", c.node.Describe()));
  }
  return c.functions->Compile(c.node, c.attr<FunctionName>(attr).name);
}

std::vector<Tensor> InputsFrom(const KernelContext& ctx, int first) {
  std::vector<Tensor> inputs;
  for (int i = first; i < ctx.num_inputs(); ++i) inputs.push_back(ctx.input(i));
  return inputs;
}

// Makes `value` output i of the node, in the memory where it must lie. Throws InvalidArgumentError if it has another
// dtype or shape than the node declares.
void SetResult(KernelContext& ctx, int i, Tensor value) {
  const Output output = ctx.node().output(i);
  if (value.dtype() != output.dtype() || !output.shape().IsCompatibleWith(value.shape())) {
    throw InvalidArgumentError(StrCat("[function] expected for result ", i, " of ", ctx.node().Describe(), " ",
                                      output.dtype(), output.shape(), "; the function gave ", value.dtype(),
                                      value.shape()));
  }
  ctx.SetOutput(i, PlacedAs(ctx, i, std::move(value)));
}

// Sets the results [from, end), and then calls `done`. If a result must be copied from the device, waits for the copy
// without a thread.
void SetResultsFrom(KernelContext& ctx, size_t from, std::vector<Tensor> results, const Done& done) {
  try {
    for (size_t i = from; i < results.size(); ++i) {
      const auto output = static_cast<int>(i);
      if (MustComeToHost(ctx, output, results[i])) {
        const Tensor value = std::move(results[i]);
        return CopyToHostInStep(
            ctx, value, [&ctx, i, results = std::move(results), done](const Status& status, Tensor copy) mutable {
              if (!status.ok()) return done(status);
              results[i] = std::move(copy);
              SetResultsFrom(ctx, i, std::move(results), done);
            });
      }
      SetResult(ctx, output, std::move(results[i]));
    }
  } catch (...) {
    return done(Status::FromCurrentException());
  }
  done(Status());
}

void SetResults(KernelContext& ctx, std::vector<Tensor> results, const Done& done) {
  if (results.size() != static_cast<size_t>(ctx.num_outputs())) {
    return done(Status(Code::kInvalidArgument, StrCat("[function] expected ", ctx.num_outputs(), " results for ",
                                                      ctx.node().Describe(), "; the function gave ", results.size())));
  }
  SetResultsFrom(ctx, 0, std::move(results), done);
}

void Call(CompiledFunction& function, KernelContext& ctx, std::vector<Tensor> args, Done done) {
  function.CallAsync(ctx, ctx.mode(), std::move(args),
                     [&ctx, done = std::move(done)](const Status& status, std::vector<Tensor> results) {
                       status.ok() ? SetResults(ctx, std::move(results), done) : done(status);
                     });
}

// Returns whether the value counts as true, by TensorFlow's rule: a scalar by its value, any other tensor if it has
// elements.
bool IsTrue(const Tensor& value) {
  if (!value.shape().IsScalar()) return value.num_elements() > 0;
  switch (value.dtype()) {
    case DType::kBool: return value.scalar<bool>();
    case DType::kFloat32: return value.scalar<float>() != 0;
    case DType::kFloat64: return value.scalar<double>() != 0;
    case DType::kBfloat16: return static_cast<float>(value.scalar<bfloat16>()) != 0;
    case DType::kInt32: return value.scalar<int32_t>() != 0;
    case DType::kInt64: return value.scalar<int64_t>() != 0;
    case DType::kUint8: return value.scalar<uint8_t>() != 0;
    case DType::kString: return !value.scalar<std::string>().empty();
    default: break;
  }
  throw InvalidArgumentError(StrCat("[function] expected a condition that is true or false; got ", value.dtype()));
}

class CallKernel final : public WaitingKernel<WaitKind::kCall> {
 public:
  explicit CallKernel(const KernelConstruction& c) : function_(FunctionOf(c, "f")) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    Call(function_, ctx, InputsFrom(ctx, 0), std::move(done));
  }

 private:
  CompiledFunction& function_;
};

class IfKernel final : public WaitingKernel<WaitKind::kCall> {
 public:
  explicit IfKernel(const KernelConstruction& c)
      : then_(FunctionOf(c, "then_branch")), else_(FunctionOf(c, "else_branch")) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    Call(IsTrue(ctx.input(0)) ? then_ : else_, ctx, InputsFrom(ctx, 1), std::move(done));
  }

 private:
  CompiledFunction& then_;
  CompiledFunction& else_;
};

// One run of a While loop. It deletes itself at the end. If a call ends before CallAsync returns, the next call follows
// in a loop, so the stack does not grow.
class Loop {
 public:
  Loop(KernelContext& ctx, CompiledFunction& cond, CompiledFunction& body, Done done)
      : ctx_(ctx), cond_(cond), body_(body), done_(std::move(done)), mode_(ctx.mode()), values_(InputsFrom(ctx, 0)) {}

  void Start() {
    // A loop must not run on a network thread.
    if (mode_ != StepMode::kNetwork) return Run();
    mode_ = StepMode::kDevice;
    Reschedule();
  }

 private:
  enum State : int { kCalling, kEnded, kWaiting };
  // After so many calls on the compute thread, the loop lets other work of the thread run.
  static constexpr int kCallsInARow = 256;

  void Reschedule() {
    ctx_.device().compute_thread().Schedule([this] { Run(); });
  }

  void Run() {
    for (int calls = 0;; ++calls) {
      if (mode_ == StepMode::kDevice && calls == kCallsInARow) return Reschedule();
      const CancellationManager* cancellation = ctx_.step().cancellation;
      if (cancellation != nullptr && cancellation->cancelled()) return Finish(cancellation->status());
      state_.store(kCalling);
      StartCall();
      if (state_.exchange(kWaiting) == kCalling) return;  // the thread that ends the call continues the loop
      if (!TakeResults()) return;
    }
  }

  void StartCall() {
    CompiledFunction& function = in_body_ ? body_ : cond_;
    std::vector<Tensor> args = in_body_ ? std::move(values_) : values_;
    const auto ended = [this](const Status& status, std::vector<Tensor> results) {
      status_ = status;
      results_ = std::move(results);
      if (state_.exchange(kEnded) == kWaiting && TakeResults()) Run();
    };
    try {
      function.CallAsync(ctx_, mode_, std::move(args), ended);
    } catch (...) {
      ended(Status::FromCurrentException(), {});
    }
  }

  // Returns false if the loop has ended (then this object is deleted), or if it continues later.
  bool TakeResults() {
    if (!status_.ok()) return Finish(status_), false;
    try {
      if (in_body_) {
        values_ = std::move(results_);
        in_body_ = false;
        return true;
      }
      const Tensor go_on = results_.at(0);
      if (!go_on.space().is_host()) return FetchCondition(go_on), false;
      in_body_ = IsTrue(go_on);
      if (in_body_) return true;
    } catch (...) {
      return Finish(Status::FromCurrentException()), false;
    }
    auto end = [&ctx = ctx_, values = std::move(values_), done = std::move(done_)]() mutable {
      SetResults(ctx, std::move(values), done);
    };
    delete this;
    return end(), false;
  }

  // Continues the loop when the condition has been copied from the device.
  void FetchCondition(const Tensor& go_on) {
    CopyToHostInStep(ctx_, go_on, [this](const Status& status, Tensor value) {
      status_ = status;
      results_ = {std::move(value)};
      if (TakeResults()) Run();
    });
  }

  void Finish(const Status& status) {
    const auto end = [done = std::move(done_), status] { done(status); };
    delete this;
    end();
  }

  KernelContext& ctx_;
  CompiledFunction& cond_;
  CompiledFunction& body_;
  Done done_;
  StepMode mode_;
  std::vector<Tensor> values_;
  bool in_body_ = false;
  std::atomic<int> state_{kCalling};
  Status status_;                // of the latest call
  std::vector<Tensor> results_;  // of the latest call
};

class WhileKernel final : public WaitingKernel<WaitKind::kCall> {
 public:
  explicit WhileKernel(const KernelConstruction& c) : cond_(FunctionOf(c, "cond")), body_(FunctionOf(c, "body")) {}
  void ComputeAsync(KernelContext& ctx, Done done) override { (new Loop(ctx, cond_, body_, std::move(done)))->Start(); }

 private:
  CompiledFunction& cond_;
  CompiledFunction& body_;
};

}  // namespace

void RegisterFunctionKernels(KernelRegistry& registry) {
  registry.RegisterHost<CallKernel>("PartitionedCall", KernelMemory::kEither);
  registry.RegisterHost<CallKernel>("StatefulPartitionedCall", KernelMemory::kEither);
  registry.RegisterHost<IfKernel>("If", KernelMemory::kEither);
  registry.RegisterHost<IfKernel>("StatelessIf", KernelMemory::kEither);
  registry.RegisterHost<WhileKernel>("While", KernelMemory::kEither);
  registry.RegisterHost<WhileKernel>("StatelessWhile", KernelMemory::kEither);
}

}  // namespace cohort
