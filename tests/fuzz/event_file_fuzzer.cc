// Event files. If the first byte is even, the rest is a file; otherwise it is a list of events, of which the target
// makes a file with right checksums.
#include "cohort/core/record_io.h"
#include "cohort/summary/event_reader.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  std::string file;
  if (input.Bool()) {
    while (!input.empty()) EncodeRecord(input.Text(), &file);
  } else {
    file = input.Rest();
  }
  const std::string path = fuzz::ScratchFile("events", file);
  fuzz::Accepts([&] {
    EventReader reader(path);
    Event event;
    while (reader.Read(&event) == RecordReader::Outcome::kRecord) continue;
  });
  return 0;
}
