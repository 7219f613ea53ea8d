// Cases of special functions.
#include <string>
#include <utility>

#include "cohort/ops/special_functions.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {

void AddSpecialFunctionCases(std::vector<OpCase>& cases) {
  struct Row {
    const char* op;
    UnaryOp fn;
    double low, high;
  };
  for (const Row& row :
       {Row{"Asin", ops::Asin, -0.9, 0.9}, Row{"Acos", ops::Acos, -0.9, 0.9}, Row{"Atan", ops::Atan, -4, 4},
        Row{"Sinh", ops::Sinh, -3, 3}, Row{"Cosh", ops::Cosh, -3, 3}, Row{"Asinh", ops::Asinh, -4, 4},
        Row{"Acosh", ops::Acosh, 1.2, 5}, Row{"Atanh", ops::Atanh, -0.9, 0.9}}) {
    const Tensor x = Scatter({3, 6}, row.low, row.high);
    cases.push_back({row.op, "matrix", {x}, Unary(row.fn), {0}});
    cases.push_back({row.op, "scalar", {Ramp({}, row.low, row.high)}, Unary(row.fn), {0}});
    cases.push_back({row.op, "empty", {Ramp({0, 3})}, Unary(row.fn), {0}});
    cases.push_back({row.op, "beyond", {Ramp({9}, -7, 7)}, Unary(row.fn)});  // NaN if there is no result
    for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
      cases.push_back({row.op, std::string(DTypeName(dtype)), {AsType(x, dtype)}, Unary(row.fn)});
    }
  }
  struct Pair {
    const char* op;
    BinaryOp fn;
    double low;  // of the second operand
  };
  for (const auto& [op, fn, low] :
       {Pair{"Atan2", ops::Atan2, -2}, Pair{"Xdivy", ops::Xdivy, 0.5}, Pair{"Xlogy", ops::Xlogy, 0.3}}) {
    const auto y = [low = low](const Shape& shape) { return Scatter(shape, low, 3, 5); };
    cases.push_back({op, "same", {Scatter({3, 5}, -2, 2.1), y({3, 5})}, Binary(fn), {0, 1}});
    cases.push_back({op, "row", {Scatter({4, 3}, -2, 2.1), y({3})}, Binary(fn), {0, 1}});
    cases.push_back({op, "column", {Scatter({3}, -2, 2.1), y({4, 1})}, Binary(fn), {0, 1}});
    cases.push_back({op, "scalar", {Ramp({}, -2, 2.1), y({2, 3})}, Binary(fn), {0, 1}});
    cases.push_back({op, "empty", {Ramp({0, 3}), y({3})}, Binary(fn), {0, 1}});
    for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
      const std::string label(DTypeName(dtype));
      cases.push_back({op, label, {AsType(Scatter({4, 11}, -2, 2.1), dtype), AsType(y({11}), dtype)}, Binary(fn)});
    }
    const Tensor zeros = Tensor::Vector(std::vector<float>{0, -0.0f, 0, 1, -1});
    const Tensor others = Tensor::Vector(std::vector<float>{0, 2, -1, 0, 0});
    cases.push_back({op, "zeros", {zeros, others}, Binary(fn)});
  }
}

}  // namespace cohort::testing
