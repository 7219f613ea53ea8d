// IDX files, plain or packed with gzip.
#include "cohort/data/readers/idx.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = fuzz::ScratchFile("idx", fuzz::View(data, size));
  fuzz::Accepts([&] { data::ReadIdx(path); });
  fuzz::Accepts([&] { data::ReadIdxImages(path); });
  return 0;
}
