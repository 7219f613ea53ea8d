// Cases of ops that read or change the shape, the dtype or the identity of a tensor, change the order of elements, or
// make constants, fills and ranges.
#include <cmath>
#include <string>

#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

const Tensor& Words() {
  static const auto* const words = new Tensor(Tensor::FromValues(std::vector<std::string>{"a", "", "c", "d"}, {2, 2}));
  return *words;
}

void AddConstantCases(std::vector<OpCase>& cases) {
  const auto constant = [&](const char* label, const Tensor& value) {
    cases.push_back(
        {"Const", label, {}, [value](Graph& graph, const Outputs&) { return Outputs{ops::Const(graph, value)}; }});
  };
  constant("float32", AsType(Ramp({2, 3}), DType::kFloat32));
  constant("scalar", Tensor::Scalar(int64_t{1} << 40));
  constant("strings", Words());
  constant("empty", Ramp({0, 2}));
  constant("bfloat16", AsType(Ramp({3}), DType::kBfloat16));
  cases.push_back({"Placeholder", "fed", {Ramp({2})}, Unary([](Output x) { return x; }), {0}});
  const OpCase::Build with_default = [](Graph& graph, const Outputs& in) {
    return Outputs{ops::PlaceholderWithDefault(in.empty() ? ops::Const(graph, 2.5f) : in[0], Shape::UnknownRank())};
  };
  cases.push_back({"PlaceholderWithDefault", "default", {}, with_default});
  cases.push_back({"PlaceholderWithDefault", "gradient", {Ramp({2, 2})}, with_default, {0}});
  const OpCase::Build fill = [](Graph&, const Outputs& in) { return Outputs{ops::Fill(in[0], in[1])}; };
  const Tensor dims = Tensor::Vector(std::vector<int32_t>{2, 3});
  cases.push_back({"Fill", "matrix", {dims, Ramp({})}, fill, {1}});
  cases.push_back({"Fill", "scalar", {Tensor(DType::kInt32, {0}), Ramp({})}, fill, {1}});
  cases.push_back({"Fill", "int64_dims", {Tensor::Vector(std::vector<int64_t>{0, 3}), Tensor::Scalar("x")}, fill});
  cases.push_back({"Fill", "bool", {dims, Tensor::Scalar(true)}, fill});
  const OpCase::Build range = [](Graph&, const Outputs& in) { return Outputs{ops::Range(in[0], in[1], in[2])}; };
  const auto ranges = [&](const char* label, double start, double limit, double delta, DType dtype) {
    const auto scalar = [dtype](double value) { return ops::NumberTensor(dtype, value); };
    cases.push_back({"Range", label, {scalar(start), scalar(limit), scalar(delta)}, range});
  };
  ranges("up", 0, 7, 3, DType::kInt32);
  ranges("down", 5, -2, -2, DType::kInt64);
  ranges("none", 3, 3, 1, DType::kInt32);
  ranges("float", 0.5, 2.25, 0.5, DType::kFloat32);
  ranges("double", 1, 0, -0.25, DType::kFloat64);
  for (const auto& [op, fn] : std::vector<std::pair<const char*, Output (*)(Output)>>{{"ZerosLike", ops::ZerosLike},
                                                                                      {"OnesLike", ops::OnesLike}}) {
    cases.push_back({op, "float64", {Ramp({2, 3})}, Unary(fn)});
    cases.push_back({op, "int32", {AsType(Ramp({3}), DType::kInt32)}, Unary(fn)});
    cases.push_back({op, "bool", {AsType(Ramp({3}), DType::kBool)}, Unary(fn)});
    cases.push_back({op, "empty", {Ramp({0})}, Unary(fn)});
  }
  cases.push_back({"ZerosLike", "strings", {Words()}, Unary(ops::ZerosLike)});
}

