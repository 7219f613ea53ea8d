#include "tests/ops/op_cases.h"

#include <ostream>
#include <type_traits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"

namespace cohort::testing {

std::vector<OpCase> AllOpCases() {
  std::vector<OpCase> cases;
  AddArrayCases(cases);
  AddSliceCases(cases);
  AddMathCases(cases);
  AddReductionCases(cases);
  AddIndexCases(cases);
  AddRecordCases(cases);
  AddImageFileCases(cases);
  AddStringCases(cases);
  AddCoordinateCases(cases);
  AddSpecialFunctionCases(cases);
  AddCompositeCases(cases);
  AddNnCases(cases);
  AddConvolutionalCases(cases);
  AddImageCases(cases);
  AddRandomCases(cases);
  AddStateCases(cases);
  AddTrainingCases(cases);
  AddControlFlowCases(cases);
  AddCheckpointCases(cases);
  AddCollectiveCases(cases);
  AddDatasetCases(cases);
  AddDataFlowCases(cases);
  AddLoadedGraphCases(cases);
  return cases;
}

std::string CaseName(const OpCase& op_case) { return StrCat(op_case.op, "_", op_case.label); }

void PrintTo(const OpCase& op_case, std::ostream* out) { *out << CaseName(op_case); }

CaseGraph::CaseGraph(const OpCase& op_case, bool unknown_dims) {
  for (const Tensor& input : op_case.inputs) {
    const Shape shape = unknown_dims ? Shape::UnknownDims(input.shape().rank()) : input.shape();
    inputs.push_back(ops::Placeholder(graph, input.dtype(), shape, "input"));
  }
  outputs = op_case.build(graph, inputs);
}

Tensor Ramp(const Shape& shape, double low, double high) {
  Tensor tensor(DType::kFloat64, shape);
  const int64_t n = tensor.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    tensor.data<double>()[i] =
        n == 1 ? 0.25 * low + 0.75 * high : low + (high - low) * static_cast<double>(i) / static_cast<double>(n - 1);
  }
  return tensor;
}

Tensor Scatter(const Shape& shape, double low, double high, int seed) {
  Tensor tensor = Ramp(shape, low, high);
  const int64_t n = tensor.num_elements();
  uint64_t state = static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = n - 1; i > 0; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(tensor.data<double>()[i], tensor.data<double>()[static_cast<int64_t>((state >> 33) % uint64_t(i + 1))]);
  }
  return tensor;
}

namespace {

template <typename To, typename From>
Tensor Convert(const Tensor& value) {
  Tensor result(kDTypeOf<To>, value.shape());
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    const From from = value.data<From>()[i];
    if constexpr (std::is_same_v<To, bfloat16>)
      result.data<To>()[i] = bfloat16(static_cast<float>(from));
    else
      result.data<To>()[i] = static_cast<To>(from);
  }
  return result;
}

}  // namespace

Tensor AsType(const Tensor& float64, DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return Convert<float, double>(float64);
    case DType::kFloat64: return float64;
    case DType::kBfloat16: return Convert<bfloat16, double>(float64);
    case DType::kInt32: return Convert<int32_t, double>(float64);
    case DType::kInt64: return Convert<int64_t, double>(float64);
    case DType::kUint8: return Convert<uint8_t, double>(float64);
    case DType::kBool: return Convert<bool, double>(float64);
    default: throw InvalidArgumentError(StrCat("no number has dtype ", dtype));
  }
}

Tensor AsFloat64(const Tensor& value) {
  switch (value.dtype()) {
    case DType::kFloat32: return Convert<double, float>(value);
    case DType::kFloat64: return value;
    case DType::kBfloat16: {
      Tensor wide(DType::kFloat32, value.shape());
      for (int64_t i = 0; i < value.num_elements(); ++i) {
        wide.data<float>()[i] = static_cast<float>(value.data<bfloat16>()[i]);
      }
      return Convert<double, float>(wide);
    }
    case DType::kInt32: return Convert<double, int32_t>(value);
    case DType::kInt64: return Convert<double, int64_t>(value);
    case DType::kUint8: return Convert<double, uint8_t>(value);
    case DType::kBool: return Convert<double, bool>(value);
    default: throw InvalidArgumentError(StrCat("no number has dtype ", value.dtype()));
  }
}

Tensor Flags(const std::vector<bool>& values) { return Flags(values, Shape{static_cast<int64_t>(values.size())}); }
Tensor Flags(const std::vector<bool>& values, const Shape& shape) { return Tensor::FromValues<bool>(values, shape); }

DType DifferentiatedDType(const OpCase& op_case) {
  return op_case.inputs.at(static_cast<size_t>(op_case.differentiable.at(0))).dtype();
}

OpCase::Build Unary(std::function<Output(Output)> fn) {
  return [fn = std::move(fn)](Graph&, const std::vector<Output>& in) { return std::vector<Output>{fn(in[0])}; };
}

OpCase::Build Binary(std::function<Output(Output, Output)> fn) {
  return [fn](Graph&, const std::vector<Output>& in) { return std::vector<Output>{fn(in[0], in[1])}; };
}

OpCase::Build Unary(UnaryOp fn) {
  return Unary([fn](Output x) { return fn(x, ""); });
}

OpCase::Build Binary(BinaryOp fn) {
  return Binary([fn](Output x, Output y) { return fn(x, y, ""); });
}

}  // namespace cohort::testing
