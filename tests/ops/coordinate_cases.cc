// Cases of ops that take and put slices by coordinates, and of ops that order elements.
#include <cmath>
#include <string>

#include "cohort/ops/constant.h"
#include "cohort/ops/gather_nd.h"
#include "cohort/ops/top_k.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

Tensor Numbers32(std::vector<int32_t> values, const Shape& shape) { return Tensor::FromValues(values, shape); }
Tensor Numbers64(std::vector<int64_t> values, const Shape& shape) { return Tensor::FromValues(values, shape); }

void AddGatherNdCases(std::vector<OpCase>& cases) {
  const OpCase::Build gather = [](Graph&, const Outputs& in) { return Outputs{ops::GatherNd(in[0], in[1])}; };
  const auto add = [&](const char* label, Tensor params, Tensor indices, const std::vector<int>& differentiable) {
    cases.push_back({"GatherNd", label, {std::move(params), std::move(indices)}, gather, differentiable});
  };
  add("elements", Ramp({3, 4}), Numbers32({2, 3, 0, 0, 2, 3}, {3, 2}), {0});
  add("rows", Ramp({3, 4}), Numbers32({2, 0, 2}, {3, 1}), {0});
  add("matrix_of_slices", Ramp({2, 3, 2}), Numbers64({1, 2, 0, 0, 1, 1, 1, 2}, {2, 2, 2}), {0});
  add("one", Ramp({3, 4}), Numbers32({1, 2}, {2}), {0});
  add("no_coordinates", Ramp({2, 2}), Tensor(DType::kInt32, {3, 0}), {0});
  add("no_indices", Ramp({2, 2}), Tensor(DType::kInt32, {0, 2}), {0});
  cases.push_back({"GatherNd",
                   "empty_slices",
                   {Ramp({3, 0}), Numbers32({2, 1}, {2, 1})},
                   gather,
                   {0},
                   1e-5,
                   1e-6,
                   /*compare_values=*/false});  // TensorFlow refuses them
  add("bool", Flags({true, false, false, true}, {2, 2}), Numbers32({1, 1, 0, 1}, {2, 2}), {});
  add("bfloat16", AsType(Ramp({5, 3}), DType::kBfloat16), Numbers32({4, 0}, {2, 1}), {});
  add("strings", Tensor::Vector(std::vector<std::string>{"a", "b"}), Numbers32({1, 1, 0}, {3, 1}), {});
}

void AddScatterNdCases(std::vector<OpCase>& cases) {
  const auto scatter = [](std::vector<int64_t> shape) -> OpCase::Build {
    return [shape](Graph&, const Outputs& in) { return Outputs{ops::ScatterNd(in[0], in[1], shape)}; };
  };
  cases.push_back({"ScatterNd", "elements", {Numbers32({2, 1, 0, 3, 2, 1}, {3, 2}), Ramp({3})}, scatter({3, 4}), {1}});
  cases.push_back({"ScatterNd", "rows", {Numbers32({2, 0, 2}, {3, 1}), Scatter({3, 4})}, scatter({3, 4}), {1}});
  cases.push_back({"ScatterNd", "int64", {Numbers64({3, 1}, {2, 1}), Scatter({2, 2})}, scatter({4, 2}), {1}});
  cases.push_back({"ScatterNd", "no_updates", {Tensor(DType::kInt32, {0, 1}), Ramp({0, 2})}, scatter({2, 2}), {1}});
  cases.push_back({"ScatterNd",
                   "many_of_one",
                   {Numbers32(std::vector<int32_t>(200, 1), {200, 1}), Ramp({200})},
                   scatter({3}),
                   {1}});
  cases.push_back({"ScatterNd", "int32", {Numbers32({1, 1}, {2, 1}), Numbers32({5, 7}, {2})}, scatter({3})});
  cases.push_back(
      {"ScatterNd", "uint8", {Numbers32({1, 1}, {2, 1}), AsType(Ramp({2}, 200, 210), DType::kUint8)}, scatter({3})});
  cases.push_back({"ScatterNd",
                   "bfloat16",
                   {Numbers32({1, 0, 1}, {3, 1}), AsType(Ramp({3, 2}), DType::kBfloat16)},
                   scatter({2, 2})});
  struct Row {
    const char* op;
    Output (*fn)(Output, const ops::Operand&, Output, const NodeName&);
  };
  for (const auto& [op, fn] :
       {Row{"TensorScatterUpdate", ops::TensorScatterUpdate}, Row{"TensorScatterAdd", ops::TensorScatterAdd},
        Row{"TensorScatterSub", ops::TensorScatterSub}}) {
    const OpCase::Build build = [fn = fn](Graph&, const Outputs& in) { return Outputs{fn(in[0], in[1], in[2], "")}; };
    cases.push_back({op, "elements", {Ramp({3, 4}), Numbers32({2, 1, 0, 3}, {2, 2}), Ramp({2}, 5, 6)}, build, {0, 2}});
    cases.push_back({op, "rows", {Ramp({4, 2}), Numbers64({3, 0}, {2, 1}), Scatter({2, 2}, 3, 4)}, build, {0, 2}});
    cases.push_back({op, "no_updates", {Ramp({2, 2}), Tensor(DType::kInt32, {0, 1}), Ramp({0, 2})}, build, {0, 2}});
    cases.push_back(
        {op, "twice", {Numbers32({1, 2, 3}, {3}), Numbers32({1, 0, 1}, {3, 1}), Numbers32({5, 6, 7}, {3})}, build});
  }
  const OpCase::Build put = [](Graph&, const Outputs& in) {
    return Outputs{ops::TensorScatterUpdate(in[0], in[1], in[2])};
  };
  cases.push_back(
      {"TensorScatterUpdate", "bool", {Flags({true, true, false}), Numbers32({1}, {1, 1}), Flags({false})}, put});
  cases.push_back({"TensorScatterUpdate",
                   "strings",
                   {Tensor::Vector(std::vector<std::string>{"a", "b"}), Numbers32({1}, {1, 1}),
                    Tensor::Vector(std::vector<std::string>{"new"})},
                   put});
}

