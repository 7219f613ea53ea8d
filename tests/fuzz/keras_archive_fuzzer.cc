// `.keras` files: the zip archive, its metadata, and its configuration as JSON.
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/config.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = fuzz::ScratchFile("model.keras", fuzz::View(data, size));
  fuzz::Accepts([&] { keras::ConfigValue::FromJson(keras::ReadModelArchive(path).config); });
  return 0;
}
