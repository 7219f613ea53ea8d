// Cases of arithmetic: ops of one tensor, ops of two tensors with broadcasting, integers at their limits, comparisons,
// selection and matrix products.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

// Builds an op by its name, if it has no function of its own.
OpCase::Build Named(const std::string& op) {
  return [op](Graph& graph, const Outputs& in) {
    NodeBuilder builder = graph.Op(op);
    for (const Output& input : in) builder.Input(input);
    return Outputs{builder.Finish1()};
  };
}

void AddUnaryCases(std::vector<OpCase>& cases) {
  struct Row {
    const char* op;
    UnaryOp fn;
    double low, high;
    bool differentiable;
    bool integers;
  };
  const Row rows[] = {
      {"Neg", ops::Neg, -2, 2, true, true},
      {"Abs", ops::Abs, -2.1, 2, true, true},
      {"Sign", ops::Sign, -2.1, 2, true, true},
      {"Square", ops::Square, -2, 2, true, true},
      {"Exp", ops::Exp, -3, 3, true, false},
      {"Expm1", ops::Expm1, -3, 3, true, false},
      {"Log", ops::Log, 0.2, 5, true, false},
      {"Log1p", ops::Log1p, -0.8, 5, true, false},
      {"Sqrt", ops::Sqrt, 0.3, 5, true, false},
      {"Rsqrt", ops::Rsqrt, 0.4, 5, true, false},
      {"Sin", ops::Sin, -4, 4, true, false},
      {"Cos", ops::Cos, -4, 4, true, false},
      {"Tan", ops::Tan, -1.2, 1.2, true, false},
      {"Erf", ops::Erf, -2, 2, true, false},
      {"Floor", ops::Floor, -2.6, 2.6, false, false},
      {"Ceil", ops::Ceil, -2.6, 2.6, false, false},
      {"Round", ops::Round, -2.5, 2.5, false, true},
      {"Reciprocal", ops::Reciprocal, 0.5, 4, true, false},
      {"IsNan", ops::IsNan, -1, 1, false, false},
      {"IsInf", ops::IsInf, -1, 1, false, false},
      {"IsFinite", ops::IsFinite, -1, 1, false, false},
  };
  for (const Row& row : rows) {
    const std::vector<int> inputs = row.differentiable ? std::vector<int>{0} : std::vector<int>{};
    const auto add = [&](const char* label, Tensor x, const std::vector<int>& differentiable) {
      cases.push_back({row.op, label, {std::move(x)}, Unary(row.fn), differentiable});
    };
    add("matrix", Scatter({3, 6}, row.low, row.high), inputs);
    add("scalar", Ramp({}, row.low, row.high), inputs);
    add("empty", Ramp({0, 3}), inputs);
    add("float32_odd", AsType(Scatter({37}, row.low, row.high), DType::kFloat32), {});
    add("bfloat16", AsType(Scatter({19}, row.low, row.high), DType::kBfloat16), {});
    if (row.integers) add("int32", AsType(Ramp({9}, -4, 4), DType::kInt32), {});
    if (row.integers) add("int64", AsType(Ramp({9}, -4, 4), DType::kInt64), {});
  }
  const Tensor special = Tensor::Vector(std::vector<float>{NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-30f, 3e38f});
  for (const auto& [op, fn] : std::vector<std::pair<const char*, UnaryOp>>{{"IsNan", ops::IsNan},
                                                                           {"IsInf", ops::IsInf},
                                                                           {"IsFinite", ops::IsFinite},
                                                                           {"Sign", ops::Sign},
                                                                           {"Abs", ops::Abs},
                                                                           {"Exp", ops::Exp},
                                                                           {"Floor", ops::Floor},
                                                                           {"Square", ops::Square}}) {
    cases.push_back({op, "special_values", {special}, Unary(fn)});
  }
  cases.push_back({"LogicalNot", "flags", {Flags({true, false, true})}, Unary(ops::LogicalNot)});
}

struct BinaryRow {
  const char* op;
  OpCase::Build build;
  double x_low, x_high, y_low, y_high;
  bool differentiable;
  bool integers;
};

