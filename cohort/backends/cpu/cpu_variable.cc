// CpuVariable. Row i belongs to stripe i mod kStripes. Reading or changing rows holds a shared lock of the variable and
// the lock of one stripe at a time (StripeLock), so that updates of different rows run at the same time. Assign holds
// the variable's lock alone.
#include "cohort/backends/cpu/cpu_variable.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// Throws for the first index outside [0, rows).
template <typename T>
void CheckIndices(std::span<const T> indices, int64_t rows, const std::string& variable) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || static_cast<int64_t>(indices[i]) >= rows) {
      throw InvalidArgumentError(StrCat("[variable] indices[", i, "] = ", indices[i], " is not in [0, ", rows,
                                        "), the rows of variable '", variable, "'"));
    }
  }
}

// Calls `fn` with the indices as a span of their own type.
template <typename Fn>
void WithIndices(const Tensor& indices, const std::string& variable, const Fn& fn) {
  if (indices.dtype() == DType::kInt32) {
    fn(indices.values<int32_t>());
  } else if (indices.dtype() == DType::kInt64) {
    fn(indices.values<int64_t>());
  } else {
    throw InvalidArgumentError(StrCat("[variable] expected int32 or int64 indices into variable '", variable, "'; got ",
                                      indices.dtype(), indices.shape()));
  }
}

}  // namespace

// Locks the same stripe of one or several variables. It is held from row to row while the stripe stays the same. A
// thread holds at most one stripe of each variable. Requires: `variables` are in the order of their addresses, and do
// not change meanwhile.
class CpuVariable::StripeLock {
 public:
  explicit StripeLock(std::span<const CpuVariable* const> variables) : variables_(variables) {}
  ~StripeLock() { Release(); }
  StripeLock(const StripeLock&) = delete;
  StripeLock& operator=(const StripeLock&) = delete;

  void MoveTo(int64_t row) COHORT_NO_THREAD_SAFETY_ANALYSIS {
    const size_t stripe = static_cast<size_t>(row) % kStripes;
    if (stripe == stripe_) return;
    Release();
    for (const CpuVariable* variable : variables_) variable->stripes_[stripe].Lock();
    stripe_ = stripe;
  }

 private:
  void Release() COHORT_NO_THREAD_SAFETY_ANALYSIS {
    if (stripe_ == kStripes) return;
    for (const CpuVariable* variable : variables_) variable->stripes_[stripe_].Unlock();
    stripe_ = kStripes;
  }

  std::span<const CpuVariable* const> variables_;
  size_t stripe_ = kStripes;  // none
};

int64_t CpuVariable::RowCount() const {
  if (value_.shape().rank() < 1 || DTypeSize(dtype()) == 0) {
    throw InvalidArgumentError(
        StrCat("[variable] expected a variable with rows of numbers; got '", name(), "' of ", dtype(), value_.shape()));
  }
  return value_.shape().dim(0);
}

size_t CpuVariable::RowBytes() const {
  const Shape& shape = value_.shape();
  return static_cast<size_t>(shape.Sub(1, shape.rank()).num_elements()) * DTypeSize(dtype());
}

Tensor CpuVariable::Read() const {
  ReaderLock lock(mu_);
  CheckInitialized();
  return by_row_ ? CopyOfRows() : value_;
}

// Copies stripe by stripe, so that a long copy does not block all other rows.
Tensor CpuVariable::CopyOfRows() const {
  Tensor copy(dtype(), value_.shape());
  const int64_t rows = RowCount();
  const size_t bytes = RowBytes();
  const auto* from = static_cast<const char*>(value_.raw_data());
  auto* to = static_cast<char*>(copy.raw_data());
  const CpuVariable* const self = this;
  StripeLock stripe({&self, 1});
  for (int64_t first = 0; first < std::min<int64_t>(rows, kStripes); ++first) {
    stripe.MoveTo(first);
    for (int64_t row = first; row < rows; row += kStripes) {
      const size_t offset = static_cast<size_t>(row) * bytes;
      std::memcpy(to + offset, from + offset, bytes);
    }
  }
  return copy;
}

void CpuVariable::Assign(const Tensor& value) {
  CheckFits(value);
  WriterLock lock(mu_);
  if (by_row_ && value.shape().rank() < 1) {
    throw InvalidArgumentError(StrCat("[variable] variable '", name(), "' is used by rows; got a scalar for it"));
  }
  Store(by_row_ ? value.Clone() : value);  // rows change in place, so nobody else may hold the buffer
}

void CpuVariable::SwitchToRows() {
  {
    ReaderLock lock(mu_);
    if (by_row_) return;
  }
  WriterLock lock(mu_);
  CheckInitialized();
  RowCount();
  if (!value_.OwnsBufferAlone()) value_ = value_.Clone();
  by_row_ = true;
}

Tensor CpuVariable::Gather(const Tensor& indices, Allocator& allocator) {
  for (;;) {
    {
      ReaderLock lock(mu_);
      CheckInitialized();
      if (by_row_) {
        const int64_t rows = RowCount();
        const size_t bytes = RowBytes();
        Tensor result(dtype(), indices.shape().Concat(value_.shape().Sub(1, value_.shape().rank())), allocator);
        const auto* from = static_cast<const char*>(value_.raw_data());
        auto* to = static_cast<char*>(result.raw_data());
        const CpuVariable* const self = this;
        WithIndices(indices, name(), [&](auto list) {
          CheckIndices(list, rows, name());
          StripeLock stripe({&self, 1});
          for (const auto row : list) {
            stripe.MoveTo(row);
            std::memcpy(to, from + static_cast<size_t>(row) * bytes, bytes);
            to += bytes;
          }
        });
        return result;
      }
    }
    SwitchToRows();
  }
}

void CpuVariable::UpdateRows(const Tensor& indices, std::span<CpuVariable* const> slots,
                             const std::function<void(int64_t position, std::span<void* const> rows)>& change)
    COHORT_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<CpuVariable*> all = {this};
  all.insert(all.end(), slots.begin(), slots.end());
  for (CpuVariable* variable : all) variable->SwitchToRows();  // for good: the mode never goes back
  const SetLock lock({all.begin(), all.end()}, SetLock::Mode::kShared);

  struct Rows {
    char* base;
    size_t bytes;
  };
  std::vector<Rows> values;
  const int64_t row_count = RowCount();
  for (CpuVariable* variable : all) {
    variable->CheckInitialized();
    if (variable->RowCount() != row_count) {
      throw InvalidArgumentError(StrCat("[variable] expected ", row_count, " rows in slot '", variable->name(),
                                        "' of variable '", name(), "'; got ", variable->RowCount()));
    }
    values.push_back({static_cast<char*>(variable->value_.raw_data()), variable->RowBytes()});
  }
  std::vector<const CpuVariable*> ordered;
  for (const VariableResource* variable : lock.variables())
    ordered.push_back(static_cast<const CpuVariable*>(variable));
  std::vector<void*> rows(values.size());
  WithIndices(indices, name(), [&](auto list) {
    CheckIndices(list, row_count, name());
    StripeLock stripe(ordered);
    for (size_t position = 0; position < list.size(); ++position) {
      stripe.MoveTo(list[position]);
      for (size_t i = 0; i < values.size(); ++i) {
        rows[i] = values[i].base + static_cast<size_t>(list[position]) * values[i].bytes;
      }
      change(static_cast<int64_t>(position), rows);
    }
  });
  for (CpuVariable* variable : all) variable->CountUpdate();
}

}  // namespace cohort
