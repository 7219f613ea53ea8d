#include "cohort/backends/cuda/passes/seeds_on_card.h"

#include <map>
#include <set>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/copy_node.h"

namespace cohort::cuda {
namespace {

constexpr int kSeed = 1;  // the number of the input

// Returns the value of the attribute "distribution" for an op, or null if it is another op.
const char* DistributionOf(const Node& node) {
  if (node.op_name() == "StatelessRandomUniform") return "uniform";
  if (node.op_name() == "StatelessRandomNormal") return "normal";
  return node.op_name() == "StatelessTruncatedNormal" ? "truncated" : nullptr;
}

// Returns whether a kernel of the device computes the value in its memory.
bool LiesOnCard(const Output& value, const std::string& device_type) {
  const std::string& op = value.node->op_name();
  return op != "Const" && !value.node->output_arg(value.index).host_memory &&
         KernelRegistry::Global().MemoryOf(op, device_type) == KernelMemory::kDevice;
}

}  // namespace

std::unique_ptr<Graph> TakeSeedsFromCard(std::unique_ptr<Graph> graph, const std::string& device_type) {
  std::map<const Node*, Node*> by;
  for (const Node* node : graph->nodes()) {
    const char* distribution = DistributionOf(*node);
    if (distribution == nullptr || !LiesOnCard(node->input(kSeed), device_type)) continue;
    NodeBuilder builder = graph->Op("_StatelessRandomOnDevice");
    builder.Name(StrCat(node->name(), "/seed_on_device")).Attrs(node->attrs()).Device(node->device()).IgnoreScopes();
    builder.Attr("distribution", std::string(distribution));
    for (const Output& input : node->inputs()) builder.Input(input);
    for (Node* control : node->control_inputs()) builder.Control(control);
    by[node] = builder.Finish();
  }
  if (by.empty()) return graph;
  std::set<const Node*> replaced;
  for (const auto& [node, with] : by) replaced.insert(node);
  for (Node* reader : graph->nodes()) {
    if (replaced.count(reader) > 0) continue;
    for (int i = 0; i < reader->num_inputs(); ++i) {
      const auto found = by.find(reader->input(i).node);
      if (found != by.end()) reader->ReplaceInput(i, found->second->output(0));
    }
    std::vector<Node*> controls = reader->control_inputs();
    for (Node*& control : controls) {
      const auto found = by.find(control);
      if (found != by.end()) control = found->second;
    }
    reader->ReplaceControlInputs(std::move(controls));
  }
  return CopyWithout(*graph, replaced);
}

}  // namespace cohort::cuda
