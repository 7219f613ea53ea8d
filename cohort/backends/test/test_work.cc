#include "cohort/backends/test/test_work.h"

#include <cstring>
#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// What a CPU kernel may know of the step. The step of a function's body may have ended when the work runs.
StepInfo StepForWork(const StepInfo& step) {
  StepInfo kept;
  kept.step_id = step.step_id;
  kept.cancellation = step.cancellation;
  kept.closure = step.closure;
  return kept;
}

}  // namespace

StepError& TestErrorOf(const KernelContext& ctx) {
  if (ctx.step().error != nullptr) return *ctx.step().error;
  throw InternalError(
      StrCat("[test device] expected a step that keeps errors of its streams; got none for ", ctx.node().Describe()));
}

void CopyTestBytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

TestPlace::TestPlace(const Tensor& value)
    : dtype(value.dtype()),
      shape(value.shape()),
      address(value.space().is_host() ? nullptr : TrueAddress(value)),
      host(value.space().is_host() ? value : Tensor()) {}

Tensor TestPlace::View() const { return host.defined() ? host : BorrowedView(dtype, shape, address); }

void TestPlace::CopyFrom(const Tensor& value, const char* what, int index) const {
  if (value.dtype() != dtype || value.shape() != shape) {
    throw InternalError(StrCat("[test device] expected ", what, " ", index, " as ", dtype, shape,
                               ", as the op's shape rule says; the kernel made ", value.dtype(), value.shape()));
  }
  CopyTestBytes(address, value.raw_data(), value.bytes());
}

TestHostRun::TestHostRun(const Node& node, Device& host, const StepInfo& step, std::vector<Tensor> inputs)
    : step_(step),
      num_inputs_(inputs.size()),
      slots_(std::move(inputs)),
      input_slots_(num_inputs_),
      uses_(num_inputs_ + static_cast<size_t>(node.num_outputs()), 2) {  // 2: not to be worked on in place
  slots_.resize(uses_.size());
  for (size_t i = 0; i < num_inputs_; ++i) input_slots_[i] = static_cast<int32_t>(i);
  context_.emplace(node, host, step_, slots_.data(), input_slots_, slots_.data() + num_inputs_, uses_.data());
}

std::shared_ptr<CpuVariable> TestVariablePlace::Shadow() const {
  auto shadow = std::make_shared<CpuVariable>(name, old.dtype, declared);
  shadow->Assign(old.View().Clone());
  return shadow;
}

void TestVariablePlace::KeepOld() const {
  if (out)
    CopyTestBytes(out->address, old.address, static_cast<size_t>(old.shape.num_elements()) * DTypeSize(old.dtype));
}

TestWork::TestWork(OpKernel& kernel, const KernelContext& ctx)
    : kernel_(kernel),
      node_(ctx.node()),
      host_(TestDeviceOf(ctx).host()),
      step_(StepForWork(ctx.step())),
      error_(TestErrorOf(ctx)),
      where_(ctx.Describe()) {
  for (int i = 0; i < ctx.num_inputs(); ++i) inputs_.emplace_back(ctx.input(i));
}

void TestWork::Run() const {
  if (error_.MayRun(step_.cancellation)) {
    try {
      Compute();
      if (node_.op().updates_variable()) error_.CountUpdate();
      return;
    } catch (...) {
      const Status status = Status::FromCurrentException();
      error_.Set(Status(status.code(), StrCat(status.message(), "\n  ", where_)));
    }
  }
  for (const TestVariablePlace& variable : variables_) variable.KeepOld();
}

void TestWork::Compute() const {
  std::vector<Tensor> inputs;
  for (const TestPlace& input : inputs_) inputs.push_back(input.View());
  std::vector<std::shared_ptr<CpuVariable>> shadows;
  for (const TestVariablePlace& variable : variables_) {
    shadows.push_back(variable.Shadow());
    inputs[static_cast<size_t>(variable.input)] = MakeResourceHandle(shadows.back());
  }
  TestHostRun run(node_, host_, step_, std::move(inputs));
  kernel_.Compute(run.context());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].CopyFrom(run.output(static_cast<int>(i)), "output", static_cast<int>(i));
  }
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].out) variables_[i].out->CopyFrom(shadows[i]->Read(), "variable", static_cast<int>(i));
  }
}

}  // namespace cohort
