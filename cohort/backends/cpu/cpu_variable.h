// CpuVariable: a variable in host memory, whose rows can be read and updated one by one.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>

#include "cohort/core/mutex.h"
#include "cohort/device/variable_resource.h"

namespace cohort {

// A variable of the CPU, which can also be used by rows. The task's ResourceManager owns it. Thread-safe. It holds its
// value in one of two ways:
// - dense: Read shares the buffer of the whole value, as in VariableResource. Every variable begins in this way.
// - by row: the first Gather or UpdateRows changes the variable to this way, and it never changes back. An update of
//   rows then changes the buffer in place and never copies all of it. Rows are read and changed under locks, each of
//   which guards some of the rows (a stripe). Read copies one stripe after the other. So each row in its result is
//   consistent, but two rows may have values of different times.
class CpuVariable final : public VariableResource {
 public:
  using VariableResource::VariableResource;

  // If the value is held by row, returns a copy.
  Tensor Read() const override;
  // Throws as VariableResource::Assign does. If the value is held by row, copies `value`, and also throws
  // InvalidArgumentError if `value` is a scalar.
  void Assign(const Tensor& value) override;

  // Returns copies of the rows `indices` (int32 or int64). The result's shape is indices.shape + shape[1:]. Throws
  // InvalidArgumentError if an index is out of range (the message names the first one), if `indices` have another
  // dtype, or if the variable is a scalar or does not hold numbers. Throws FailedPreconditionError if the variable has
  // no value.
  Tensor Gather(const Tensor& indices, Allocator& allocator);
  // Lets `change` write to the rows `indices` of this variable and of its slot variables `slots`. Calls
  // `change(position, rows)` on this thread for each index, in the order of `indices`. Indices may repeat. `position`
  // is the place of the index in `indices`. rows[0] is the row of this variable, and rows[1..] are the same row of each
  // of `slots`. The row's stripe is locked in this variable and in `slots` during the call of `change`. All indices
  // are checked before the first call. Throws what Gather throws. Throws InvalidArgumentError if a slot has
  // another number of rows than this variable, if `slots` contains a variable twice, or if it contains this variable.
  void UpdateRows(const Tensor& indices, std::span<CpuVariable* const> slots,
                  const std::function<void(int64_t position, std::span<void* const> rows)>& change);

 private:
  static constexpr size_t kStripes = 64;
  class StripeLock;
  void SwitchToRows() COHORT_EXCLUDES(mu_);
  Tensor CopyOfRows() const COHORT_REQUIRES_SHARED(mu_);
  // Return the number of rows, and the bytes of one row. Throw if the variable cannot be used by rows.
  int64_t RowCount() const COHORT_REQUIRES_SHARED(mu_);
  size_t RowBytes() const COHORT_REQUIRES_SHARED(mu_);

  bool by_row_ COHORT_GUARDED_BY(mu_) = false;
  // A thread that uses a row holds mu_ (shared) and the lock of the row's stripe.
  mutable std::array<Mutex, kStripes> stripes_;
};

}  // namespace cohort
