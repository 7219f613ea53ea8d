// CSV files. The first byte sets the options.
#include "cohort/data/readers/readers.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/read_all.h"

using namespace cohort;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t mode = input.Byte();
  data::CsvOptions options;
  options.header = (mode & 1) != 0;
  options.use_quotes = (mode & 2) != 0;
  options.delimiter = (mode & 4) != 0 ? ';' : ',';
  if ((mode & 8) != 0) options.na_value = "NA";
  if ((mode & 16) != 0) options.select_columns = {0, 2, 5};
  if ((mode & 32) != 0) options.compression = data::Compression::kGzip;
  const std::vector<data::CsvColumn> columns = {{DType::kFloat32, Tensor::Scalar(0.5f)},
                                                {DType::kInt64, std::nullopt},
                                                {DType::kString, Tensor::Scalar(std::string("none"))}};
  fuzz::ReadAll(data::CsvDataset({fuzz::ScratchFile("csv", input.Rest())}, columns, options));
  return 0;
}
