// Datasets of what stands in files. The names of the files are a dataset themselves (string scalars), so that they can
// be shuffled, repeated and sharded; files are read one after another. A file that is not there is a NotFoundError and
// a damaged one a DataLossError, each from the Next that meets it; the Next after it goes on with the next file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/readers/compression.h"

namespace cohort::data {

// Of string scalars.
COHORT_EXPORT Dataset FileNames(const std::vector<std::string>& paths);

// Lines without their ends ("\n" or "\r\n"), one string scalar each.
COHORT_EXPORT Dataset TextLineDataset(const Dataset& files, Compression compression = Compression::kNone);
COHORT_EXPORT Dataset TextLineDataset(const std::vector<std::string>& files,
                                      Compression compression = Compression::kNone);

// Payloads of the records of TFRecord files, one string scalar each.
COHORT_EXPORT Dataset TFRecordDataset(const Dataset& files, Compression compression = Compression::kNone);
COHORT_EXPORT Dataset TFRecordDataset(const std::vector<std::string>& files,
                                      Compression compression = Compression::kNone);

struct COHORT_EXPORT CsvColumn {
  DType dtype = DType::kFloat32;        // float32, float64, int32, int64 or string
  std::optional<Tensor> default_value;  // a scalar for empty fields; without it an empty field is an error
};
struct COHORT_EXPORT CsvOptions {
  bool header = false;  // each file's first line is skipped
  char delimiter = ',';
  bool use_quotes = true;           // fields may stand in "..." with "" for a quote, and contain line ends
  std::string na_value;             // counts as empty
  std::vector<int> select_columns;  // indices, ascending, that `columns` are about; empty: all
  Compression compression = Compression::kNone;
};
// RFC 4180: one scalar a column. Throws InvalidArgumentError with file, line and column for what does not fit; the Next
// after it goes on with the next line.
COHORT_EXPORT Dataset CsvDataset(const Dataset& files, std::vector<CsvColumn> columns, const CsvOptions& options = {});
COHORT_EXPORT Dataset CsvDataset(const std::vector<std::string>& files, std::vector<CsvColumn> columns,
                                 const CsvOptions& options = {});

// Slices along axis 0 of the tensors in IDX files, plain or gzip, one component a file; read when it is described.
// Throws what ReadIdx and FromTensorSlices throw.
COHORT_EXPORT Dataset IdxDataset(const std::vector<std::string>& paths);

// What to take from a tf.Example.
struct COHORT_EXPORT Feature {
  std::string name;
  DType dtype = DType::kFloat32;  // float32, int64 or string
  Shape shape;                    // the feature has exactly so many values
  // In place of a feature that is missing: of `dtype` and `shape`. Without it that is an error.
  std::optional<Tensor> default_value;
  // Any number of values: a vector, empty where the feature is missing; `shape` is not used.
  bool variable_length = false;
};
// `records`: string scalars, or batches of them (string vectors; no variable lengths then). One component a feature.
COHORT_EXPORT Dataset ParseExampleDataset(const Dataset& records, std::vector<Feature> features,
                                          const MapOptions& options = {});

}  // namespace cohort::data
