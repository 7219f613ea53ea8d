// LookupTable: the resource behind HashTableV2 and MutableHashTableV2 (ops/lookup_tables.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"
#include "cohort/device/resource.h"

namespace cohort {

// A map from keys (int32, int64 or string) to scalar values of one dtype, in host memory. Thread-safe. A look-up that
// runs while the contents are replaced sees the old ones or the new ones.
class LookupTable final : public Resource {
 public:
  // If `starts_empty` is false, the table cannot be used before its first Replace.
  LookupTable(std::string name, DType key_dtype, DType value_dtype, bool starts_empty);

  DType key_dtype() const { return key_dtype_; }
  DType value_dtype() const { return value_dtype_; }
  std::string Describe() const override;
  // Throws FailedPreconditionError if the table has other dtypes.
  void CheckDTypes(DType key_dtype, DType value_dtype) const;
  // Fills the table for the first time; `keys` and `values` as in Replace. Throws FailedPreconditionError, and leaves
  // the table as it is, if it was filled before with other contents (the same ones are no error, as in TensorFlow).
  void Initialize(const Tensor& keys, const Tensor& values) COHORT_EXCLUDES(mu_);
  // Replaces the contents. `keys` and `values` are vectors of the same length. Throws InvalidArgumentError for other
  // shapes or dtypes, or if a key occurs twice with different values.
  void Replace(const Tensor& keys, const Tensor& values) COHORT_EXCLUDES(mu_);
  // Returns the value of each key, in the shape of `keys`, and the scalar `default_value` for a key that is not there.
  // Throws InvalidArgumentError for other dtypes, FailedPreconditionError if the table was never filled.
  Tensor Find(const Tensor& keys, const Tensor& default_value) const COHORT_EXCLUDES(mu_);
  // Throws FailedPreconditionError if the table was never filled.
  int64_t size() const COHORT_EXCLUDES(mu_);

  // What the table has at one time.
  class Contents {
   public:
    virtual ~Contents() = default;
    virtual int64_t size() const = 0;
    // Writes the place of each key among the values, or -1.
    virtual void FindPlaces(const Tensor& keys, int64_t* places) const = 0;
    Tensor keys;    // a vector
    Tensor values;  // a vector
  };

 private:
  std::shared_ptr<const Contents> contents() const COHORT_EXCLUDES(mu_);
  // Throws InvalidArgumentError as Replace does.
  std::shared_ptr<const Contents> Made(const Tensor& keys, const Tensor& values) const;

  const std::string name_;
  const DType key_dtype_;
  const DType value_dtype_;
  mutable Mutex mu_;
  std::shared_ptr<const Contents> contents_ COHORT_GUARDED_BY(mu_);
};

// Returns the keys and values that a text file has, one pair in each line. `key_index` and `value_index` are columns of
// the line, -2 for the whole line, or -1 for the number of the line (plus `offset`, for values). Takes the first
// `vocab_size` lines, or all if it is -1. Throws InvalidArgumentError, which names the file and the line, if a line
// lacks a column or a column is no number of the dtype; if the file has fewer than `vocab_size` lines; and for a dtype
// other than string, int32, int64 and float32. Throws the errors of core/file.h.
struct TableFile {
  std::string path;
  int64_t key_index = -2;
  int64_t value_index = -1;
  int64_t vocab_size = -1;
  std::string delimiter = "\t";
  int64_t offset = 0;
};
std::pair<Tensor, Tensor> ReadTableFile(const TableFile& file, DType key_dtype, DType value_dtype);

}  // namespace cohort
