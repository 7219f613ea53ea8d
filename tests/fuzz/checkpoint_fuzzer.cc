// Checkpoints: the index, the data file, slices, and the state file. The first byte says what the rest is. An index may
// be raw bytes, or a list of keys and values of which the target makes a table with right checksums.
#include <map>

#include "cohort/checkpoint/bundle_format.h"
#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/table.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "tests/fuzz/fuzz_input.h"

using namespace cohort;

namespace {

void ReadAll(const std::string& prefix) {
  fuzz::Accepts([&] {
    const BundleReader reader(prefix);
    fuzz::Accepts([&] { reader.CheckFiles(); });
    for (const auto& tensor : reader.tensors()) {
      const std::string& name = tensor.first;
      fuzz::Accepts([&] { reader.Read(name); });
      fuzz::Accepts([&] { reader.Verify(name); });
      fuzz::Accepts([&] { reader.ReadSlice(name, TensorSlice::Rows(tensor.second.shape, 1, 1)); });
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint64_t mode = input.Below(4);
  if (mode == 2) {
    const std::string folder = fuzz::ScratchPath("state");
    std::filesystem::create_directories(folder);
    fuzz::ScratchFile("state/checkpoint", input.Rest());
    fuzz::Accepts([&] { ReadCheckpointState(folder); });
    return 0;
  }
  if (mode == 3) {
    fuzz::Accepts([&] { ParseShapeAndSlice(input.Rest()); });
    return 0;
  }
  std::string index;
  if (mode == 0) {
    index = input.Text();
  } else {
    std::map<std::string, std::string> entries;
    for (uint64_t left = input.Below(16) + 1; left > 0; --left) {
      const std::string key(input.Text());
      entries[key] = input.Text();
    }
    index = EncodeTable({entries.begin(), entries.end()});
  }
  fuzz::ScratchFile("checkpoint.index", index);
  fuzz::ScratchFile("checkpoint.data-00000-of-00001", input.Rest());
  ReadAll(fuzz::ScratchPath("checkpoint"));
  return 0;
}
