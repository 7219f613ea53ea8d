// TF_CONFIG, from the environment or from a peer's hello.
#include "cohort/cluster/tf_config.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TFConfig config;
  if (!fuzz::Accepts([&] { config = ParseTFConfig(fuzz::View(data, size)); })) return 0;
  fuzz::Require(ParseTFConfig(ClusterToJson(config.cluster)).cluster == config.cluster);
  return 0;
}
