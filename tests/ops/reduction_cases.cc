// Cases of reductions (over some and all axes, over no elements, with equal elements) and of running sums and products.
#include <cmath>

#include "cohort/ops/constant.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/scan.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

OpCase::Build Reduce(const std::string& op, const std::vector<int64_t>& axes, bool keep_dims) {
  return [=](Graph& graph, const Outputs& in) {
    return Outputs{graph.Op(op).Input(in[0]).Input(ops::IntVector(graph, axes)).Attr("keep_dims", keep_dims).Finish1()};
  };
}

struct Axes {
  const char* label;
  Shape shape;
  std::vector<int64_t> axes;
  bool keep_dims;
};

const std::vector<Axes>& AllAxes() {
  static const auto* const all = new std::vector<Axes>{
      {"all", {2, 3}, {0, 1}, false},
      {"all_kept", {2, 3}, {0, 1}, true},
      {"none", {2, 3}, {}, false},
      {"rows", {3, 4}, {1}, false},
      {"rows_kept", {3, 4}, {1}, true},
      {"columns", {3, 4}, {0}, false},
      {"columns_kept", {3, 4}, {0}, true},
      {"negative", {2, 3, 2}, {-1}, false},
      {"middle", {2, 3, 2}, {1}, false},
      {"outer_and_inner", {2, 3, 2}, {0, -1}, false},
      {"outer_and_inner_kept", {2, 3, 2}, {2, 0}, true},
      {"alternating", {2, 2, 2, 3}, {0, 2}, false},
      {"alternating_other", {2, 2, 2, 3}, {1, 3}, false},
      {"of_one", {3, 1, 2}, {1}, false},
      {"scalar", {}, {}, false},
      {"nothing_left", {2, 0}, {0}, false},
      {"empty", {0, 3}, {0}, false},
      {"empty_all", {0}, {0}, false},
  };
  return *all;
}

void AddFloatCases(const char* op, bool differentiable, std::vector<OpCase>& cases) {
  const std::vector<int> inputs = differentiable ? std::vector<int>{0} : std::vector<int>{};
  for (const Axes& a : AllAxes()) {
    cases.push_back({op, a.label, {Scatter(a.shape, -1.5, 1.7)}, Reduce(op, a.axes, a.keep_dims), inputs});
  }
  const auto typed = [&](const char* label, const Shape& shape, const std::vector<int64_t>& axes, DType dtype) {
    const double high = IsInteger(dtype) ? 3.9 : 1.1;
    cases.push_back(
        {op, label, {AsType(Scatter(shape, IsInteger(dtype) ? 1 : 0.9, high), dtype)}, Reduce(op, axes, false)});
  };
  typed("float32_long_row", {3, 67}, {1}, DType::kFloat32);
  typed("float32_long_column", {67, 5}, {0}, DType::kFloat32);
  typed("bfloat16", {4, 17}, {1}, DType::kBfloat16);
  typed("int32", {4, 5}, {1}, DType::kInt32);
  typed("int64", {4, 5}, {0}, DType::kInt64);
}

void AddSpecialCases(std::vector<OpCase>& cases) {
  const Tensor with_nan = Tensor::FromValues(std::vector<float>{1, NAN, 2, 3, INFINITY, 4}, {2, 3});
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) {
    cases.push_back({op, "nan", {with_nan}, Reduce(op, {1}, false)});
    cases.push_back({op, "nan_columns", {with_nan}, Reduce(op, {0}, false)});
  }
  for (const char* op : {"Max", "Min"}) {
    cases.push_back({op, "empty_int32", {Tensor(DType::kInt32, {0, 2})}, Reduce(op, {0}, false)});
  }
  // The input has zeros, with which a gradient by division would fail.
  cases.push_back({"Prod",
                   "zeros",
                   {Tensor::FromValues(std::vector<double>{2, 0, 3, 0, 0, 5, 1, 4, 6}, {3, 3})},
                   Reduce("Prod", {1}, false),
                   {0}});
  cases.push_back({"Sum",
                   "int64_axes",
                   {Ramp({2, 3})},
                   [](Graph& graph, const Outputs& in) {
                     return Outputs{ops::Sum(in[0], ops::Const(graph, std::vector<int64_t>{1}))};
                   },
                   {0}});
  cases.push_back({"Sum",
                   "fed_axes",
                   {Ramp({2, 3, 2}), Tensor::Vector(std::vector<int32_t>{-1, 0})},
                   [](Graph&, const Outputs& in) { return Outputs{ops::Sum(in[0], in[1])}; },
                   {0}});
  cases.push_back({"Mean",
                   "fed_axes",
                   {Ramp({2, 3, 2}), Tensor::Vector(std::vector<int32_t>{1})},
                   [](Graph&, const Outputs& in) { return Outputs{ops::Mean(in[0], in[1])}; },
                   {0}});
}

