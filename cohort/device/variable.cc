#include "cohort/device/variable.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

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

// Where an update of `value` writes: in place where nobody else can see it.
Tensor TargetOfUpdate(const Tensor& value) {
  return value.OwnsBufferAlone() ? value : Tensor(value.dtype(), value.shape());
}

}  // namespace

// The locks of several variables, taken in the order of their addresses. Throws where one stands twice.
class Variable::SetLock {
 public:
  enum class Mode { kShared, kExclusive };

  SetLock(std::vector<Variable*> variables, Mode mode) NO_THREAD_SAFETY_ANALYSIS : variables_(std::move(variables)),
                                                                                   mode_(mode) {
    std::sort(variables_.begin(), variables_.end(), std::less<>());
    const auto twice = std::adjacent_find(variables_.begin(), variables_.end());
    if (twice != variables_.end()) {
      throw InvalidArgumentError(
          StrCat("[variable] expected different variables in one update; got '", (*twice)->name(), "' twice"));
    }
    for (Variable* variable : variables_) {
      mode_ == Mode::kShared ? variable->mu_.LockShared() : variable->mu_.Lock();
    }
  }
  ~SetLock() NO_THREAD_SAFETY_ANALYSIS {
    for (Variable* variable : variables_) {
      mode_ == Mode::kShared ? variable->mu_.UnlockShared() : variable->mu_.Unlock();
    }
  }
  SetLock(const SetLock&) = delete;
  SetLock& operator=(const SetLock&) = delete;
  // In the order of locking.
  const std::vector<Variable*>& variables() const { return variables_; }

 private:
  std::vector<Variable*> variables_;
  Mode mode_;
};

// The same stripe of one or several variables (`variables` in the order of their addresses, unchanged
// meanwhile); held from row to row while the stripe stays the same. A thread holds at most one stripe of each
// variable.
class Variable::StripeLock {
 public:
  explicit StripeLock(std::span<const Variable* const> variables) : variables_(variables) {}
  ~StripeLock() { Release(); }
  StripeLock(const StripeLock&) = delete;
  StripeLock& operator=(const StripeLock&) = delete;

  void MoveTo(int64_t row) NO_THREAD_SAFETY_ANALYSIS {
    const size_t stripe = static_cast<size_t>(row) % kStripes;
    if (stripe == stripe_) return;
    Release();
    for (const Variable* variable : variables_) variable->stripes_[stripe].Lock();
    stripe_ = stripe;
  }

 private:
  void Release() NO_THREAD_SAFETY_ANALYSIS {
    if (stripe_ == kStripes) return;
    for (const Variable* variable : variables_) variable->stripes_[stripe_].Unlock();
    stripe_ = kStripes;
  }

  std::span<const Variable* const> variables_;
  size_t stripe_ = kStripes;  // none
};

Variable::Variable(std::string name, DType dtype, Shape shape)
    : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)) {}

void Variable::CheckInitialized() const {
  if (!value_.defined()) {
    throw FailedPreconditionError(StrCat("[variable] Attempting to use uninitialized value ", name_,
                                         "; run its initializer or restore it first"));
  }
}

int64_t Variable::RowCount() const {
  if (value_.shape().rank() < 1 || DTypeSize(dtype_) == 0) {
    throw InvalidArgumentError(
        StrCat("[variable] expected a variable with rows of numbers; got '", name_, "' of ", dtype_, value_.shape()));
  }
  return value_.shape().dim(0);
}

size_t Variable::RowBytes() const {
  const Shape& shape = value_.shape();
  return static_cast<size_t>(shape.Sub(1, shape.rank()).num_elements()) * DTypeSize(dtype_);
}

Tensor Variable::Read() const {
  ReaderLock lock(mu_);
  CheckInitialized();
  return by_row_ ? CopyOfRows() : value_;
}

