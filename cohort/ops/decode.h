// Ops that turn bytes and lines of text into numbers, for input pipelines whose records are raw bytes (MNIST and
// CIFAR-10 as TFRecords) or lines of CSV files. They run on the host on every device, and have no gradient.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Reads the bytes of each string as numbers of `out_type`: uint8, int32, int64, float32, float64 or bool. The result
// has the shape of `bytes` (string) and one more dimension, that of the numbers in a string, which is known when the
// node runs. `little_endian` says the order of the bytes of a number; it changes nothing for dtypes of one byte. The
// step fails with InvalidArgumentError if the strings have different lengths, or a length that is no multiple of the
// size of a number.
COHORT_EXPORT Output DecodeRaw(Output bytes, DType out_type, bool little_endian = true, const NodeName& name = "");

struct COHORT_EXPORT DecodeCSVOptions {
  std::string field_delim = ",";  // one character, and no quote or line end
  bool use_quote_delim = true;    // "..." may enclose a field; "" in it is a quote. False: quotes are characters
  std::string na_value;           // a field with this text counts as empty
  std::vector<int> select_cols;   // the columns to read, from 0 and ascending; empty: all
};
// Reads each string of `records` (string of any shape) as one line of a CSV file (RFC 4180). Returns one value for each
// of `record_defaults`, with the shape of `records` and the dtype of the default: float32, float64, int32, int64 or
// string. A default with one element replaces empty fields; one without elements, such as Tensor(DType::kInt64, {0}),
// says that the field must not be empty. Throws InvalidArgumentError for options or defaults that do not fit. A record
// that has another number of fields, or a field that is no number of the dtype, fails the step with
// InvalidArgumentError, which names both.
COHORT_EXPORT std::vector<Output> DecodeCSV(Output records, const std::vector<Tensor>& record_defaults,
                                            const DecodeCSVOptions& options = {}, const NodeName& name = "");

}  // namespace cohort::ops
