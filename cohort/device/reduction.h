// Reductions: the loops that add (or multiply, ...) tensors of one shape. A backend may offer them for its device type.
// Collectives reduce in host memory, on every device. So they use the table of the host's type alone, and only the
// CPU's backend has one so far.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cohort/core/dtype.h"
#include "cohort/device/communicator.h"

namespace cohort {

// Computes out[i] = a[i] op b[i] for n elements. For MEAN it computes (a[i] + b[i]) / divisor, rounded towards zero for
// integers; all other operations ignore `divisor`. Integers wrap around. MIN and MAX return NaN if an operand is NaN.
// `out` may be the same memory as `a` or `b`.
using ReduceFn = void (*)(const void* a, const void* b, void* out, int64_t n, int64_t divisor);

// The loops of one device type. Both functions may be called on any thread.
struct ReductionTable {
  // Returns the dtype in which sums of `dtype` are computed: float32 for bfloat16, else `dtype`.
  DType (*accumulator_of)(DType dtype) = nullptr;
  // Returns the loop for elements of `dtype`. `a`, `b` and `out` are the dtypes of the operands and of the result; each
  // is `dtype` or accumulator_of(dtype). Throws UnimplementedError if `dtype` is not a number.
  ReduceFn (*find)(ReduceOp op, DType dtype, DType a, DType b, DType out) = nullptr;
};

// The tables by device type. Backends register theirs once at the start (cohort/registration.h). After that the object
// never changes, and all threads may read it.
class Reductions {
 public:
  static Reductions& Global();
  // Sets the table of a device type, or replaces it.
  void Register(const std::string& device_type, const ReductionTable& table);
  // Returns the table. It lives as long as the process. Throws FailedPreconditionError if no backend has registered the
  // type.
  const ReductionTable& Find(const std::string& device_type) const;

 private:
  std::map<std::string, ReductionTable> tables_;
};

}  // namespace cohort
