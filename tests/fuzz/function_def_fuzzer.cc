// A FunctionDef, which datasets of a peer contain.
#include "cohort/graph/function.h"
#include "tests/fuzz/all_ops.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::RegisterAllOps();
  fuzz::Accepts([&] { SerializeFunction(*ParseFunction(fuzz::View(data, size))); });
  return 0;
}
