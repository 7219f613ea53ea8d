#include "cohort/train/scaffold.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/summary.h"

namespace cohort::train {
namespace {

// A placeholder that `value` needs; null if it needs none.
const Node* FindPlaceholder(Output value) {
  std::set<const Node*> seen;
  std::vector<const Node*> left{value.node};
  while (!left.empty()) {
    const Node* node = left.back();
    left.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->op_name() == "Placeholder") return node;
    for (const Output& input : node->inputs()) left.push_back(input.node);
    for (const Node* control : node->control_inputs()) left.push_back(control);
  }
  return nullptr;
}

// The Saver saves all variables that are not local, and throws if there is none.
bool HasVariablesToSave(const Graph& graph) {
  const std::vector<VariableInfo*> variables = graph.variables();
  return std::any_of(variables.begin(), variables.end(), [](const VariableInfo* variable) { return !variable->local; });
}

}  // namespace

void Scaffold::Finalize(Graph& graph, bool writes, Summaries summaries) {
  if (finalized()) throw FailedPreconditionError("[scaffold] expected one call of Finalize; got a second one");
  // The scopes of the model do not concern these nodes.
  const DeviceScope anywhere(graph, nullptr);
  const ControlDependencies none(graph, nullptr);
  if (!options_.global_step.valid()) options_.global_step = ops::GetGlobalStep(graph).value_or(ops::Variable());
  if (options_.init_op == nullptr) options_.init_op = ops::GlobalVariablesInitializer(graph);
  if (options_.local_init_op == nullptr) options_.local_init_op = ops::LocalVariablesInitializer(graph);
  if (!options_.ready_op.valid()) options_.ready_op = ops::ReportUninitializedVariables(graph);
  if (!writes) {
    options_.saver = nullptr;
    options_.summary_op = Output();
  } else {
    if (options_.saver == nullptr && HasVariablesToSave(graph)) {
      own_saver_ = std::make_unique<Saver>(graph);
      options_.saver = own_saver_.get();
    }
    ChooseSummaries(graph, summaries);
  }
  graph_ = &graph;
  graph.Finalize();
  LogInfo("train", "Graph was finalized.");
}

void Scaffold::ChooseSummaries(Graph& graph, Summaries summaries) {
  if (!options_.summary_op) options_.summary_op = ops::MergeAllSummaries(graph);
  if (!options_.summary_op->valid() || summaries == Summaries::kWithTheStep) return;
  if (const Node* placeholder = FindPlaceholder(*options_.summary_op)) {
    LogWarning("train", "the summaries need '", placeholder->name(), "' to be fed and so are not recorded here; fetch ",
               options_.summary_op->name(),
               " in the program and give it to SummaryComputed, or set summary_op = Output()");
    options_.summary_op = Output();
  }
}

int64_t Scaffold::Step(Session& session) const {
  if (!options_.global_step.valid()) return 0;
  const Tensor value = session.Run(options_.global_step.value());
  return value.dtype() == DType::kInt32 ? value.scalar<int32_t>() : value.scalar<int64_t>();
}

std::vector<std::string> Scaffold::Missing(Session& session, bool with_local) const {
  std::vector<std::string> names = session.Run(options_.ready_op).ToVector<std::string>();
  if (with_local) return names;
  std::set<std::string> local;
  for (const VariableInfo* variable : graph_->variables()) {
    if (variable->local) local.insert(variable->name);
  }
  std::erase_if(names, [&](const std::string& name) { return local.contains(name); });
  return names;
}

}  // namespace cohort::train