void AddTopKCases(std::vector<OpCase>& cases) {
  const auto top = [](int k, DType index_type = DType::kInt32) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) {
      const ops::TopKResult result = ops::TopK(in[0], k, true, index_type);
      return Outputs{result.values, result.indices};
    };
  };
  cases.push_back({"TopKV2", "matrix", {Scatter({3, 7})}, top(3), {0}});
  cases.push_back({"TopKV2", "all", {Scatter({2, 5})}, top(5), {0}});
  cases.push_back({"TopKV2", "one", {Scatter({4})}, top(1), {0}});
  cases.push_back({"TopKV2", "none", {Scatter({2, 3})}, top(0), {0}});
  cases.push_back({"TopKV2", "no_rows", {Scatter({0, 3})}, top(2), {0}});
  cases.push_back({"TopKV2", "deep", {Scatter({2, 3, 4})}, top(2), {0}});
  cases.push_back({"TopKV2", "int64_indices", {Scatter({2, 4})}, top(2, DType::kInt64), {0}});
  cases.push_back({"TopKV2", "ties", {Numbers32({3, 1, 3, 3, 2, 1}, {6})}, top(5)});
  cases.push_back({"TopKV2", "long_row", {AsType(Scatter({2, 3000}), DType::kFloat32)}, top(100)});
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kInt64, DType::kUint8}) {
    cases.push_back({"TopKV2", std::string(DTypeName(dtype)), {AsType(Scatter({3, 19}, 0, 90), dtype)}, top(7)});
  }
  const auto sorted = [](int axis, const char* direction) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) {
      return Outputs{ops::Sort(in[0], axis, direction), ops::ArgSort(in[0], axis, direction)};
    };
  };
  cases.push_back({"TopKV2", "sort", {Scatter({2, 5})}, sorted(-1, "ASCENDING"), {0}});
  cases.push_back({"TopKV2", "sort_descending", {Scatter({2, 5})}, sorted(-1, "DESCENDING"), {0}});
  cases.push_back({"TopKV2", "sort_columns", {Scatter({3, 2, 4})}, sorted(0, "ASCENDING"), {0}});
  cases.push_back({"TopKV2", "sort_int32", {Numbers32({3, INT32_MIN, 3, INT32_MAX, 0}, {5})}, sorted(-1, "ASCENDING")});
  cases.push_back({"TopKV2", "sort_uint8", {AsType(Scatter({9}, 0, 255), DType::kUint8)}, sorted(-1, "ASCENDING")});
}

}  // namespace

void AddCoordinateCases(std::vector<OpCase>& cases) {
  AddGatherNdCases(cases);
  AddScatterNdCases(cases);
  AddTopKCases(cases);
}

}  // namespace cohort::testing
