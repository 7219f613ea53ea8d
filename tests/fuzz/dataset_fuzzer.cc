// The description of a dataset that a peer wants this process to run. It may use no file.
#include "cohort/data/serialize.h"
#include "tests/fuzz/all_ops.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::RegisterAllOps();
  const auto lookup = [](uint64_t) { return Tensor::Vector<float>({1, 2, 3}); };
  const auto no_files = [](const std::string&) { throw PermissionDeniedError("no files here"); };
  fuzz::Accepts([&] { data::Deserialize(fuzz::View(data, size), lookup, no_files); });
  return 0;
}
