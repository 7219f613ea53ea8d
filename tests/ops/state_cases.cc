// Cases of variables within one step. The value is assigned from an input, changed, and read, in an order that control
// dependencies fix. There are also cases of ops for order, checks and messages.
#include <optional>
#include <string>

#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/state.h"
#include "cohort/ops/summary.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

// Makes a variable with in[0]'s dtype and `shape`, and assigns in[0] to it. `then` runs after that.
template <typename Then>
OpCase::Build WithVariable(const Shape& shape, Then then) {
  return [shape, then](Graph& graph, const Outputs& in) {
    const Output handle = ops::VarHandleOp(graph, in[0].dtype(), shape, "v", "", "v");
    Node* assign = ops::AssignVariableOp(handle, in[0]);
    const ControlDependencies after(graph, {assign});
    return then(graph, handle, in);
  };
}

// Returns the value after the node that `change` adds.
template <typename Change>
OpCase::Build ReadAfter(const Shape& shape, Change change) {
  return WithVariable(shape, [change](Graph& graph, Output handle, const Outputs& in) {
    Node* changed = change(handle, in);
    const ControlDependencies after(graph, {changed});
    return Outputs{ops::ReadVariableOp(handle)};
  });
}

// Returns sum(w value^2) with a gradient by in[0] that equals the gradient by the handle. The assignment itself has no
// gradient, so it is added as slope * in[0] - stopped(slope * in[0]), which is 0. So differences check the gradient of
// the read.
Outputs SquareWithSlope(Output handle, Output value, Output assigned) {
  Graph& graph = handle.graph();
  const Output square = ops::Sum(ops::Mul(value, value));
  const Output slope = ops::StopGradient(ToDense(Gradients({square}, {handle})[0]));
  const Output product = ops::Sum(ops::Mul(slope, assigned));
  const ControlDependencies none(graph, nullptr);
  return {ops::Add(square, ops::Sub(product, ops::StopGradient(product)))};
}

void AddVariableCases(std::vector<OpCase>& cases) {
  const Tensor value = Ramp({3, 2});
  cases.push_back(
      {"ReadVariableOp",
       "slope",
       {value},
       WithVariable({3, 2}, [](Graph&, Output v,
                               const Outputs& in) { return SquareWithSlope(v, ops::ReadVariableOp(v), in[0]); }),
       {0}});
  cases.push_back(
      {"ReadVariableOp",
       "strings",
       {Tensor::Vector(std::vector<std::string>{"a", "b"})},
       WithVariable({2}, [](Graph&, Output v, const Outputs&) { return Outputs{ops::ReadVariableOp(v)}; })});
  cases.push_back({"VarHandleOp", "read", {value}, WithVariable({3, 2}, [](Graph&, Output v, const Outputs&) {
                     return Outputs{ops::ReadVariableOp(v)};
                   })});
  cases.push_back(
      {"AssignVariableOp", "twice", {value, Ramp({3, 2}, 4, 5)}, ReadAfter({3, 2}, [](Output v, const Outputs& in) {
         return ops::AssignVariableOp(v, in[1]);
       })});
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    const std::string label(DTypeName(dtype));
    const Tensor start = AsType(Ramp({3, 2}, -9, 9), dtype);
    const Tensor change = AsType(Ramp({3, 2}, -3, 7), dtype);
    cases.push_back({"AssignAddVariableOp", label, {start, change}, ReadAfter({3, 2}, [](Output v, const Outputs& in) {
                       return ops::AssignAddVariableOp(v, in[1]);
                     })});
    cases.push_back({"AssignSubVariableOp", label, {start, change}, ReadAfter({3, 2}, [](Output v, const Outputs& in) {
                       return ops::AssignSubVariableOp(v, in[1]);
                     })});
  }
  cases.push_back({"VarIsInitializedOp", "both", {value}, [](Graph& graph, const Outputs& in) {
                     const Output set = ops::VarHandleOp(graph, DType::kFloat64, Shape{3, 2}, "set");
                     const Output unset = ops::VarHandleOp(graph, DType::kFloat64, Shape{3, 2}, "unset");
                     const ControlDependencies after(graph, {ops::AssignVariableOp(set, in[0])});
                     return Outputs{ops::VarIsInitializedOp(set), ops::VarIsInitializedOp(unset)};
                   }});
  cases.push_back({"VariableShape", "known", {value}, WithVariable({3, 2}, [](Graph&, Output v, const Outputs&) {
                     return Outputs{ops::VariableShape(v), ops::VariableShape(v, DType::kInt64)};
                   })});
  cases.push_back(
      {"VariableShape", "unknown", {value}, WithVariable(Shape::UnknownRank(), [](Graph&, Output v, const Outputs&) {
         return Outputs{ops::VariableShape(v)};
       })});
}