void AddBinaryShapes(const BinaryRow& row, std::vector<OpCase>& cases) {
  const std::vector<int> both = row.differentiable ? std::vector<int>{0, 1} : std::vector<int>{};
  const auto add = [&](const char* label, const Shape& x, const Shape& y) {
    cases.push_back(
        {row.op, label, {Scatter(x, row.x_low, row.x_high, 3), Scatter(y, row.y_low, row.y_high, 5)}, row.build, both});
  };
  add("same", {3, 5}, {3, 5});
  add("scalars", {}, {});
  add("right_scalar", {2, 3}, {});
  add("left_scalar", {}, {2, 3});
  add("row", {4, 3}, {3});
  add("column", {4, 3}, {4, 1});
  add("left_row", {3}, {4, 3});
  add("both_ways", {4, 1, 3}, {2, 1});
  add("inner_one", {2, 3, 1}, {2, 3, 4});
  add("ones_against_scalar", {1, 1}, {});
  add("empty", {0, 3}, {3});
  add("empty_against_one", {1, 3}, {0, 3});
  const auto typed = [&](const char* label, DType dtype) {
    const bool integer = IsInteger(dtype);
    const double low = dtype == DType::kUint8 ? 1 : -7;
    const Tensor x = integer ? Scatter({4, 11}, low, 9) : Scatter({4, 11}, row.x_low, row.x_high);
    const Tensor y = integer ? Scatter({11}, 1, 4.9) : Scatter({11}, row.y_low, row.y_high);
    cases.push_back({row.op, label, {AsType(x, dtype), AsType(y, dtype)}, row.build});
  };
  typed("float32", DType::kFloat32);
  typed("bfloat16", DType::kBfloat16);
  if (!row.integers) return;
  typed("int32", DType::kInt32);
  typed("int64", DType::kInt64);
}

void AddBinaryCases(std::vector<OpCase>& cases) {
  const BinaryRow rows[] = {
      {"AddV2", Binary(ops::Add), -2, 2, -1, 3, true, true},
      {"Add", Named("Add"), -2, 2, -1, 3, true, true},
      {"Sub", Binary(ops::Sub), -2, 2, -1, 3, true, true},
      {"Mul", Binary(ops::Mul), -2, 2, -1, 3, true, true},
      {"RealDiv", Binary(ops::Div), -2, 2, 0.5, 3, true, false},
      {"Div", Named("Div"), -2, 2, 0.5, 3, true, true},
      {"FloorDiv", Binary(ops::FloorDiv), -2.3, 2.7, 0.57, 3.1, false, true},
      {"FloorMod", Binary(ops::FloorMod), 0.11, 0.47, 0.571, 3.13, true, true},
      {"Maximum", Binary(ops::Maximum), -2.01, 2, -1.03, 1.7, true, true},
      {"Minimum", Binary(ops::Minimum), -2.01, 2, -1.03, 1.7, true, true},
      {"Pow", Binary(ops::Pow), 0.3, 2, -1.1, 2.5, true, true},
      {"SquaredDifference", Binary(ops::SquaredDifference), -2, 2, -1, 3, true, true},
      {"Equal", Binary(ops::Equal), -2, 2, -2, 2, false, true},
      {"NotEqual", Binary(ops::NotEqual), -2, 2, -2, 2, false, true},
      {"Less", Binary(ops::Less), -2, 2, -2, 2, false, true},
      {"LessEqual", Binary(ops::LessEqual), -2, 2, -2, 2, false, true},
      {"Greater", Binary(ops::Greater), -2, 2, -2, 2, false, true},
      {"GreaterEqual", Binary(ops::GreaterEqual), -2, 2, -2, 2, false, true},
  };
  for (const BinaryRow& row : rows) AddBinaryShapes(row, cases);
}

void AddBinarySpecialCases(std::vector<OpCase>& cases) {
  const Tensor a = Tensor::Vector(std::vector<float>{NAN, 1, NAN, INFINITY, -0.0f, 2});
  const Tensor b = Tensor::Vector(std::vector<float>{1, NAN, NAN, 3, 0.0f, -INFINITY});
  for (const auto& [op, build] :
       std::vector<std::pair<const char*, OpCase::Build>>{{"Maximum", Binary(ops::Maximum)},
                                                          {"Minimum", Binary(ops::Minimum)},
                                                          {"Equal", Binary(ops::Equal)},
                                                          {"NotEqual", Binary(ops::NotEqual)},
                                                          {"Less", Binary(ops::Less)},
                                                          {"GreaterEqual", Binary(ops::GreaterEqual)},
                                                          {"RealDiv", Binary(ops::Div)},
                                                          {"Pow", Binary(ops::Pow)}}) {
    cases.push_back({op, "special_values", {a, b}, build});
  }
  // -7 / 2 and -7 mod 2: with these signs truncation and floor differ. The smallest number has no positive counterpart.
  const Tensor x = Tensor::Vector(std::vector<int32_t>{7, -7, 7, -7, 6, -6, 0, std::numeric_limits<int32_t>::min()});
  const Tensor y = Tensor::Vector(std::vector<int32_t>{2, 2, -2, -2, 3, 3, 5, 3});
  cases.push_back({"Div", "signs", {x, y}, Named("Div")});
  cases.push_back({"FloorDiv", "signs", {x, y}, Binary(ops::FloorDiv)});
  cases.push_back({"FloorMod", "signs", {x, y}, Binary(ops::FloorMod)});
  cases.push_back({"FloorMod",
                   "float_signs",
                   {AsType(Tensor::Vector(std::vector<double>{7.5, -7.5, 7.5, -7.5}), DType::kFloat32),
                    Tensor::Vector(std::vector<float>{2, 2, -2, -2})},
                   Binary(ops::FloorMod)});
}

