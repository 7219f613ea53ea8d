// SumRowsOnCard. For each Unique, RowSums collects the nodes that read it, directly and through each other, and gives
// up at the first one that could tell more rows from fewer.
#include "cohort/backends/cuda/passes/sum_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/kernels/row_update.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/rows_may_be_none.h"

namespace cohort::cuda {
namespace {

constexpr int kRows = 0, kPlaces = 1;                             // outputs of Unique
constexpr int kData = 0, kSegmentIds = 1, kNumberOfSegments = 2;  // inputs of UnsortedSegmentSum

// An input of a node.
struct Use {
  Node* reader;
  int input;
};

class Uses {
 public:
  explicit Uses(const Graph& graph) {
    for (Node* node : graph.nodes()) {
      for (int i = 0; i < node->num_inputs(); ++i) of_[KeyOf(node->input(i))].push_back({node, i});
    }
  }
  const std::vector<Use>& Of(const Output& value) const {
    static const auto* const none = new std::vector<Use>;
    const auto found = of_.find(KeyOf(value));
    return found == of_.end() ? *none : found->second;
  }

 private:
  std::map<ValueKey, std::vector<Use>> of_;
};

// Returns whether all inputs but this one are scalars.
bool OthersAreScalars(const Node& node, int input) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (i != input && !node.input(i).shape().IsScalar()) return false;
  }
  return true;
}

// What a Unique and the nodes behind it are replaced by.
class RowSums {
 public:
  RowSums(const Uses& uses, const std::string& device_type, Node* unique)
      : uses_(uses), device_type_(device_type), unique_(unique) {}

  // Returns whether the nodes can be replaced.
  bool Find() {
    const Output& indices = unique_->input(0);
    if (indices.dtype() != DType::kInt32 && indices.dtype() != DType::kInt64) return false;
    std::set<const Node*> updates;  // those that read the different indices
    for (const Use& use : uses_.Of(unique_->output(kRows))) {
      if (use.reader->op_name() == "Size") {
        replaced_.insert(use.reader);
      } else if (ReadsIndices(*use.reader, use.input)) {
        updates.insert(use.reader);
      } else {
        return false;
      }
    }
    for (const Use& use : uses_.Of(unique_->output(kPlaces))) {
      if (use.reader->op_name() != "UnsortedSegmentSum" || use.input != kSegmentIds) return false;
      if (replaced_.count(use.reader->input(kNumberOfSegments).node) == 0) return false;
      sums_.push_back(use.reader);
    }
    for (const Node* size : replaced_) {
      for (const Use& use : uses_.Of(size->output(0))) {
        if (std::find(sums_.begin(), sums_.end(), use.reader) == sums_.end()) return false;
      }
    }
    for (Node* sum : sums_) {
      if (KernelRegistry::Global().MemoryOf(sum->op_name(), device_type_) != KernelMemory::kDevice) return false;
      if (!FollowValues(sum, sum->output(0), /*zeros=*/true)) return false;
    }
    for (const Node* update : updates) {
      if (sum_of_.count(update) == 0) return false;
    }
    return !updates.empty();
  }

  // Adds the new nodes, and lets the readers of values read them. Returns the nodes that are not needed any more, each
  // with those that stand in their place.
  std::map<const Node*, std::vector<Node*>> Replace() {
    std::vector<Node*> controls = unique_->control_inputs();
    for (const Node* node : replaced_) AddTo(controls, node->control_inputs());
    std::map<const Node*, Node*> made;
    std::vector<Node*> all;
    for (Node* sum : sums_) {
      NodeBuilder builder = sum->graph().Op("_SumRepeatedRows");
      builder.Name(StrCat(sum->name(), "/on_card")).Device(sum->device()).IgnoreScopes();
      builder.Input(unique_->input(0)).Input(sum->input(kData));
      std::vector<Node*> before = controls;
      AddTo(before, sum->control_inputs());
      for (Node* control : before) builder.Control(control);
      Node* const node = builder.Finish();
      made[sum] = node;
      all.push_back(node);
      for (const Use& use : uses_.Of(sum->output(0))) use.reader->ReplaceInput(use.input, node->output(1));
    }
    for (const Use& use : uses_.Of(unique_->output(kRows))) {
      if (replaced_.count(use.reader) > 0) continue;
      use.reader->ReplaceInput(use.input, made.at(sum_of_.at(use.reader))->output(0));
      use.reader->SetAttr(kRowsMayBeNone, true);
    }
    std::map<const Node*, std::vector<Node*>> by;
    by[unique_] = all;
    for (const Node* size : replaced_) by[size] = all;
    for (const auto& [sum, node] : made) by[sum] = {node};
    return by;
  }

