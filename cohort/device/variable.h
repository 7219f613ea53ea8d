// Variable: a value that steps read and update. A read sees a whole value, never half an update.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"
#include "cohort/device/resource.h"

namespace cohort {

// Thread-safe. Two ways to hold the value, chosen by use:
//   dense:   a read shares the buffer; an update writes old + change into a second buffer and swaps (in place when no
//            reader holds the first one), so two buffers suffice however many readers there are.
//   by row:  from the first Gather or Scatter on, the buffer stays where it is and never is copied as a whole for an
//            update: rows are copied out and changed under row-stripe locks; a whole read copies stripe by stripe. The
//            guarantee is then per row.
class Variable final : public Resource {
 public:
  Variable(std::string name, DType dtype, Shape shape);

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }  // as declared: dimensions may be unknown
  bool initialized() const { return initialized_.load(std::memory_order_acquire); }

  // Throws FailedPreconditionError "Attempting to use uninitialized value NAME".
  Tensor Read() const;
  // Takes over the tensor (its buffer is not copied: the caller must not write into it afterwards).
  // Throws InvalidArgumentError when dtype or shape do not fit the declaration.
  void Assign(const Tensor& value);
  // Dense update: `change(old, out)` writes all elements of `out` from `old` (both of the variable's shape and dtype;
  // the two may be the same memory). Under the variable's lock: one update after another. Throws
  // FailedPreconditionError. `change` makes all its checks before it writes: what it has written when it throws may
  // stay.
  void Update(const std::function<void(const Tensor& old, Tensor& out)>& change);
  // The same for a variable with slots that change together (Momentum, Adam): all are locked in the order of their
  // addresses, `outs[i]` belongs to `variables[i]`.
  static void UpdateTogether(std::span<Variable* const> variables,
                             const std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs)>& change);

  // Rows `indices` (int32 or int64) copied out: shape indices.shape + shape[1:]. Throws InvalidArgumentError that names
  // the first index out of range, FailedPreconditionError.
  Tensor Gather(const Tensor& indices, Allocator& allocator);
  // `change(position, rows)` for each index, in the order of `indices` (which need not be unique), under its stripe's
  // lock: rows[0] is the row of this variable, rows[1..] the same row of each of `slots`. No index is looked at twice
  // and nothing is changed before all are known to be in range; throws as Gather, and InvalidArgumentError where a slot
  // has another number of rows.
  void UpdateRows(const Tensor& indices, std::span<Variable* const> slots,
                  const std::function<void(int64_t position, std::span<void* const> rows)>& change);

  // How often Update, UpdateTogether, UpdateRows and Assign have changed it.
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  std::string Describe() const override { return "variable '" + name_ + "'"; }

 private:
  static constexpr size_t kStripes = 64;
  class StripeLock;
  class SetLock;
  void SwitchToRows() EXCLUDES(mu_);
  Tensor CopyOfRows() const REQUIRES_SHARED(mu_);
  void CheckInitialized() const REQUIRES_SHARED(mu_);
  // Rows of the value and bytes of one. Throws where the variable cannot be used by rows.
  int64_t RowCount() const REQUIRES_SHARED(mu_);
  size_t RowBytes() const REQUIRES_SHARED(mu_);

  const std::string name_;
  const DType dtype_;
  const Shape shape_;
  // mu_ guards the value's identity (which buffer); in row mode the bytes are guarded by the stripes.
  mutable SharedMutex mu_;
  Tensor value_ GUARDED_BY(mu_);
  bool by_row_ GUARDED_BY(mu_) = false;
  mutable std::array<Mutex, kStripes> stripes_;
  std::atomic<bool> initialized_{false};
  std::atomic<int64_t> version_{0};
};

}  // namespace cohort