void AddIdentityCases(std::vector<OpCase>& cases) {
  const auto identity = [](Output x) { return ops::Identity(x); };
  cases.push_back({"Identity", "matrix", {Ramp({2, 3})}, Unary(identity), {0}});
  cases.push_back({"Identity", "strings", {Words()}, Unary(identity)});
  cases.push_back({"IdentityN",
                   "mixed",
                   {Ramp({2}), Words(), Scatter({3, 1})},
                   [](Graph&, const Outputs& in) { return ops::IdentityN(in); },
                   {0, 2}});
  // The gradient flows only through the factor that is not stopped.
  cases.push_back({"StopGradient", "value", {Ramp({2, 2})}, Unary(ops::StopGradient)});
  const auto shape = [](Output x) { return ops::ShapeOf(x); };
  const auto size = [](Output x) { return ops::Size(x, DType::kInt64); };
  for (const Shape& s : {Shape{}, Shape{2, 3, 1}, Shape{0, 4}}) {
    const std::string label = "rank_" + std::to_string(s.rank());
    cases.push_back({"Shape", label, {Ramp(s)}, Unary(shape)});
    cases.push_back({"Size", label, {Ramp(s)}, Unary(size)});
    cases.push_back({"Rank", label, {Ramp(s)}, Unary(ops::Rank)});
  }
  cases.push_back({"Shape", "int64", {Words()}, Unary([](Output x) { return ops::ShapeOf(x, DType::kInt64); })});
  cases.push_back({"Size", "int32", {Words()}, Unary([](Output x) { return ops::Size(x); })});
}

void AddReshapeCases(std::vector<OpCase>& cases) {
  const auto reshape = [&](const char* label, const Shape& from, const std::vector<int64_t>& to) {
    cases.push_back({"Reshape",
                     label,
                     {Ramp(from)},
                     [to](Graph&, const Outputs& in) { return Outputs{ops::Reshape(in[0], to)}; },
                     {0}});
  };
  reshape("matrix", {2, 6}, {3, 4});
  reshape("rest", {2, 6}, {-1, 3});
  reshape("scalar", {1, 1}, {});
  reshape("empty", {0, 3}, {3, -1});
  cases.push_back({"Reshape",
                   "fed_shape",
                   {Ramp({6}), Tensor::Vector(std::vector<int64_t>{2, -1})},
                   [](Graph&, const Outputs& in) { return Outputs{ops::Reshape(in[0], in[1])}; },
                   {0}});
  for (const int axis : {0, 1, 2, -1, -3}) {
    cases.push_back({"ExpandDims",
                     "axis_" + std::string(axis < 0 ? "minus_" : "") + std::to_string(std::abs(axis)),
                     {Ramp({2, 3})},
                     [axis](Graph&, const Outputs& in) { return Outputs{ops::ExpandDims(in[0], axis)}; },
                     {0}});
  }
  const auto squeeze = [&](const char* label, const Shape& from, const std::vector<int64_t>& axes) {
    cases.push_back({"Squeeze",
                     label,
                     {Ramp(from)},
                     [axes](Graph&, const Outputs& in) { return Outputs{ops::Squeeze(in[0], axes)}; },
                     {0}});
  };
  squeeze("all", {1, 3, 1}, {});
  squeeze("one", {1, 3, 1}, {-1});
  squeeze("to_scalar", {1, 1}, {0, 1});
  squeeze("nothing", {2, 3}, {});
}

void AddCastCases(std::vector<OpCase>& cases) {
  const DType all[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kInt32,
                       DType::kInt64,   DType::kUint8,   DType::kBool};
  for (const DType from : all) {
    for (const DType to : all) {
      const double low = from == DType::kUint8 || to == DType::kUint8 ? 0 : -3.6;
      cases.push_back({"Cast",
                       std::string(DTypeName(from)) + "_to_" + std::string(DTypeName(to)),
                       {AsType(Ramp({13}, low, 3.6), from)},
                       [to](Graph& graph, const Outputs& in) {
                         return Outputs{graph.Op("Cast").Input(in[0]).Attr("DstT", to).Finish1()};
                       }});
    }
  }
  const Tensor extremes = Tensor::Vector(std::vector<float>{NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 300.7f, -1.5f});
  for (const DType to : {DType::kInt32, DType::kInt64, DType::kUint8, DType::kFloat64, DType::kBool}) {
    cases.push_back(
        {"Cast", "extremes_to_" + std::string(DTypeName(to)), {extremes}, [to](Graph& graph, const Outputs& in) {
           return Outputs{graph.Op("Cast").Input(in[0]).Attr("DstT", to).Finish1()};
         }});
  }
  cases.push_back({"Cast",
                   "and_back",
                   {Ramp({4})},
                   Unary([](Output x) { return ops::Cast(ops::Cast(x, DType::kFloat32), DType::kFloat64); }),
                   {0},
                   2e-2});
}

