// TFRecord files, read by a dataset (plain, gzip or zlib) and by RecordReader. The first byte chooses.
#include "cohort/core/record_io.h"
#include "cohort/data/readers/readers.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/read_all.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint64_t mode = input.Below(4);
  if (mode == 3) {
    const std::string path = fuzz::ScratchFile("records", input.Rest());
    fuzz::Accepts([&] {
      RecordReader reader(path);
      std::string payload;
      while (reader.Read(&payload) == RecordReader::Outcome::kRecord) continue;
    });
    return 0;
  }
  const std::string path = fuzz::ScratchFile("records", input.Rest());
  fuzz::ReadAll(data::TFRecordDataset({path}, static_cast<data::Compression>(mode)));
  return 0;
}
