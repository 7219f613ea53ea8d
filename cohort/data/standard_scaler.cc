#include "cohort/data/standard_scaler.h"

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

// Calls `visit` with the elements as they are.
template <typename Visit>
void VisitNumbers(const Tensor& tensor, const Visit& visit) {
  switch (tensor.dtype()) {
    case DType::kFloat32: return visit(tensor.data<float>());
    case DType::kFloat64: return visit(tensor.data<double>());
    case DType::kInt32: return visit(tensor.data<int32_t>());
    case DType::kInt64: return visit(tensor.data<int64_t>());
    case DType::kUint8: return visit(tensor.data<uint8_t>());
    case DType::kBfloat16: return visit(tensor.data<bfloat16>());
    default:
      throw InvalidArgumentError(StrCat("[data] expected numbers to scale; got ", tensor.dtype(), tensor.shape()));
  }
}

template <typename T>
double AsDouble(T value) {
  return static_cast<double>(value);
}
double AsDouble(bfloat16 value) { return static_cast<float>(value); }

}  // namespace

template <typename T>
void StandardScaler::AddRows(const T* values, int64_t rows) {
  const size_t features = mean_.size();
  for (int64_t row = 0; row < rows; ++row, values += features) {
    const double weight = 1.0 / static_cast<double>(++num_rows_);
    for (size_t i = 0; i < features; ++i) {
      const double value = AsDouble(values[i]);
      const double before = value - mean_[i];
      mean_[i] += before * weight;
      squares_[i] += before * (value - mean_[i]);
    }
  }
}

void StandardScaler::Fit(const Tensor& rows) {
  *this = StandardScaler();
  PartialFit(rows);
}

void StandardScaler::PartialFit(const Tensor& rows) {
  const Shape& shape = rows.shape();
  if (shape.rank() < 1 || shape.dim(0) == 0) {
    throw InvalidArgumentError(
        StrCat("[data] expected rows [n, features...] with n > 0 for StandardScaler; got ", rows.dtype(), shape));
  }
  const Shape features = shape.Sub(1, shape.rank());
  if (num_rows_ == 0) {
    feature_shape_ = features;
    mean_.assign(static_cast<size_t>(features.num_elements()), 0);
    squares_ = mean_;
  } else if (!(features == feature_shape_)) {
    throw InvalidArgumentError(
        StrCat("[data] expected rows with features ", feature_shape_, " as before; got ", features));
  }
  VisitNumbers(rows, [&](const auto* values) { AddRows(values, shape.dim(0)); });
}

void StandardScaler::Fit(const Dataset& dataset, size_t component) {
  *this = StandardScaler();
  const auto iterator = dataset.MakeIterator();
  Element element;
  while (iterator->Next(&element)) {
    if (component >= element.size()) {
      throw InvalidArgumentError(StrCat("[data] expected a component below ", element.size(), "; got ", component));
    }
    const Tensor& row = element[component];
    PartialFit(row.Reshaped(Shape{1}.Concat(row.shape())));
  }
  if (num_rows_ == 0)
    throw InvalidArgumentError("[data] expected elements to fit on; got none from " + dataset.ToString());
}

std::vector<double> StandardScaler::scale() const {
  std::vector<double> scale;
  for (const double squares : squares_) {
    const double deviation = std::sqrt(squares / static_cast<double>(num_rows_));
    scale.push_back(deviation > 0 ? deviation : 1);
  }
  return scale;
}

void StandardScaler::CheckFitted(const Tensor& values) const {
  if (num_rows_ == 0) {
    throw FailedPreconditionError("[data] expected a StandardScaler that is fitted; call Fit with the training data");
  }
  const Shape& shape = values.shape();
  const int extra = shape.rank() - feature_shape_.rank();
  if ((extra == 0 || extra == 1) && shape.Sub(extra, shape.rank()) == feature_shape_) return;
  throw InvalidArgumentError(
      StrCat("[data] expected values with features ", feature_shape_, "; got ", values.dtype(), shape));
}

template <typename Formula>
Tensor StandardScaler::Apply(const Tensor& values, const Formula& formula) const {
  CheckFitted(values);
  const std::vector<double> scale = this->scale();
  Tensor out(DType::kFloat32, values.shape());
  VisitNumbers(values, [&](const auto* from) {
    float* to = out.data<float>();
    const float* const end = to + out.num_elements();
    while (to != end) {
      for (size_t i = 0; i < mean_.size(); ++i) {
        *to++ = static_cast<float>(formula(AsDouble(*from++), mean_[i], scale[i]));
      }
    }
  });
  return out;
}

Tensor StandardScaler::Transform(const Tensor& values) const {
  return Apply(values, [](double value, double mean, double scale) { return (value - mean) / scale; });
}

Tensor StandardScaler::InverseTransform(const Tensor& values) const {
  return Apply(values, [](double value, double mean, double scale) { return value * scale + mean; });
}

}  // namespace cohort::data
