// Compressed files: their bytes and their lines. The first byte chooses.
#include "cohort/data/readers/input_file.h"
#include "cohort/data/readers/readers.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/read_all.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t mode = input.Byte();
  const auto compression = static_cast<data::Compression>(mode % 3);
  const std::string path = fuzz::ScratchFile("packed", input.Rest());
  if (mode % 2 == 0) {
    fuzz::ReadAll(data::TextLineDataset({path}, compression));
    return 0;
  }
  fuzz::Accepts([&] {
    data::InputFile file(path, compression);
    std::string buffer(1 << 16, '\0');
    int64_t all = 0;
    for (size_t count = 1; count > 0; all += static_cast<int64_t>(count)) count = file.Read(buffer);
    fuzz::Require(all <= file.MaxSize());
  });
  return 0;
}
