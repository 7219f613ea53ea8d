#include "cohort/runtime/execution/update_recorder.h"

#include <chrono>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"
#include "cohort/graph/joined_updates.h"
#include "cohort/graph/rows_may_be_none.h"

namespace cohort {
namespace {

// A stream that has not run a step's updates by then stands still.
constexpr std::chrono::minutes kStreamLimit{10};

// The run that has a turn on this thread.
thread_local UpdateRecorder* turn_of_thread = nullptr;

template <typename Index>
std::vector<int64_t> PlacesOfRows(const Tensor& indices) {
  std::vector<int64_t> places;
  const auto values = indices.values<Index>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != std::numeric_limits<Index>::min()) places.push_back(static_cast<int64_t>(i));
  }
  return places;
}

// Returns the rows `places` of a value on the device, there.
Tensor RowsAt(Device& device, const Tensor& value, const std::vector<int64_t>& places) {
  const Tensor from = device.CopyToHost(value);
  Shape shape = value.shape();
  const size_t row = shape.dim(0) == 0 ? 0 : value.bytes() / static_cast<size_t>(shape.dim(0));
  shape.set_dim(0, std::ssize(places));
  Tensor rows(value.dtype(), shape);
  auto* to = static_cast<char*>(rows.raw_data());
  for (const int64_t place : places) {
    std::memcpy(to, static_cast<const char*>(from.raw_data()) + static_cast<size_t>(place) * row, row);
    to += row;
  }
  return device.CopyFromHost(rows);
}

// Removes the positions whose index is no row (kRowsMayBeNone).
void RemovePositionsWithoutRow(Device& device, UpdateRecord& record) {
  int input = 0, of_indices = -1, of_rows = -1;
  for (const ArgDef& arg : OpRegistry::Global().Get(record.op->op).inputs()) {
    if (arg.dtype == DType::kResource) continue;
    if (arg.name == "indices") of_indices = input;
    if (arg.name == "grad" || arg.name == "updates") of_rows = input;
    ++input;
  }
  Tensor& indices = record.inputs[static_cast<size_t>(of_indices)];
  Tensor& rows = record.inputs[static_cast<size_t>(of_rows)];
  const Tensor on_host = device.CopyToHost(indices);
  const std::vector<int64_t> places =
      on_host.dtype() == DType::kInt32 ? PlacesOfRows<int32_t>(on_host) : PlacesOfRows<int64_t>(on_host);
  indices = RowsAt(device, indices, places);
  rows = RowsAt(device, rows, places);
}

}  // namespace

UpdateRecorder::UpdateRecorder(const Plan& plan, GatePass& gate, std::function<void(const Status&)> on_failure)
    : plan_(plan), gate_(gate), on_failure_(std::move(on_failure)) {}

const UpdateRecorder::UpdateOps& UpdateRecorder::OpsOf(const Node& node) {
  UpdateOps& ops = ops_[&node];
  if (!ops.empty()) return ops;
  const std::optional<JoinedUpdates> joined = FindJoinedUpdates(node);
  const OpDef& op = joined ? *joined->op : node.op();
  AttrMap attrs;
  for (const AttrDef& attr : op.attrs()) {
    if (const auto value = node.attrs().find(attr.name); value != node.attrs().end()) attrs.insert(*value);
  }
  for (const std::string& name : joined ? joined->names : std::vector<std::string>{node.name()}) {
    ops.push_back(std::make_shared<const UpdateOp>(UpdateOp{op.name(), name, attrs}));
    if (node.has_attr(kRowsMayBeNone)) may_have_no_rows_.insert(ops.back().get());
  }
  return ops;
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
  const UpdateOps& ops = OpsOf(*node.node);
  const int inputs_of_each = context.num_inputs() / static_cast<int>(ops.size());
  under_way_.clear();
  for (int i = 0; const std::shared_ptr<const UpdateOp>& op : ops) {
    UpdateRecord record{op, {}, {}};
    for (const int end = i + inputs_of_each; i < end; ++i) {
      const Tensor& input = context.input(i);
      if (input.dtype() != DType::kResource) {
        record.inputs.push_back(input);
        continue;
      }
      const auto& variable = ResourceOf<VariableResource>(input);
      record.variables.push_back({variable.container(), variable.name()});
    }
    under_way_.push_back(std::move(record));
  }
}

void UpdateRecorder::UpdateDone() {
  for (UpdateRecord& record : under_way_) set_.updates.push_back(std::move(record));
  under_way_.clear();
  ends_.push_back(set_.updates.size());
}

void UpdateRecorder::EndTurn() {
  if (!has_turn_) return;
  under_way_.clear();  // of a kernel that has thrown
  if (plan_.on_streams) WaitForStream();
  turn_of_thread = nullptr;
  has_turn_ = false;
  ends_.clear();
  const Status status = gate_.EndTurn(std::exchange(set_, {}));
  if (status.ok()) return;
  on_failure_(Status(
      status.code(),
      StrCat("[update observer] the updates of the step were applied, but their observer failed: ", status.message())));
}

// The updates of the turn stand on the stream one after another, and none is applied behind an error. So those that
// were applied are the first ones. A node counts as one update, also if it joins several.
void UpdateRecorder::WaitForStream() {
  const auto deadline = std::chrono::steady_clock::now() + kStreamLimit;
  const Status reached = plan_.device.compute_stream()->Record()->Synchronize(deadline);
  if (!reached.ok()) on_failure_(reached);
  const auto applied = static_cast<size_t>(error_->updates_applied() - applied_before_);
  if (applied < ends_.size()) set_.updates.resize(applied == 0 ? 0 : ends_[applied - 1]);
  for (UpdateRecord& record : set_.updates) {
    if (may_have_no_rows_.count(record.op.get()) > 0) RemovePositionsWithoutRow(plan_.device, record);
  }
}

}  // namespace cohort