void AddBroadcastCases(std::vector<OpCase>& cases) {
  const auto broadcast = [&](const char* label, const Shape& from, const std::vector<int64_t>& to) {
    cases.push_back({"BroadcastTo",
                     label,
                     {Ramp(from)},
                     [to](Graph&, const Outputs& in) { return Outputs{ops::BroadcastTo(in[0], to)}; },
                     {0}});
  };
  broadcast("same", {2, 3}, {2, 3});
  broadcast("scalar", {}, {2, 3});
  broadcast("row", {3}, {2, 3});
  broadcast("column", {2, 1}, {2, 3});
  broadcast("middle", {2, 1, 3}, {4, 2, 2, 3});
  broadcast("empty", {1, 3}, {0, 3});
  cases.push_back(
      {"BroadcastTo", "strings", {Tensor::Scalar("s")}, Unary([](Output x) { return ops::BroadcastTo(x, {2}); })});
  const auto args = [&](const char* label, std::vector<int32_t> a, std::vector<int32_t> b) {
    cases.push_back(
        {"BroadcastGradientArgs", label, {Tensor::Vector(a), Tensor::Vector(b)}, [](Graph& graph, const Outputs& in) {
           Node* node = graph.Op("BroadcastGradientArgs").Input(in[0]).Input(in[1]).Finish();
           return Outputs{node->output(0), node->output(1)};
         }});
  };
  args("same", {2, 3}, {2, 3});
  args("row", {4, 3}, {3});
  args("both_ways", {4, 1, 3}, {2, 1});
  args("scalar", {}, {2, 2});
  args("ones", {1, 2}, {1, 1});
}

void AddLayoutCases(std::vector<OpCase>& cases) {
  const auto transpose = [&](const char* label, const Shape& shape, const std::vector<int64_t>& perm) {
    cases.push_back({"Transpose",
                     label,
                     {Ramp(shape)},
                     [perm](Graph&, const Outputs& in) { return Outputs{ops::Transpose(in[0], perm)}; },
                     {0}});
  };
  transpose("matrix", {3, 4}, {1, 0});
  transpose("tiles", {17, 19}, {1, 0});
  transpose("unmoved", {2, 3}, {0, 1});
  transpose("vector", {4}, {0});
  transpose("nhwc_to_nchw", {2, 3, 2, 4}, {0, 3, 1, 2});
  transpose("reverse", {2, 3, 2}, {2, 1, 0});
  transpose("last_kept", {2, 3, 4}, {1, 0, 2});
  transpose("of_one", {1, 3, 1}, {2, 1, 0});
  transpose("empty", {0, 3}, {1, 0});
  transpose("scalar", {}, {});
  cases.push_back({"Transpose", "strings", {Words()}, [](Graph&, const Outputs& in) {
                     return Outputs{ops::Transpose(in[0], {1, 0})};
                   }});
  cases.push_back({"Transpose",
                   "fed_perm",
                   {Ramp({2, 3}), Tensor::Vector(std::vector<int32_t>{1, 0})},
                   [](Graph&, const Outputs& in) { return Outputs{ops::Transpose(in[0], in[1])}; },
                   {0}});
  cases.push_back({"InvertPermutation",
                   "int32",
                   {Tensor::Vector(std::vector<int32_t>{2, 0, 3, 1})},
                   Unary(ops::InvertPermutation)});
  cases.push_back(
      {"InvertPermutation", "int64", {Tensor::Vector(std::vector<int64_t>{0})}, Unary(ops::InvertPermutation)});
  const auto reverse = [&](const char* label, const Shape& shape, const std::vector<int64_t>& axes) {
    cases.push_back({"ReverseV2",
                     label,
                     {Ramp(shape)},
                     [axes](Graph&, const Outputs& in) { return Outputs{ops::Reverse(in[0], axes)}; },
                     {0}});
  };
  reverse("vector", {5}, {0});
  reverse("both", {2, 3}, {0, -1});
  reverse("none", {2, 3}, {});
  reverse("middle", {2, 3, 2}, {1});
  reverse("empty", {0, 2}, {0});
}

}  // namespace

void AddArrayCases(std::vector<OpCase>& cases) {
  AddConstantCases(cases);
  AddIdentityCases(cases);
  AddReshapeCases(cases);
  AddCastCases(cases);
  AddBroadcastCases(cases);
  AddLayoutCases(cases);
}

}  // namespace cohort::testing
