// The shape rules of all ops, which run while a peer's graph is imported.
#include "cohort/graph/graph_def.h"
#include "tests/fuzz/all_ops.h"
#include "tests/fuzz/random_graph.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::RegisterAllOps();
  static const auto* ops = new std::vector<const OpDef*>(OpRegistry::Global().All());
  fuzz::Input input(data, size);
  const OpDef& op = *(*ops)[input.Below(257) % ops->size()];
  const std::string bytes = fuzz::RandomGraph(op, {}, input);
  fuzz::Accepts([&] { ParseGraphDef(bytes); });
  return 0;
}