 private:
  static void AddTo(std::vector<Node*>& nodes, const std::vector<Node*>& more) {
    for (Node* node : more) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
  }

  // Returns whether the node updates rows by a kernel of the device, and this is the input with the indices.
  bool ReadsIndices(const Node& node, int input) const {
    return node.op().updates_variable() && node.input(0).dtype() == DType::kResource &&
           node.input_arg(input).name == "indices" &&
           KernelRegistry::Global().MemoryOf(node.op_name(), device_type_) == KernelMemory::kDevice;
  }

  // Returns whether the node is an update of the rows with the different indices.
  bool UpdatesRows(const Node& update) const {
    for (int i = 0; i < update.num_inputs(); ++i) {
      if (update.input(i) == unique_->output(kRows) && ReadsIndices(update, i)) return true;
    }
    return false;
  }

  // Goes through the readers of `value`, which has a row for each row of `sum`. `zeros`: the rows of no index are
  // zeros. Returns false if a reader could tell them.
  bool FollowValues(const Node* sum, const Output& value, bool zeros) {
    for (const Use& use : uses_.Of(value)) {
      const Node& node = *use.reader;
      const std::string& op = node.op_name();
      if (UpdatesRows(node)) {
        const auto [at, is_new] = sum_of_.emplace(&node, sum);
        if (!is_new && at->second != sum) return false;
        continue;
      }
      const bool keeps_zeros = op == "Identity" || op == "Cast" || op == "Neg" || op == "Square" ||
                               (op == "Mul" && OthersAreScalars(node, use.input));
      const bool limits = op == "ClipByValue" && use.input == 0 && OthersAreScalars(node, use.input);
      if (keeps_zeros || limits) {
        if (!FollowValues(sum, node.output(0), zeros && keeps_zeros)) return false;
        continue;
      }
      const bool is_norm = (op == "Sum" && use.input == 0 && node.output_shape(0).IsScalar()) || op == "L2Loss";
      if (!zeros || !is_norm) return false;
    }
    return true;
  }

  const Uses& uses_;
  const std::string& device_type_;
  Node* const unique_;
  std::set<const Node*> replaced_;             // the nodes that ask how many different indices there are
  std::vector<Node*> sums_;                    // UnsortedSegmentSum
  std::map<const Node*, const Node*> sum_of_;  // by the update that reads it
};

}  // namespace

std::unique_ptr<Graph> SumRowsOnCard(std::unique_ptr<Graph> graph, const std::string& device_type) {
  std::vector<Node*> uniques;
  for (Node* node : graph->nodes()) {
    if (node->op_name() == "Unique") uniques.push_back(node);
  }
  if (uniques.empty()) return graph;
  const Uses uses(*graph);
  std::map<const Node*, std::vector<Node*>> by;
  for (Node* unique : uniques) {
    RowSums sums(uses, device_type, unique);
    if (sums.Find()) by.merge(sums.Replace());
  }
  if (by.empty()) return graph;
  std::set<const Node*> replaced;
  for (const auto& [node, with] : by) replaced.insert(node);
  for (Node* node : graph->nodes()) {
    if (replaced.count(node) > 0) continue;
    std::vector<Node*> controls;
    const auto add = [&](Node* control) {
      if (std::find(controls.begin(), controls.end(), control) == controls.end()) controls.push_back(control);
    };
    for (Node* control : node->control_inputs()) {
      const auto found = by.find(control);
      if (found == by.end()) {
        add(control);
      } else {
        std::for_each(found->second.begin(), found->second.end(), add);
      }
    }
    node->ReplaceControlInputs(std::move(controls));
  }
  return CopyWithout(*graph, replaced);
}

}  // namespace cohort::cuda
