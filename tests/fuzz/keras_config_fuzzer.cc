// The configuration of a model as JSON. What was read is written, and must be read again as the same.
#include "cohort/keras/files/config.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  keras::ConfigValue value;
  if (!fuzz::Accepts([&] { value = keras::ConfigValue::FromJson(fuzz::View(data, size)); })) return 0;
  fuzz::Accepts([&] { keras::ShapeFromFile(value); });
  const std::string text = value.ToJson();
  fuzz::Require(keras::ConfigValue::FromJson(text).ToJson() == text);
  return 0;
}