void AddBinaryStringAndFlagCases(std::vector<OpCase>& cases) {
  const Tensor words = Tensor::Vector(std::vector<std::string>{"a", "bc", ""});
  const Tensor word = Tensor::Scalar("bc");
  cases.push_back({"Equal", "strings", {words, word}, Binary(ops::Equal)});
  cases.push_back({"NotEqual", "strings", {words, word}, Binary(ops::NotEqual)});
  cases.push_back({"Add", "strings", {words, word}, Named("Add")});
  const Tensor flags = Flags({true, true, false, false}, {2, 2});
  const Tensor row = Flags({true, false});
  cases.push_back({"Equal", "flags", {flags, row}, Binary(ops::Equal)});
  cases.push_back({"LogicalAnd", "flags", {flags, row}, Binary(ops::LogicalAnd)});
  cases.push_back({"LogicalOr", "flags", {flags, row}, Binary(ops::LogicalOr)});
  cases.push_back(
      {"Equal", "shapes_that_do_not_broadcast", {Ramp({2}), Ramp({3})}, [](Graph& graph, const Outputs& in) {
         return Outputs{graph.Op("Equal").Input(in[0]).Input(in[1]).Attr("incompatible_shape_error", false).Finish1()};
       }});
}

void AddAddNCases(std::vector<OpCase>& cases) {
  const OpCase::Build build = [](Graph&, const Outputs& in) { return Outputs{ops::AddN(in)}; };
  cases.push_back({"AddN", "one", {Ramp({2, 2})}, build, {0}});
  cases.push_back({"AddN", "empty", {Ramp({0, 2}), Ramp({0, 2})}, build, {0, 1}});
  cases.push_back({"AddN", "two", {Ramp({2, 2}), Scatter({2, 2})}, build, {0, 1}});
  cases.push_back({"AddN",
                   "five",
                   {Ramp({7}), Scatter({7}), Ramp({7}, 2, 3), Ramp({7}, 5, 9), Ramp({7}, 0, 1)},
                   build,
                   {0, 1, 2, 3, 4}});
  cases.push_back(
      {"AddN", "int64", {AsType(Ramp({3}, 1, 9), DType::kInt64), AsType(Ramp({3}, 4, 5), DType::kInt64)}, build});
}

void AddSelectCases(std::vector<OpCase>& cases) {
  const OpCase::Build v2 = [](Graph&, const Outputs& in) { return Outputs{ops::SelectV2(in[0], in[1], in[2])}; };
  const OpCase::Build v1 = [](Graph&, const Outputs& in) { return Outputs{ops::Select(in[0], in[1], in[2])}; };
  const Tensor mask = Flags({true, false, false, true, true, false}, {2, 3});
  const Tensor rows = Flags({false, true});
  const Tensor columns = Flags({false, true, true});
  cases.push_back({"SelectV2", "same", {mask, Ramp({2, 3}), Scatter({2, 3})}, v2, {1, 2}});
  cases.push_back({"SelectV2", "scalars", {mask, Ramp({}), Ramp({}, 3, 4)}, v2, {1, 2}});
  cases.push_back({"SelectV2", "scalar_condition", {Tensor::Scalar(true), Ramp({2, 3}), Ramp({3})}, v2, {1, 2}});
  cases.push_back({"SelectV2", "broadcast", {columns, Ramp({2, 1}), Scatter({4, 1, 3})}, v2, {1, 2}});
  cases.push_back({"SelectV2", "strings", {rows, Tensor::Scalar("yes"), Tensor::Scalar("no")}, v2});
  cases.push_back({"Select", "same", {mask, Ramp({2, 3}), Scatter({2, 3})}, v1, {1, 2}});
  cases.push_back({"Select", "rows", {rows, Ramp({2, 3}), Scatter({2, 3})}, v1, {1, 2}});
  cases.push_back({"Select", "scalar_condition", {Tensor::Scalar(false), Ramp({2}), Scatter({2})}, v1, {1, 2}});
  const OpCase::Build clip = [](Graph&, const Outputs& in) { return Outputs{ops::ClipByValue(in[0], in[1], in[2])}; };
  cases.push_back(
      {"ClipByValue", "scalars", {Scatter({3, 4}, -3, 3), Ramp({}, -1, -1), Ramp({}, 1.5, 1.5)}, clip, {0, 1, 2}});
  cases.push_back(
      {"ClipByValue", "tensors", {Scatter({7}, -3, 3), Ramp({7}, -2, -0.5), Ramp({7}, 0.6, 2.1)}, clip, {0, 1, 2}});
  cases.push_back(
      {"ClipByValue", "int32", {AsType(Ramp({9}, -4, 4), DType::kInt32), Tensor::Scalar(-2), Tensor::Scalar(3)}, clip});
}

