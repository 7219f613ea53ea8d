// The accumulator of sparse gradients: the sums of the rows that gradients held, and for each row how many held it.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/core/bfloat16.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/data_flow/accumulator.h"

namespace cohort {
namespace {

// T is the type of the elements; Sum is the type of their sums.
template <typename T, typename Sum>
class SparseAccumulator final : public AccumulatorResource {
 public:
  explicit SparseAccumulator(AccumulatorSpec spec) : AccumulatorResource(std::move(spec)) {}

 private:
  const char* kind() const override { return "SparseConditionalAccumulator"; }

  // Returns the shape of the dense form of a gradient. As in TensorFlow, a scalar shape says nothing.
  Shape Dense() const { return spec().shape.rank() == 0 ? Shape::UnknownRank() : spec().shape; }
  // Returns the shape of a row of `values`.
  static Shape RowShape(const Tensor& values) { return values.shape().Sub(1, values.shape().rank()); }

  [[noreturn]] void Fail(const std::string& expected, const std::string& got) const {
    throw InvalidArgumentError(StrCat("[accumulator] ", Describe(), " expected ", expected, "; got ", got));
  }

  void Check(const AccumulatedGradient& gradient) const override COHORT_REQUIRES(mu_) {
    const Tensor& values = gradient.values;
    const Tensor& indices = gradient.indices;
    if (values.dtype() != spec().dtype) {
      Fail(StrCat("values of ", spec().dtype), StrCat(values.dtype(), values.shape()));
    }
    if (indices.shape().rank() != 1) Fail("indices that are a vector", StrCat("the shape ", indices.shape()));
    if (values.shape().rank() < 1) Fail("values of at least one dimension", "a scalar");
    if (values.shape().dim(0) != indices.num_elements()) {
      Fail(StrCat("values with ", indices.num_elements(), " rows, one for each index"),
           StrCat("the shape ", values.shape()));
    }
    const Shape row = RowShape(values);
    const Shape held = row_.has_rank() ? row_ : KnownRow();
    if (!held.IsCompatibleWith(row)) Fail(StrCat("rows of the shape ", held), StrCat("the shape ", row));
    CheckDenseShape(gradient.dense_shape, row);
    const int64_t rows = Dense().has_rank() ? Dense().dim(0) : Shape::kUnknownDim;
    for (const int64_t index : indices.values<int64_t>()) {
      if (index < 0 || (rows >= 0 && index >= rows)) {
        Fail(StrCat("indices in [0, ", rows < 0 ? "rows" : StrCat(rows), ")"), StrCat(index));
      }
    }
  }

  // `dense_shape` is empty if the gradient does not tell its shape.
  void CheckDenseShape(const Tensor& dense_shape, const Shape& row) const {
    if (!dense_shape.defined() || dense_shape.num_elements() == 0) return;
    const Shape dense(dense_shape.ToVector<int64_t>());
    if (dense.rank() != row.rank() + 1 || !dense.Sub(1, dense.rank()).IsCompatibleWith(row) ||
        !Dense().IsCompatibleWith(dense)) {
      Fail(StrCat("a dense shape that fits ", Dense(), " and rows of ", row), StrCat(dense));
    }
  }

  Shape KnownRow() const {
    const Shape dense = Dense();
    return dense.has_rank() ? dense.Sub(1, dense.rank()) : Shape::UnknownRank();
  }

  void Add(const AccumulatedGradient& gradient, bool is_first) override COHORT_REQUIRES(mu_) {
    if (is_first) row_ = RowShape(gradient.values);
    ++gradients_;
    const auto size = static_cast<size_t>(row_.num_elements());
    const T* values = gradient.values.data<T>();
    for (const int64_t index : gradient.indices.values<int64_t>()) {
      const auto [place, is_new] = place_of_.try_emplace(index, rows_.size());
      if (is_new) {
        rows_.push_back({index, 0, 0});
        sums_.resize(sums_.size() + size);
      }
      Row& row = rows_[place->second];
      if (row.last_gradient != gradients_) ++row.count;  // repeated indices of one gradient count once
      row.last_gradient = gradients_;
      Sum* sum = sums_.data() + place->second * size;
      for (size_t i = 0; i < size; ++i) sum[i] += static_cast<Sum>(values[i]);
      values += size;
    }
  }

  AccumulatedGradient Remove(int64_t) override COHORT_REQUIRES(mu_) {
    const auto n = static_cast<int64_t>(rows_.size());
    std::vector<size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [this](size_t a, size_t b) COHORT_NO_THREAD_SAFETY_ANALYSIS { return rows_[a].index < rows_[b].index; });
    AccumulatedGradient result{Tensor(spec().dtype, Shape{n}.Concat(row_)), Tensor(DType::kInt64, Shape{n}), {}};
    const auto size = static_cast<size_t>(row_.num_elements());
    T* out = result.values.template data<T>();
    int64_t* indices = result.indices.template data<int64_t>();
    for (const size_t place : order) {
      const Row& row = rows_[place];
      *indices++ = row.index;
      const Sum divisor = spec().mean ? static_cast<Sum>(row.count) : Sum{1};
      for (size_t i = 0; i < size; ++i) *out++ = static_cast<T>(sums_[place * size + i] / divisor);
    }
    std::vector<int64_t> dense{Dense().has_rank() ? Dense().dim(0) : Shape::kUnknownDim};
    dense.insert(dense.end(), row_.dims().begin(), row_.dims().end());
    result.dense_shape = Tensor::Vector(dense);
    rows_.clear();
    sums_.clear();
    place_of_.clear();
    row_ = Shape::UnknownRank();
    return result;
  }

  struct Row {
    int64_t index;
    int64_t count;          // how many gradients held it
    int64_t last_gradient;  // the number of the last gradient that held it
  };
  Shape row_ COHORT_GUARDED_BY(mu_) = Shape::UnknownRank();  // of the rows that are held
  int64_t gradients_ COHORT_GUARDED_BY(mu_) = 0;             // numbers the gradients
  std::vector<Row> rows_ COHORT_GUARDED_BY(mu_);
  std::vector<Sum> sums_ COHORT_GUARDED_BY(mu_);  // the elements of all rows, in the order of rows_
  std::unordered_map<int64_t, size_t> place_of_ COHORT_GUARDED_BY(mu_);  // by index: the place in rows_
};

}  // namespace

std::shared_ptr<AccumulatorResource> MakeSparseAccumulator(const AccumulatorSpec& spec) {
  switch (spec.dtype) {
    case DType::kFloat32: return std::make_shared<SparseAccumulator<float, float>>(spec);
    case DType::kFloat64: return std::make_shared<SparseAccumulator<double, double>>(spec);
    case DType::kBfloat16: return std::make_shared<SparseAccumulator<bfloat16, float>>(spec);
    default:
      throw InvalidArgumentError(
          StrCat("[accumulator] expected float32, float64 or bfloat16 for '", spec.name, "'; got ", spec.dtype));
  }
}

}  // namespace cohort
