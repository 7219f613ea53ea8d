// A GraphDef of a peer or of a file: import with shape inference, the check of graphs of peers, and writing it again.
#include "cohort/graph/graph_def.h"
#include "cohort/runtime/execution/executable_checks.h"
#include "tests/fuzz/all_ops.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::RegisterAllOps();
  fuzz::Accepts([&] {
    ExecutableSpec spec;
    spec.tasks = {"/job:ps/replica:0/task:0"};
    spec.partitions.push_back({"/job:ps/replica:0/task:0/device:CPU:0", ParseGraphDef(fuzz::View(data, size))});
    SerializeGraphDef(*spec.partitions[0].graph);
    CheckExecutableSpec(spec);
  });
  return 0;
}
