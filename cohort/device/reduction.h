// The element loops of reductions over several tensors of one shape, which a backend offers for its device type and
// collectives use.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cohort/core/dtype.h"
#include "cohort/device/communicator.h"

namespace cohort {

// Computes out[i] = a[i] op b[i] for n elements; for MEAN (a[i] + b[i]) / divisor, for integers towards zero. Integers
// wrap around. MIN and MAX return NaN if an operand is NaN. `out` may be `a` or `b`.
using ReduceFn = void (*)(const void* a, const void* b, void* out, int64_t n, int64_t divisor);

// What a device type offers. Both functions may be called by any thread.
struct ReductionTable {
  // Returns the dtype in which sums of `dtype` are kept: float32 for bfloat16, else `dtype`.
  DType (*accumulator_of)(DType dtype) = nullptr;
  // Returns the loop for elements of `dtype`. Each operand and the result may instead have the dtype
  // accumulator_of(dtype). Throws UnimplementedError for dtypes that are not numbers.
  ReduceFn (*find)(ReduceOp op, DType dtype, DType a, DType b, DType out) = nullptr;
};

// The tables by device type. Backends fill it once at start (cohort/registration.h); it is read-only afterwards.
class Reductions {
 public:
  static Reductions& Global();
  // Sets the table of a device type. A later call replaces it.
  void Register(const std::string& device_type, const ReductionTable& table);
  // Throws FailedPreconditionError if no backend has registered the type. The table lives as long as the process.
  const ReductionTable& Find(const std::string& device_type) const;

 private:
  std::map<std::string, ReductionTable> tables_;
};

}  // namespace cohort