void AddRowCases(std::vector<OpCase>& cases) {
  const Tensor table = Ramp({4, 2});
  const Tensor repeated = Tensor::Vector(std::vector<int32_t>{3, 0, 3});
  const Tensor matrix = Tensor::FromValues(std::vector<int64_t>{1, 1, 0, 2}, Shape{2, 2});
  const auto slope = WithVariable({4, 2}, [](Graph&, Output v, const Outputs& in) {
    return SquareWithSlope(v, ops::ResourceGather(v, in[1]), in[0]);
  });
  cases.push_back({"ResourceGather", "slope", {table, repeated}, slope, {0}});
  cases.push_back({"ResourceGather", "slope_of_a_matrix", {table, matrix}, slope, {0}});
  cases.push_back({"ResourceGather",
                   "rows",
                   {AsType(table, DType::kFloat32), matrix},
                   WithVariable({4, 2}, [](Graph&, Output v, const Outputs& in) {
                     return Outputs{ops::ResourceGather(v, in[1])};
                   })});
  const auto scatter = [&](const char* op, auto fn) {
    const auto build = ReadAfter({4, 2}, [fn](Output v, const Outputs& in) { return fn(v, in[1], in[2], "scatter"); });
    const Tensor once = Tensor::Vector(std::vector<int32_t>{2, 0});
    cases.push_back(
        {op, "float32", {AsType(table, DType::kFloat32), once, AsType(Ramp({2, 2}), DType::kFloat32)}, build});
    cases.push_back(
        {op,
         "int64_matrix",
         {AsType(Ramp({4, 2}, 0, 80), DType::kInt32), Tensor::FromValues(std::vector<int64_t>{1, 3, 0, 2}, Shape{2, 2}),
          AsType(Ramp({2, 2, 2}, 1, 9), DType::kInt32)},
         build});
    cases.push_back({op, "none", {table, Tensor(DType::kInt32, {0}), Tensor(DType::kFloat64, {0, 2})}, build});
    cases.push_back({op, "scalar", {table, once, Tensor::Scalar(0.5)}, build});
  };
  scatter("ResourceScatterAdd", ops::ResourceScatterAdd);
  scatter("ResourceScatterSub", ops::ResourceScatterSub);
  scatter("ResourceScatterUpdate", ops::ResourceScatterUpdate);
  cases.push_back(
      {"ResourceScatterAdd",
       "repeated",
       {table, repeated, Ramp({3, 2})},
       ReadAfter({4, 2}, [](Output v, const Outputs& in) { return ops::ResourceScatterAdd(v, in[1], in[2]); })});
}

void AddControlCases(std::vector<OpCase>& cases) {
  const auto after = [](auto make) -> OpCase::Build {
    return [make](Graph& graph, const Outputs& in) {
      const ControlDependencies order(graph, {make(graph, in)});
      return Outputs{ops::Identity(in[0])};
    };
  };
  cases.push_back({"NoOp", "order", {Ramp({2})}, after([](Graph& graph, const Outputs&) { return ops::NoOp(graph); })});
  cases.push_back({"Assert", "holds", {Ramp({2})}, after([](Graph& graph, const Outputs& in) {
                     return ops::Assert(ops::Const(graph, Tensor::Scalar(true)), {in[0]});
                   })});
  cases.push_back({"PrintV2", "text", {Ramp({2})}, after([](Graph& graph, const Outputs&) {
                     return ops::PrintV2(ops::Const(graph, "a line of the test of PrintV2"));
                   })});
  cases.push_back({"Print",
                   "passes_on",
                   {Ramp({2})},
                   [](Graph&, const Outputs& in) {
                     return Outputs{ops::Print(in[0], {in[0]}, "a line of the test of Print: ", 0)};
                   },
                   {0}});
}

void AddSummaryCases(std::vector<OpCase>& cases) {
  const OpCase::Build scalar = [](Graph&, const Outputs& in) { return Outputs{ops::ScalarSummary("loss", in[0])}; };
  cases.push_back({"ScalarSummary", "float32", {Tensor::Scalar(0.5f)}, scalar});
  cases.push_back({"ScalarSummary", "int64", {Tensor::Scalar(int64_t{7})}, scalar});
  cases.push_back(
      {"HistogramSummary", "float32", {AsType(Scatter({40}, -3, 5), DType::kFloat32)}, [](Graph&, const Outputs& in) {
         return Outputs{ops::HistogramSummary("weights", in[0])};
       }});
  cases.push_back({"ImageSummary",
                   "two",
                   {AsType(Scatter({2, 3, 4, 1}, -3, 5), DType::kFloat32)},
                   [](Graph&, const Outputs& in) { return Outputs{ops::ImageSummary("images", in[0], 2)}; },
                   {},
                   1e-5,
                   1e-6,
                   /*compare_values=*/false});
  cases.push_back(
      {"MergeSummary", "two", {Tensor::Scalar(0.5f), Tensor::Scalar(2.0f)}, [](Graph&, const Outputs& in) {
         return Outputs{ops::MergeSummary({ops::ScalarSummary("a", in[0]), ops::ScalarSummary("b", in[1])})};
       }});
}

}  // namespace

void AddStateCases(std::vector<OpCase>& cases) {
  AddVariableCases(cases);
  AddRowCases(cases);
  AddControlCases(cases);
  AddSummaryCases(cases);
}

}  // namespace cohort::testing
