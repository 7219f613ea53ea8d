#include "cohort/backends/cuda/passes/check_values.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/kernels/row_update.h"
#include "cohort/backends/cuda/kernels/value_checks.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/joined_updates.h"
#include "cohort/graph/rows_may_be_none.h"
#include "cohort/graph/topological_order.h"

namespace cohort::cuda {
namespace {

bool WaitsForNothing(const Node& node) { return node.num_inputs() == 0 && node.control_inputs().empty(); }

bool MayUpdate(const Node& node) { return node.op().updates_variable() || !CalledFunctions(node).empty(); }

// Returns whether the node may wait for something outside of the partition.
bool MayWait(const Node& node, const std::string& device_type) {
  const std::string& op = node.op_name();
  if (op == "_Arg" || op == "Const" || op == "NoOp" || op == "Identity") return false;
  return KernelRegistry::Global().MemoryOf(op, device_type) != KernelMemory::kDevice;
}

// An update of rows: a node, or one of the updates that the node joins.
struct RowsOfVariable {
  Output variable;
  Output indices;
  std::string op;
  std::string name;  // of the update
};

// Returns the updates of rows that the node makes by a kernel of the device.
std::vector<RowsOfVariable> RowsUpdatedBy(const Node& node, const std::string& device_type) {
  if (!node.op().updates_variable() || node.num_inputs() == 0 || node.input(0).dtype() != DType::kResource) return {};
  if (KernelRegistry::Global().MemoryOf(node.op_name(), device_type) != KernelMemory::kDevice) return {};
  const std::optional<JoinedUpdates> joined = FindJoinedUpdates(node);
  const OpDef& op = joined ? *joined->op : node.op();
  const auto& args = op.inputs();
  const auto indices =
      std::find_if(args.begin(), args.end(), [](const ArgDef& arg) { return arg.name == "indices"; }) - args.begin();
  const int inputs = static_cast<int>(args.size());
  if (indices == inputs) return {};
  std::vector<RowsOfVariable> updates;
  for (int first = 0; const std::string& name : joined ? joined->names : std::vector<std::string>{node.name()}) {
    updates.push_back({node.input(first), node.input(first + static_cast<int>(indices)), op.name(), name});
    first += inputs;
  }
  return updates;
}

// What the pass knows about a partition.
class Partition {
 public:
  Partition(const Graph& graph, const std::string& device_type)
      : order_(TopologicalOrder(graph)), device_type_(device_type) {
    for (Node* node : order_) {
      if (MayUpdate(*node)) updates_.push_back(node);
      if (node->op_name() == "AssignVariableOp" || !CalledFunctions(*node).empty()) assigns_ = true;
    }
  }

  const std::vector<Node*>& order() const { return order_; }

  // Returns the updates that have to wait for a node that checks values and updates nothing: none if the node itself
  // waits for an update or for another device.
  std::vector<Node*> WaitingFor(const Node& check) const {
    std::vector<Node*> waiting;
    if (!NeedsNothingElse(check)) return waiting;
    const std::vector<bool> behind = NodesBehind(check);
    std::copy_if(updates_.begin(), updates_.end(), std::back_inserter(waiting),
                 [&](const Node* update) { return !behind[static_cast<size_t>(update->id())]; });
    return waiting;
  }

  // Returns the updates that have to wait for a check of the indices of `rows`, which `update` updates.
  std::vector<Node*> WaitingFor(const Node& update, const RowsOfVariable& rows) const {
    if (!WaitsForNothing(*rows.variable.node) || MayGetOtherRows(*rows.variable.node)) return {};
    const Node& made_by = *rows.indices.node;
    const std::vector<bool> behind_indices = NodesBehind(made_by), behind_update = NodesBehind(update);
    const bool alone = NeedsNothingElse(made_by);
    std::vector<Node*> waiting;
    bool earlier = false;  // there is one that need not run behind the update
    for (Node* other : updates_) {
      const auto id = static_cast<size_t>(other->id());
      if (behind_update[id] && other != &update) continue;
      if (!alone && !behind_indices[id]) continue;
      waiting.push_back(other);
      earlier = earlier || other != &update;
    }
    return earlier ? waiting : std::vector<Node*>();
  }

 private:
  template <typename Fn>
  static bool AnyInput(const Node& node, const Fn& fn) {
    const auto& inputs = node.inputs();
    const auto& controls = node.control_inputs();
    return std::any_of(inputs.begin(), inputs.end(), [&](const Output& input) { return fn(*input.node); }) ||
           std::any_of(controls.begin(), controls.end(), [&](const Node* control) { return fn(*control); });
  }

