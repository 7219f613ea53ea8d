// IDX files (MNIST's format): magic 0x0000TTRR (type, rank), RR big-endian uint32 dimensions, elements in
// row-major order. Plain or gzip.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::data {

// Any IDX file of uint8, int32, float32 or float64. Throws InvalidArgumentError for a magic number that is
// none, UnimplementedError for other element types, DataLossError for a file that is shorter or longer than
// its header says and for damaged gzip. Each names the file, what was expected and what was found.
COHORT_EXPORT Tensor ReadIdx(const std::string& path);

// [n, rows, cols] u8, magic 0x00000803. Throws InvalidArgumentError for another magic number.
COHORT_EXPORT Tensor ReadIdxImages(const std::string& path);
// [n] u8, magic 0x00000801.
COHORT_EXPORT Tensor ReadIdxLabels(const std::string& path);

// Writes a uint8 tensor as a plain IDX file. Throws InvalidArgumentError for another dtype.
COHORT_EXPORT void WriteIdx(const std::string& path, const Tensor& tensor);

}  // namespace cohort::data