void AddProductCases(std::vector<OpCase>& cases) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const OpCase::Build build = [ta, tb](Graph&, const Outputs& in) {
        return Outputs{ops::MatMul(in[0], in[1], ta, tb)};
      };
      const OpCase::Build batch = [ta, tb](Graph&, const Outputs& in) {
        return Outputs{ops::BatchMatMul(in[0], in[1], ta, tb)};
      };
      const std::string suffix = std::string(ta ? "_ta" : "") + (tb ? "_tb" : "");
      const auto a = [ta](int64_t m, int64_t k) { return ta ? Shape{k, m} : Shape{m, k}; };
      const auto b = [tb](int64_t k, int64_t n) { return tb ? Shape{n, k} : Shape{k, n}; };
      const auto lead = [](const Shape& leading, const Shape& shape) { return leading.Concat(shape); };
      cases.push_back({"MatMul", "small" + suffix, {Ramp(a(3, 4)), Scatter(b(4, 2))}, build, {0, 1}});
      cases.push_back({"MatMul", "vector" + suffix, {Ramp(a(1, 5)), Scatter(b(5, 1))}, build, {0, 1}});
      cases.push_back({"MatMul", "no_inner" + suffix, {Ramp(a(2, 0)), Ramp(b(0, 3))}, build, {0, 1}});
      cases.push_back({"MatMul", "no_rows" + suffix, {Ramp(a(0, 2)), Ramp(b(2, 3))}, build, {0, 1}});
      const auto typed = [&](const char* label, DType dtype, int64_t m, int64_t k, int64_t n, double high) {
        cases.push_back(
            {"MatMul",
             label + suffix,
             {AsType(Scatter(a(m, k), -high, high), dtype), AsType(Scatter(b(k, n), -high, high, 2), dtype)},
             build});
      };
      typed("float32", DType::kFloat32, 33, 70, 41, 1);
      typed("float32_tiny", DType::kFloat32, 5, 3, 7, 1);
      typed("bfloat16", DType::kBfloat16, 33, 70, 41, 1);
      typed("float64_blocked", DType::kFloat64, 9, 300, 270, 1);
      typed("int32", DType::kInt32, 7, 5, 6, 9);
      typed("int64", DType::kInt64, 4, 5, 3, 9);
      cases.push_back(
          {"BatchMatMulV2", "batch" + suffix, {Ramp(lead({2}, a(3, 2))), Scatter(lead({2}, b(2, 4)))}, batch, {0, 1}});
      cases.push_back({"BatchMatMulV2",
                       "broadcast" + suffix,
                       {Ramp(lead({2, 1}, a(3, 2))), Scatter(lead({3}, b(2, 2)))},
                       batch,
                       {0, 1}});
      cases.push_back({"BatchMatMulV2", "matrices" + suffix, {Ramp(a(3, 2)), Scatter(b(2, 2))}, batch, {0, 1}});
    }
  }
}

}  // namespace

void AddMathCases(std::vector<OpCase>& cases) {
  AddUnaryCases(cases);
  AddBinaryCases(cases);
  AddBinarySpecialCases(cases);
  AddBinaryStringAndFlagCases(cases);
  AddAddNCases(cases);
  AddSelectCases(cases);
  AddProductCases(cases);
}

}  // namespace cohort::testing