  // Returns, by id, the node itself and all nodes that wait for it.
  std::vector<bool> NodesBehind(const Node& start) const {
    std::vector<bool> behind(order_.size(), false);
    for (const Node* node : order_) {
      behind[static_cast<size_t>(node->id())] =
          node == &start || AnyInput(*node, [&](const Node& input) { return behind[static_cast<size_t>(input.id())]; });
    }
    return behind;
  }

  // Returns whether the node, and all nodes for which it waits, neither update a variable nor wait for anything outside
  // of the partition.
  bool NeedsNothingElse(const Node& end) const {
    std::vector<bool> before(order_.size(), false);
    before[static_cast<size_t>(end.id())] = true;
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      const Node& node = **at;
      if (!before[static_cast<size_t>(node.id())]) continue;
      if (MayUpdate(node) || MayWait(node, device_type_)) return false;
      AnyInput(node, [&](const Node& input) {
        before[static_cast<size_t>(input.id())] = true;
        return false;
      });
    }
    return true;
  }

  // An earlier node of the step may assign a value of another shape to a variable that was declared without a number
  // of rows. Then a check before that node would compare with the old number.
  bool MayGetOtherRows(const Node& handle) const {
    if (!assigns_) return false;
    if (handle.op_name() != "VarHandleOp") return true;
    const Shape& shape = handle.attr<Shape>("shape");
    return !shape.has_rank() || shape.rank() < 1 || shape.dim(0) == Shape::kUnknownDim;
  }

  const std::vector<Node*> order_;
  const std::string& device_type_;
  std::vector<Node*> updates_;
  bool assigns_ = false;
};

// Returns whether the device's kernel of the node checks values, and the node updates nothing.
bool OnlyChecks(const Node& node, const std::string& device_type) {
  return ChecksValues(node) && KernelRegistry::Global().MemoryOf(node.op_name(), device_type) == KernelMemory::kDevice;
}

// What updates have to wait for: a node, or, if `rows` has a value, a _CheckIndices node for these rows that `node`
// updates.
struct Check {
  Node* node;
  std::optional<RowsOfVariable> rows;
  std::vector<Node*> waiting;
};

std::vector<Check> ChecksIn(const Graph& graph, const std::string& device_type) {
  std::vector<Check> checks;
  const auto& nodes = graph.nodes();
  const bool has_updates = std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return MayUpdate(*node); });
  if (!has_updates || std::none_of(nodes.begin(), nodes.end(), [&](const Node* node) {
        return !RowsUpdatedBy(*node, device_type).empty() || OnlyChecks(*node, device_type);
      })) {
    return checks;
  }
  const Partition partition(graph, device_type);
  const auto add = [&](Node* node, std::optional<RowsOfVariable> rows, std::vector<Node*> waiting) {
    if (!waiting.empty()) checks.push_back({node, std::move(rows), std::move(waiting)});
  };
  for (Node* node : partition.order()) {
    for (RowsOfVariable& rows : RowsUpdatedBy(*node, device_type)) {
      std::vector<Node*> waiting = partition.WaitingFor(*node, rows);
      add(node, std::move(rows), std::move(waiting));
    }
    if (OnlyChecks(*node, device_type)) add(node, std::nullopt, partition.WaitingFor(*node));
  }
  return checks;
}

}  // namespace

std::unique_ptr<Graph> CheckValuesFirst(std::unique_ptr<Graph> graph, const std::string& device_type) {
  for (const Check& check : ChecksIn(*graph, device_type)) {
    Node* first = check.node;
    if (check.rows.has_value()) {
      const Node& update = *check.node;
      const RowsOfVariable& rows = *check.rows;
      NodeBuilder builder = graph->Op("_CheckIndices");
      builder.Name(StrCat(rows.name, "/check_indices")).Device(update.device()).IgnoreScopes();
      builder.Input(rows.variable).Input(rows.indices);
      if (update.has_attr(kRowsMayBeNone)) builder.Attr(kRowsMayBeNone, update.attr<bool>(kRowsMayBeNone));
      first = builder.Attr("op", rows.op).Attr("update", rows.name).Finish();
    }
    for (Node* waiting : check.waiting) waiting->AddControlInput(first);
  }
  return graph;
}

}  // namespace cohort::cuda
