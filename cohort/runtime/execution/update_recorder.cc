#include "cohort/runtime/execution/update_recorder.h"

#include <chrono>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"

namespace cohort {
namespace {

// A stream that has not run a step's updates by then stands still.
constexpr std::chrono::minutes kStreamLimit{10};

// The run that has a turn on this thread.
thread_local UpdateRecorder* turn_of_thread = nullptr;

}  // namespace

UpdateRecorder::UpdateRecorder(const Plan& plan, GatePass& gate, std::function<void(const Status&)> on_failure)
    : plan_(plan), gate_(gate), on_failure_(std::move(on_failure)) {}

const std::shared_ptr<const UpdateOp>& UpdateRecorder::OpOf(const Node& node) {
  std::shared_ptr<const UpdateOp>& op = ops_[&node];
  if (op != nullptr) return op;
  UpdateOp made{node.op_name(), node.name(), {}};
  for (const AttrDef& attr : node.op().attrs()) {
    if (const auto value = node.attrs().find(attr.name); value != node.attrs().end()) made.attrs.insert(*value);
  }
  op = std::make_shared<const UpdateOp>(std::move(made));
  return op;
}

void UpdateRecorder::BeginUpdate(const PlanNode& node, const KernelContext& context) {
  if (!has_turn_) {
    if (turn_of_thread != nullptr) turn_of_thread->EndTurn();
    gate_.BeginTurn();
    turn_of_thread = this;
    has_turn_ = true;
    const StepInfo& step = context.step();
    set_.sequence = step.step_id;
    set_.device_name = plan_.device.name();
    set_.device = &plan_.device;
    if (step.origin != nullptr) set_.origin = *step.origin;
    error_ = step.error;
    applied_before_ = error_ != nullptr ? error_->updates_applied() : 0;
  }
  under_way_ = {OpOf(*node.node), {}, {}};
  for (int i = 0; i < context.num_inputs(); ++i) {
    const Tensor& input = context.input(i);
    if (input.dtype() != DType::kResource) {
      under_way_.inputs.push_back(input);
      continue;
    }
    const auto& variable = ResourceOf<VariableResource>(input);
    under_way_.variables.push_back({variable.container(), variable.name()});
  }
}

void UpdateRecorder::UpdateDone() { set_.updates.push_back(std::move(under_way_)); }

void UpdateRecorder::EndTurn() {
  if (!has_turn_) return;
  under_way_ = {};  // of a kernel that has thrown
  if (plan_.on_streams) WaitForStream();
  turn_of_thread = nullptr;
  has_turn_ = false;
  const Status status = gate_.EndTurn(std::exchange(set_, {}));
  if (status.ok()) return;
  on_failure_(Status(
      status.code(),
      StrCat("[update observer] the updates of the step were applied, but their observer failed: ", status.message())));
}

// The updates of the turn stand on the stream one after another, and none is applied behind an error. So those that
// were applied are the first ones.
void UpdateRecorder::WaitForStream() {
  const auto deadline = std::chrono::steady_clock::now() + kStreamLimit;
  const Status reached = plan_.device.compute_stream()->Record()->Synchronize(deadline);
  if (!reached.ok()) on_failure_(reached);
  const auto applied = static_cast<size_t>(error_->updates_applied() - applied_before_);
  if (applied < set_.updates.size()) set_.updates.resize(applied);
}

}  // namespace cohort
