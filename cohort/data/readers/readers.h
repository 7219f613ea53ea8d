// Datasets that read files. The names of the files are a dataset too (string scalars), so they can be shuffled,
// repeated and sharded. Files are read one after another. If a file is missing, Next throws NotFoundError when it
// reaches the file; if a file is damaged, it throws DataLossError. The call after that continues with the next file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/readers/compression.h"

namespace cohort::data {

// A dataset of string scalars.
COHORT_EXPORT Dataset FileNames(const std::vector<std::string>& paths);

// Returns the sorted paths that match one of the patterns, each once. `*` stands for any characters but `/`, `?` for
// one, `[ab]` for one of these. As in TensorFlow, a name may begin with a dot. Throws NotFoundError, which names it,
// for a pattern that nothing matches.
COHORT_EXPORT std::vector<std::string> MatchingFiles(const std::vector<std::string>& patterns);
// The names of the files that match (tf.data.Dataset.list_files), as string scalars. If `shuffle`, which is
// TensorFlow's default, each pass has an order of its own. Throws what MatchingFiles throws.
struct COHORT_EXPORT ListFilesOptions {
  bool shuffle = true;
  std::optional<int64_t> seed = std::nullopt;
};
COHORT_EXPORT Dataset ListFiles(const std::vector<std::string>& patterns, const ListFilesOptions& options = {});

// The elements are the lines, as string scalars, without their ends ("\n" or "\r\n").
COHORT_EXPORT Dataset TextLineDataset(const Dataset& files, Compression compression = Compression::kNone);
COHORT_EXPORT Dataset TextLineDataset(const std::vector<std::string>& files,
                                      Compression compression = Compression::kNone);

// The elements are the payloads of the records of TFRecord files, as string scalars.
COHORT_EXPORT Dataset TFRecordDataset(const Dataset& files, Compression compression = Compression::kNone);
COHORT_EXPORT Dataset TFRecordDataset(const std::vector<std::string>& files,
                                      Compression compression = Compression::kNone);

// The dtype of a column of a CSV file.
struct COHORT_EXPORT CsvColumn {
  DType dtype = DType::kFloat32;        // float32, float64, int32, int64 or string
  std::optional<Tensor> default_value;  // a scalar that replaces an empty field; without it an empty field is an error
  std::string name = "";                // in the file's first line; see CsvDataset
};
struct COHORT_EXPORT CsvOptions {
  bool header = false;  // skip the first line of each file
  char delimiter = ',';
  bool use_quotes = true;           // "..." may enclose a field, which may then contain line ends; "" is a quote
  std::string na_value;             // a field with this text counts as empty
  std::vector<int> select_columns;  // the file's columns, from 0, that `columns` describe; ascending; empty: all
  Compression compression = Compression::kNone;
};
// Reads CSV files (RFC 4180). An element has one scalar for each column. If the columns have names, the first line of
// each file says where they are, in any order and among others; if one is not there, Iterator::Next throws
// InvalidArgumentError with the file and its columns. A blank line is passed over unless the file has a single column,
// and so is the mark of UTF-8 at the begin of a file. If a line does not fit, Iterator::Next throws
// InvalidArgumentError with file and line, and with the column if one value is wrong. The next call continues with the
// next line; if the line is the header, it continues with the next file. CsvDataset itself throws InvalidArgumentError
// for invalid columns or options.
COHORT_EXPORT Dataset CsvDataset(const Dataset& files, std::vector<CsvColumn> columns, const CsvOptions& options = {});
COHORT_EXPORT Dataset CsvDataset(const std::vector<std::string>& files, std::vector<CsvColumn> columns,
                                 const CsvOptions& options = {});

// The elements are the slices along axis 0 of the tensors in IDX files, with one component for each file. This function
// reads the files. Throws the errors of ReadIdx and FromTensorSlices.
COHORT_EXPORT Dataset IdxDataset(const std::vector<std::string>& paths);

// A feature to take from each tf.Example.
struct COHORT_EXPORT Feature {
  std::string name;
  DType dtype = DType::kFloat32;  // float32, int64 or string
  Shape shape;                    // the feature must have exactly as many values as this shape
  // Replaces a missing feature. The value must have `dtype` and `shape`. If it is not set and the feature is missing,
  // Iterator::Next throws InvalidArgumentError.
  std::optional<Tensor> default_value;
  // If true, the feature may have any number of values. The result is a vector, which is empty if the feature is
  // missing. `shape` is not used.
  bool variable_length = false;
};
// Parses serialized tf.Examples. `records` are string scalars, or batches of them (string vectors). Batches allow no
// feature of variable length: parse records one by one, and call PaddedBatch on the result. The result has one
// component for each feature. Throws InvalidArgumentError for invalid features, and if `records` has other elements.
COHORT_EXPORT Dataset ParseExampleDataset(const Dataset& records, std::vector<Feature> features,
                                          const MapOptions& options = {});

}  // namespace cohort::data