// Stripe by stripe, so that one long copy does not hold up every other row.
Tensor Variable::CopyOfRows() const {
  Tensor copy(dtype_, value_.shape());
  const int64_t rows = RowCount();
  const size_t bytes = RowBytes();
  const auto* from = static_cast<const char*>(value_.raw_data());
  auto* to = static_cast<char*>(copy.raw_data());
  const Variable* const self = this;
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

void Variable::Assign(const Tensor& value) {
  if (value.dtype() != dtype_ || !shape_.IsCompatibleWith(value.shape())) {
    throw InvalidArgumentError(StrCat("[variable] expected ", dtype_, shape_, " as value of variable '", name_,
                                      "'; got ", value.dtype(), value.shape()));
  }
  WriterLock lock(mu_);
  if (by_row_ && value.shape().rank() < 1) {
    throw InvalidArgumentError(StrCat("[variable] variable '", name_, "' is used by rows; got a scalar for it"));
  }
  value_ = by_row_ ? value.Clone() : value;  // rows change in place, so nobody else may hold the buffer
  initialized_.store(true, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_acq_rel);
}

void Variable::Update(const std::function<void(const Tensor& old, Tensor& out)>& change) {
  WriterLock lock(mu_);
  CheckInitialized();
  Tensor out = TargetOfUpdate(value_);
  change(value_, out);
  value_ = std::move(out);
  version_.fetch_add(1, std::memory_order_acq_rel);
}

void Variable::UpdateTogether(std::span<Variable* const> variables,
                              const std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs)>& change)
    NO_THREAD_SAFETY_ANALYSIS {
  const SetLock lock({variables.begin(), variables.end()}, SetLock::Mode::kExclusive);
  std::vector<Tensor> outs;
  std::vector<Tensor> olds;
  outs.reserve(variables.size());
  olds.reserve(variables.size());
  for (Variable* variable : variables) {
    variable->CheckInitialized();
    outs.push_back(TargetOfUpdate(variable->value_));
    olds.push_back(variable->value_);
  }
  change(olds, outs);
  for (size_t i = 0; i < variables.size(); ++i) {
    variables[i]->value_ = std::move(outs[i]);
    variables[i]->version_.fetch_add(1, std::memory_order_acq_rel);
  }
}

void Variable::SwitchToRows() {
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

Tensor Variable::Gather(const Tensor& indices, Allocator& allocator) {
  for (;;) {
    {
      ReaderLock lock(mu_);
      CheckInitialized();
      if (by_row_) {
        const int64_t rows = RowCount();
        const size_t bytes = RowBytes();
        Tensor result(dtype_, indices.shape().Concat(value_.shape().Sub(1, value_.shape().rank())), allocator);
        const auto* from = static_cast<const char*>(value_.raw_data());
        auto* to = static_cast<char*>(result.raw_data());
        const Variable* const self = this;
        WithIndices(indices, name_, [&](auto list) {
          CheckIndices(list, rows, name_);
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

void Variable::UpdateRows(const Tensor& indices, std::span<Variable* const> slots,
                          const std::function<void(int64_t position, std::span<void* const> rows)>& change)
    NO_THREAD_SAFETY_ANALYSIS {
  std::vector<Variable*> all = {this};
  all.insert(all.end(), slots.begin(), slots.end());
  for (Variable* variable : all) variable->SwitchToRows();  // for good: the mode never goes back
  const SetLock lock(all, SetLock::Mode::kShared);

  struct Rows {
    char* base;
    size_t bytes;
  };
  std::vector<Rows> values;
  const int64_t row_count = RowCount();
  for (Variable* variable : all) {
    variable->CheckInitialized();
    if (variable->RowCount() != row_count) {
      throw InvalidArgumentError(StrCat("[variable] expected ", row_count, " rows in slot '", variable->name_,
                                        "' of variable '", name_, "'; got ", variable->RowCount()));
    }
    values.push_back({static_cast<char*>(variable->value_.raw_data()), variable->RowBytes()});
  }
  const std::vector<const Variable*> ordered(lock.variables().begin(), lock.variables().end());
  std::vector<void*> rows(values.size());
  WithIndices(indices, name_, [&](auto list) {
    CheckIndices(list, row_count, name_);
    StripeLock stripe(ordered);
    for (size_t position = 0; position < list.size(); ++position) {
      stripe.MoveTo(list[position]);
      for (size_t i = 0; i < values.size(); ++i) {
        rows[i] = values[i].base + static_cast<size_t>(list[position]) * values[i].bytes;
      }
      change(static_cast<int64_t>(position), rows);
    }
  });
  for (Variable* variable : all) variable->version_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace cohort
