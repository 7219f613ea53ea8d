// The kernels of the CPU, each run once in a session, with constants of few elements as inputs.
#include <set>

#include "cohort/graph/graph_def.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"
#include "tests/fuzz/random_graph.h"

using namespace cohort;

namespace {

// Ops that wait for others, or that use files.
bool IsLeftOut(const OpDef& op) {
  static const auto* names = new std::set<std::string_view>{
      "_Recv", "_Send", "_Arg", "_Retval", "SaveV2", "RestoreV2", "MergeV2Checkpoints", "WriteFile", "ReadFile"};
  const std::string_view name = op.name();
  for (const char* part :
       {"Queue", "Collective", "Iterator", "Accumulator", "Checkpoint", "Save", "Restore", "Clock"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return names->contains(name) || op.is_stateful();
}

std::vector<const OpDef*> SomeOps() {
  std::vector<const OpDef*> chosen;
  for (const OpDef* op : OpRegistry::Global().All()) {
    if (!IsLeftOut(*op) && !op->outputs().empty()) chosen.push_back(op);
  }
  return chosen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* ops = new std::vector<const OpDef*>(SomeOps());
  fuzz::Input input(data, size);
  const OpDef& op = *(*ops)[input.Below(257) % ops->size()];
  const std::string bytes = fuzz::RandomGraph(op, {.constant_inputs = true}, input);
  fuzz::Accepts([&] {
    const std::unique_ptr<Graph> graph = ParseGraphDef(bytes);
    Node* node = graph->FindNode("node");
    std::vector<Output> fetches;
    for (int i = 0; i < node->num_outputs(); ++i) fetches.push_back(node->output(i));
    SessionConfig config;
    config.intra_op_parallelism_threads = 1;
    config.operation_timeout = std::chrono::seconds(5);
    Session session(*graph, "", config);
    session.Run(fetches);
  });
  return 0;
}
