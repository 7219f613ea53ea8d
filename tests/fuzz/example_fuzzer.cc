// Serialized tf.Examples, alone and in a batch.
#include "cohort/data/readers/readers.h"
#include "tests/fuzz/read_all.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(fuzz::View(data, size));
  const data::Feature floats{.name = "f", .dtype = DType::kFloat32, .shape = Shape{2}};
  const data::Feature missing{
      .name = "m", .dtype = DType::kInt64, .shape = Shape(), .default_value = Tensor::Scalar(int64_t{7})};
  const data::Feature ints{.name = "i", .dtype = DType::kInt64, .variable_length = true};
  const data::Feature texts{.name = "s", .dtype = DType::kString, .variable_length = true};
  const data::Dataset one = data::Dataset::FromTensors({Tensor::Scalar(bytes)});
  for (const auto& features : std::vector<std::vector<data::Feature>>{{floats, missing}, {ints, texts}}) {
    fuzz::ReadAll(data::ParseExampleDataset(one, features));
  }
  const data::Dataset batch = data::Dataset::FromTensors({Tensor::Vector<std::string>({bytes, bytes})});
  fuzz::ReadAll(data::ParseExampleDataset(batch, {floats, missing}));
  return 0;
}
