// CpuVariable: a variable in host memory, whose rows can be read and updated one by one.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>

#include "cohort/core/mutex.h"
#include "cohort/device/variable_resource.h"

namespace cohort {

// The CPU's variable, which can also be used by rows. Thread-safe. It holds its value in one of two ways:
//   dense:   As VariableResource describes it. Every variable begins so.
//   by row:  The first Gather or UpdateRows chooses this way for good. The buffer then keeps its address, and an update
//            never copies all of it. Rows are read and changed under locks on stripes of rows. Read copies one stripe
//            after the other, so it sees each row whole, but not all rows at one time.
class CpuVariable final : public VariableResource {
 public:
  using VariableResource::VariableResource;

  // By row, the result is a copy.
  Tensor Read() const override;
  // By row, the value is copied.
  void Assign(const Tensor& value) override;

  // Rows `indices` (int32 or int64) copied out: shape indices.shape + shape[1:]. Throws InvalidArgumentError that names
  // the first index out of range, FailedPreconditionError.
  Tensor Gather(const Tensor& indices, Allocator& allocator);
  // `change(position, rows)` for each index, in the order of `indices` (which need not be unique), under its stripe's
  // lock: rows[0] is the row of this variable, rows[1..] the same row of each of `slots`. No index is looked at twice
  // and nothing is changed before all are known to be in range; throws as Gather, and InvalidArgumentError if a slot
  // has another number of rows.
  void UpdateRows(const Tensor& indices, std::span<CpuVariable* const> slots,
                  const std::function<void(int64_t position, std::span<void* const> rows)>& change);

 private:
  static constexpr size_t kStripes = 64;
  class StripeLock;
  void SwitchToRows() COHORT_EXCLUDES(mu_);
  Tensor CopyOfRows() const COHORT_REQUIRES_SHARED(mu_);
  // Rows of the value and bytes of one. Throws if the variable cannot be used by rows.
  int64_t RowCount() const COHORT_REQUIRES_SHARED(mu_);
  size_t RowBytes() const COHORT_REQUIRES_SHARED(mu_);

  bool by_row_ COHORT_GUARDED_BY(mu_) = false;
  mutable std::array<Mutex, kStripes> stripes_;  // guard the bytes by row, under a shared lock of mu_
};

}  // namespace cohort