void AddLogicalCases(std::vector<OpCase>& cases) {
  const Tensor flags = Flags({true, true, false, true, false, false}, {3, 2});
  for (const char* op : {"All", "Any"}) {
    cases.push_back({op, "rows", {flags}, Reduce(op, {1}, false)});
    cases.push_back({op, "columns", {flags}, Reduce(op, {0}, true)});
    cases.push_back({op, "all", {flags}, Reduce(op, {0, 1}, false)});
    cases.push_back({op, "empty", {Tensor(DType::kBool, {0, 2})}, Reduce(op, {0}, false)});
  }
}

void AddArgCases(std::vector<OpCase>& cases) {
  const auto add = [&](const char* op, Output (*fn)(Output, int, DType)) {
    const auto build = [fn](int axis, DType out) -> OpCase::Build {
      return [=](Graph&, const Outputs& in) { return Outputs{fn(in[0], axis, out)}; };
    };
    cases.push_back({op, "rows", {Scatter({3, 5})}, build(1, DType::kInt64)});
    cases.push_back({op, "columns", {AsType(Scatter({3, 5}), DType::kFloat32)}, build(0, DType::kInt32)});
    cases.push_back({op, "middle", {Scatter({2, 3, 2})}, build(-2, DType::kInt64)});
    cases.push_back({op, "ties", {Tensor::FromValues(std::vector<int32_t>{2, 1, 2, 1}, {4})}, build(0, DType::kInt64)});
    cases.push_back({op, "nothing_left", {Ramp({0, 3})}, build(1, DType::kInt64)});
  };
  add("ArgMax", ops::ArgMax);
  add("ArgMin", ops::ArgMin);
}

void AddScanCases(std::vector<OpCase>& cases) {
  const auto add = [&](const char* op, Output (*fn)(Output, int, bool, bool)) {
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        const std::string suffix = std::string(exclusive ? "_exclusive" : "") + (reverse ? "_reverse" : "");
        const auto build = [=](int axis) -> OpCase::Build {
          return [=](Graph&, const Outputs& in) { return Outputs{fn(in[0], axis, exclusive, reverse)}; };
        };
        cases.push_back({op, "last" + suffix, {Scatter({2, 4}, 0.5, 2)}, build(-1), {0}});
        cases.push_back({op, "middle" + suffix, {Scatter({2, 3, 2}, 0.5, 2)}, build(1), {0}});
        cases.push_back({op, "empty" + suffix, {Ramp({2, 0})}, build(1), {0}});
        cases.push_back({op, "int32" + suffix, {AsType(Ramp({5}, 1, 5), DType::kInt32)}, build(0)});
      }
    }
  };
  add("Cumsum", ops::Cumsum);
  add("Cumprod", ops::Cumprod);
}

}  // namespace

void AddReductionCases(std::vector<OpCase>& cases) {
  for (const char* op : {"Sum", "Mean", "Max", "Min", "Prod"}) AddFloatCases(op, true, cases);
  AddSpecialCases(cases);
  AddLogicalCases(cases);
  AddArgCases(cases);
  AddScanCases(cases);
}

}  // namespace cohort::testing
