#include "cohort/runtime/execution/executor.h"

#include <utility>

#include "cohort/runtime/execution/function_library.h"
#include "cohort/runtime/plan/plan_compiler.h"

namespace cohort {

Executor::Executor(std::unique_ptr<Graph> graph, Device& device, FunctionLibrary* functions)
    : plan_(CompilePlan(std::move(graph), device, functions)),
      arena_planner_(plan_->leaves),
      sequential_runs_(*plan_, arena_planner_),
      dataflow_runs_(*plan_, arena_planner_),
      recordings_(functions == nullptr ? StepRecordings::For(*plan_) : nullptr) {}

Executor::~Executor() = default;

void Executor::RunAsync(const StepInfo& step, Mode mode, Done done, const NextArgs* next) {
  if (recordings_ != nullptr) [[unlikely]] {
    const auto launch = [this, &step](Mode launch_mode, Done launch_done) {
      Launch(step, launch_mode, std::move(launch_done));
    };
    return recordings_->Start(step, mode, std::move(done), launch, next);
  }
  Launch(step, mode, std::move(done));
}

void Executor::Launch(const StepInfo& step, Mode mode, Done done) {
  if (is_synchronous()) {
    Start(sequential_runs_.Take(), step, mode, std::move(done));
  } else {
    Start(dataflow_runs_.Take(), step, mode, std::move(done));
  }
}

void Executor::LookAt(std::vector<RunLook>* looks) {
  sequential_runs_.LookAt(looks);
  dataflow_runs_.LookAt(looks);
  if (plan_->own_functions != nullptr) plan_->own_functions->LookAt(looks);
}

template <typename Run>
void Executor::Start(Run& run, const StepInfo& step, Mode mode, Done done) {
  if (mode != Mode::kDevice) {
    run.Start(step, mode, std::move(done), mode == Mode::kInline ? StepThread::kCaller : StepThread::kOther);
  } else if (step.caller != nullptr && device().compute_thread().IsOwnThread()) {
    run.Start(step, mode, std::move(done), StepThread::kCompute);
  } else {
    run.StartOnComputeThread(step, mode, std::move(done));
  }
}

}  // namespace cohort
