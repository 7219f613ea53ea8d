// JPEG and PNG files. libjpeg and libpng are not built with sanitizers, but what we give to them is.
#include "cohort/core/images/image_file.h"
#include "cohort/core/images/jpeg.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::View(data, size);
  for (const int channels : {0, 1, 3, 4}) fuzz::Accepts([&] { images::DecodeImage(bytes, channels); });
  fuzz::Accepts([&] { images::DecodeJpeg(bytes, {.ratio = 2, .try_recover_truncated = true}); });
  return 0;
}
