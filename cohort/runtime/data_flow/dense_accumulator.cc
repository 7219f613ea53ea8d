// The accumulator of dense gradients: a sum to which each gradient is added when it comes.
#include <cstdint>
#include <utility>

#include "cohort/core/bfloat16.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"
#include "cohort/device/reduction.h"
#include "cohort/runtime/data_flow/accumulator.h"

namespace cohort {
namespace {

// Divides `sum` by `divisor`. The elements of the result have the type T.
template <typename T, typename Sum>
Tensor Quotient(Tensor sum, int64_t divisor) {
  Tensor result = std::is_same_v<T, Sum> && sum.OwnsBufferAlone() ? sum : Tensor(kDTypeOf<T>, sum.shape());
  const Sum* in = sum.data<Sum>();
  T* out = result.data<T>();
  const auto by = static_cast<Sum>(divisor);
  for (int64_t i = 0; i < sum.num_elements(); ++i) out[i] = static_cast<T>(in[i] / by);
  return result;
}

class DenseAccumulator final : public AccumulatorResource {
 public:
  explicit DenseAccumulator(AccumulatorSpec spec)
      : AccumulatorResource(std::move(spec)),
        table_(Reductions::Global().Find(kHostDeviceType)),
        sum_dtype_(table_.accumulator_of(this->spec().dtype)) {}

 private:
  const char* kind() const override { return "ConditionalAccumulator"; }

  void Check(const AccumulatedGradient& gradient) const override COHORT_REQUIRES(mu_) {
    const Shape& got = gradient.values.shape();
    const Shape expected = sum_.defined() ? sum_.shape() : spec().shape;
    if (gradient.values.dtype() == spec().dtype && expected.IsCompatibleWith(got)) return;
    throw InvalidArgumentError(StrCat("[accumulator] Shape mismatch: ", Describe(), " expected a gradient of ",
                                      spec().dtype, expected, ", got ", gradient.values.dtype(), got));
  }

  void Add(const AccumulatedGradient& gradient, bool is_first) override COHORT_REQUIRES(mu_) {
    const DType dtype = spec().dtype;
    const Tensor& value = gradient.values;
    if (is_first && dtype == sum_dtype_) {
      sum_ = value;
      return;
    }
    if (is_first) sum_ = Tensor::Zeros(sum_dtype_, value.shape());
    Tensor out = sum_.OwnsBufferAlone() ? sum_ : Tensor(sum_dtype_, value.shape());
    const ReduceFn add = table_.find(ReduceOp::kSum, dtype, sum_dtype_, dtype, sum_dtype_);
    add(sum_.raw_data(), value.raw_data(), out.raw_data(), value.num_elements(), 1);
    sum_ = std::move(out);
  }

  AccumulatedGradient Remove(int64_t count) override COHORT_REQUIRES(mu_) {
    Tensor sum = std::move(sum_);
    sum_ = Tensor();
    const int64_t divisor = spec().mean ? count : 1;
    if (divisor == 1 && sum.dtype() == spec().dtype) return {std::move(sum), {}, {}};
    switch (spec().dtype) {
      case DType::kFloat32: return {Quotient<float, float>(std::move(sum), divisor), {}, {}};
      case DType::kFloat64: return {Quotient<double, double>(std::move(sum), divisor), {}, {}};
      default: return {Quotient<bfloat16, float>(std::move(sum), divisor), {}, {}};
    }
  }

  const ReductionTable& table_;
  const DType sum_dtype_;
  Tensor sum_ COHORT_GUARDED_BY(mu_);  // undefined if there is no gradient
};

}  // namespace

std::shared_ptr<AccumulatorResource> MakeDenseAccumulator(const AccumulatorSpec& spec) {
  return std::make_shared<DenseAccumulator>(spec);
}

}  // namespace cohort
