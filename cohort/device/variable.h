// Variable: a value that steps read and update. A read sees a whole value, never half an update.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"
#include "cohort/device/resource.h"

namespace cohort {

// Thread-safe. Two ways to hold the value, chosen by use:
//   dense:   a read shares the buffer; an update writes old + change into a second buffer and swaps (in place when no
//            reader holds the first one), so two buffers suffice however many readers there are.
//   by row:  from the first Gather or Scatter on, the buffer stays where it is and never is copied as a whole for an
//            update: rows are copied out and changed under row-stripe locks; a whole read copies under all stripes. The
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
  // the two may be the same memory). Under the variable's lock: one update after another. Throws FailedPreconditionError.
  void Update(const std::function<void(const Tensor& old, Tensor& out)>& change);
  // The same for a variable with slots that change together (Momentum, Adam): all are locked in the order of their
  // addresses, `outs[i]` belongs to `variables[i]`.
  static void UpdateTogether(std::span<Variable* const> variables,
                             const std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs)>& change);

  // Rows `indices` (int32 or int64) copied out: shape indices.shape + shape[1:]. Throws InvalidArgumentError that names
  // the first index out of range, FailedPreconditionError.
  Tensor Gather(const Tensor& indices, Allocator& allocator);
  // `change(row_number_in_indices, row, row_bytes)` for each index under its stripe's lock; the indices need not be unique.
  // With `slots`, the same row of each slot (rows[0] is this variable's) is handed over.
  void UpdateRows(const Tensor& indices, std::span<Variable* const> slots,
                  const std::function<void(int64_t position, std::span<void* const> rows)>& change);

  // How often Update, UpdateTogether, UpdateRows and Assign have changed it.
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  std::string Describe() const override { return "variable '" + name_ + "'"; }

 private:
  static constexpr size_t kStripes = 64;
  void SwitchToRows();
  [[noreturn]] void FailUninitialized() const;

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

// The update sets of a task. A step that changes variables is inside the gate from its first update to its last; a
// checkpoint closes the gate while it takes references of all values, and so sees each step's updates as a whole.
// Thread-safe; a step may leave on another thread than it entered on.
class UpdateGate {
 public:
  // Waits while the gate is closed or somebody waits to close it.
  void EnterStep();
  void LeaveStep();
  // Waits until no step is inside. Throws DeadlineExceededError with the number of steps inside.
  void Close(std::chrono::milliseconds timeout);
  void Open();

 private:
  Mutex mu_;
  CondVar changed_;
  int inside_ GUARDED_BY(mu_) = 0;
  int closing_ GUARDED_BY(mu_) = 0;
  bool closed_ GUARDED_BY(mu_) = false;
};

}  // namespace cohort
