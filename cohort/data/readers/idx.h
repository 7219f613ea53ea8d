// IDX files, the format of MNIST. A file has a magic number 0x0000TTRR (TT: type, RR: rank), RR dimensions as
// big-endian uint32, and the elements in row-major order. It may be packed with gzip.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::data {

// Reads any IDX file of uint8, int32, float32 or float64. Throws InvalidArgumentError for an invalid magic number,
// UnimplementedError for other element types, and DataLossError if the file is shorter or longer than its header says
// or if the gzip data are damaged. Each error names the file, what was expected and what was found.
COHORT_EXPORT Tensor ReadIdx(const std::string& path);

// Reads uint8 of shape [n, rows, columns], magic number 0x00000803. Throws InvalidArgumentError for another magic
// number.
COHORT_EXPORT Tensor ReadIdxImages(const std::string& path);
// Reads uint8 of shape [n], magic number 0x00000801.
COHORT_EXPORT Tensor ReadIdxLabels(const std::string& path);

// Writes a uint8 tensor as a plain IDX file. Throws InvalidArgumentError for another dtype.
COHORT_EXPORT void WriteIdx(const std::string& path, const Tensor& tensor);

}  // namespace cohort::data
