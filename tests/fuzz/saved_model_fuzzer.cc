// The saved_model.pb of a SavedModel: it is made ready for the import, and its graph is imported. Nothing is run, since
// a loop in the graph may last for ever.
#include "cohort/checkpoint/saved_model/graph_reader_internal.h"
#include "tests/fuzz/all_ops.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::RegisterAllOps();
  fuzz::Accepts([&] {
    Graph graph;
    saved_model::ReadSavedModelGraph(fuzz::View(data, size), "folder", {saved_model::kServingTag}, graph);
  });
  return 0;
}
