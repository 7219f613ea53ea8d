// `.weights.h5` files.
#include "cohort/keras/files/weights_file.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Accepts([&] { keras::DecodeWeights(fuzz::View(data, size), "a file"); });
  return 0;
}
