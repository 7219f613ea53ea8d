#include <string>

#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/partition.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

Tensor Ints(std::vector<int32_t> values) { return Tensor::Vector(values); }
Tensor Ints(std::vector<int32_t> values, const Shape& shape) { return Tensor::FromValues(values, shape); }

void AddGatherCases(std::vector<OpCase>& cases) {
  const auto gather = [](int axis, int batch_dims) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) { return Outputs{ops::Gather(in[0], in[1], axis, batch_dims)}; };
  };
  cases.push_back({"GatherV2", "rows", {Ramp({4, 3}), Ints({2, 0, 2})}, gather(0, 0), {0}});
  cases.push_back({"GatherV2", "elements", {Ramp({5}), Ints({4, 1})}, gather(0, 0), {0}});
  cases.push_back({"GatherV2", "scalar_index", {Ramp({4, 3}), Ints({1}, {})}, gather(0, 0), {0}});
  cases.push_back({"GatherV2", "matrix_of_indices", {Ramp({4, 2}), Ints({0, 3, 3, 1}, {2, 2})}, gather(0, 0), {0}});
  cases.push_back({"GatherV2", "no_indices", {Ramp({4, 2}), Tensor(DType::kInt32, {0})}, gather(0, 0), {0}});
  cases.push_back({"GatherV2", "columns", {Ramp({3, 4}), Ints({3, 0, 3})}, gather(1, 0), {0}});
  cases.push_back({"GatherV2", "middle", {Ramp({2, 3, 2}), Ints({2, 0, 2, 1}, {2, 2})}, gather(-2, 0), {0}});
  cases.push_back({"GatherV2", "batch", {Ramp({2, 3}), Ints({2, 0, 1, 1}, {2, 2})}, gather(1, 1), {0}});
  cases.push_back(
      {"GatherV2", "batch_and_middle", {Ramp({2, 2, 3, 2}), Ints({2, 0, 1, 1, 0, 2}, {2, 3})}, gather(2, 1), {0}});
  cases.push_back({"GatherV2",
                   "int64",
                   {AsType(Ramp({4}, 0, 8), DType::kInt64), Tensor::Vector(std::vector<int64_t>{3, 0})},
                   gather(0, 0)});
  cases.push_back(
      {"GatherV2", "strings", {Tensor::Vector(std::vector<std::string>{"a", "b"}), Ints({1, 1, 0})}, gather(0, 0)});
  const auto one_hot = [](int axis, DType dtype) -> OpCase::Build {
    return [=](Graph& graph, const Outputs& in) {
      return Outputs{ops::OneHot(in[0], ops::Const(graph, 4), ops::Const(graph, ops::NumberTensor(dtype, 5)),
                                 ops::Const(graph, ops::NumberTensor(dtype, 2)), axis)};
    };
  };
  cases.push_back({"OneHot", "last", {Ints({0, 3, 1})}, one_hot(-1, DType::kFloat32)});
  cases.push_back({"OneHot", "first", {Ints({0, 3, 1, 2}, {2, 2})}, one_hot(0, DType::kFloat64)});
  cases.push_back({"OneHot", "middle", {AsType(Ramp({2, 2}, 0, 3), DType::kInt64)}, one_hot(1, DType::kInt32)});
  cases.push_back({"OneHot", "out_of_range", {Ints({-1, 4, 2})}, one_hot(-1, DType::kFloat32)});
  cases.push_back({"OneHot", "scalar", {Tensor::Scalar(uint8_t{2})}, one_hot(-1, DType::kFloat32)});
}

void AddUniqueCases(std::vector<OpCase>& cases) {
  const OpCase::Build unique = [](Graph&, const Outputs& in) {
    const ops::UniqueResult result = ops::Unique(in[0]);
    return Outputs{result.y, result.idx};
  };
  const OpCase::Build counted = [](Graph&, const Outputs& in) {
    const ops::UniqueCountsResult result = ops::UniqueWithCounts(in[0], DType::kInt64);
    return Outputs{result.y, result.idx, result.count};
  };
  const std::vector<std::pair<const char*, Tensor>> inputs = {
      {"int32", Ints({7, 1, 7, 7, 3, 1})},
      {"int64", Tensor::Vector(std::vector<int64_t>{-5, int64_t{1} << 40, -5})},
      {"float32", Tensor::Vector(std::vector<float>{0.5f, -0.0f, 0.0f, 0.5f})},
      {"strings", Tensor::Vector(std::vector<std::string>{"b", "a", "b", ""})},
      {"empty", Tensor(DType::kInt32, {0})}};
  for (const auto& [label, x] : inputs) {
    cases.push_back({"Unique", label, {x}, unique});
    cases.push_back({"UniqueWithCounts", label, {x}, counted});
  }
  cases.push_back({"Where", "matrix", {Flags({true, false, false, true, true, false}, {2, 3})}, Unary(ops::Where)});
  cases.push_back({"Where", "numbers", {Ints({0, 3, 0, -1})}, Unary(ops::Where)});
  cases.push_back({"Where", "none", {Flags({false, false})}, Unary(ops::Where)});
}

void AddLookupCases(std::vector<OpCase>& cases) {
  using Strings = std::vector<std::string>;
  const std::vector<std::pair<const char*, Tensor>> texts = {
      {"vector", Tensor::Vector(Strings{"", "a", "user 17", std::string(200, 'x'), "\xff\x01", "a"})},
      {"matrix", Tensor::FromValues(Strings{"shoe", "bag", "dress", "coat"}, Shape{2, 2})},
      {"scalar", Tensor::Scalar("shoe")},
      {"empty", Tensor(DType::kString, {0, 3})}};
  const OpCase::Build fast = Unary([](Output x) { return ops::StringToHashBucketFast(x, 1'000'003); });
  const OpCase::Build strong = Unary([](Output x) { return ops::StringToHashBucketStrong(x, 1'000'003, {17, -4}); });
  const OpCase::Build lookup = Unary([](Output x) {
    return ops::VocabularyLookup(x, Tensor::Vector(Strings{"bag", "coat", "", "shoe"}), -7);
  });
  for (const auto& [label, x] : texts) {
    cases.push_back({"StringToHashBucketFast", label, {x}, fast});
    cases.push_back({"StringToHashBucketStrong", label, {x}, strong});
    cases.push_back({"VocabularyLookup", label, {x}, lookup, {}, 1e-5, 1e-6, /*compare_values=*/false});
  }
  const std::vector<int64_t> ids = {7, int64_t{1} << 50, -3};
  cases.push_back({"VocabularyLookup",
                   "int64",
                   {Tensor::Vector(std::vector<int64_t>{-3, 8, 7, int64_t{1} << 50})},
                   Unary([ids](Output x) { return ops::VocabularyLookup(x, Tensor::Vector(ids)); }),
                   {},
                   1e-5,
                   1e-6,
                   /*compare_values=*/false});
  const OpCase::Build text = Unary(ops::AsString);
  cases.push_back({"AsString", "int32", {Ints({0, -17, 2147483647})}, text});
  cases.push_back({"AsString", "int64", {Tensor::Vector(std::vector<int64_t>{INT64_MIN, int64_t{1} << 40})}, text});
  cases.push_back({"AsString", "uint8", {Tensor::Scalar(uint8_t{200})}, text});
  cases.push_back({"AsString", "bool", {Flags({true, false})}, text});
  cases.push_back({"AsString", "empty", {Tensor(DType::kInt64, {0})}, text});
  const OpCase::Build lower = Binary([](Output sorted, Output x) { return ops::SearchSorted(sorted, x); });
  const OpCase::Build upper = Binary([](Output sorted, Output x) { return ops::SearchSorted(sorted, x, true); });
  const Tensor ints = Ints({-3, 0, 0, 7, 1, 2, 3, 4}, {2, 4}), asked = Ints({0, 9, -4, 2, 5, 1}, {2, 3});
  for (const auto& [op, build] : {std::pair("LowerBound", lower), std::pair("UpperBound", upper)}) {
    cases.push_back({op, "int32", {ints, asked}, build});
    for (const DType dtype : {DType::kInt64, DType::kFloat32, DType::kFloat64}) {
      cases.push_back({op,
                       std::string(DTypeName(dtype)),
                       {AsType(AsFloat64(ints), dtype), AsType(AsFloat64(asked), dtype)},
                       build});
    }
    cases.push_back({op, "nothing_asked", {ints, Tensor(DType::kInt32, {2, 0})}, build});
    cases.push_back({op, "nothing_sorted", {Tensor(DType::kInt32, {2, 0}), asked}, build});
  }
  const OpCase::Build buckets = Unary([](Output x) { return ops::Bucketize(x, {-0.5f, 0.0f, 0.25f, 3.0f}); });
  cases.push_back(
      {"Bucketize", "float32", {Tensor::Vector(std::vector<float>{-1, -0.5f, 0, 0.2f, 0.25f, 3, 4})}, buckets});
  cases.push_back({"Bucketize", "float64", {Scatter({3, 4}, -1, 4)}, buckets});
  cases.push_back({"Bucketize", "int32", {Ints({-1, 0, 2, 3}, {2, 2})}, buckets});
  cases.push_back({"Bucketize", "int64", {Tensor::Scalar(int64_t{1} << 40)}, buckets});
  cases.push_back({"Bucketize", "empty", {Tensor(DType::kFloat32, {2, 0})}, buckets});
  cases.push_back({"Bucketize", "no_boundaries", {Ramp({3})}, Unary([](Output x) { return ops::Bucketize(x, {}); })});
}

void AddPartitionCases(std::vector<OpCase>& cases) {
  const auto segments = [](int count) -> OpCase::Build {
    return [count](Graph& graph, const Outputs& in) {
      return Outputs{ops::UnsortedSegmentSum(in[0], in[1], ops::Const(graph, count))};
    };
  };
  cases.push_back({"UnsortedSegmentSum", "rows", {Ramp({4, 3}), Ints({1, 0, 1, 3})}, segments(4), {0}});
  cases.push_back({"UnsortedSegmentSum", "negative_ids", {Ramp({3, 2}), Ints({-1, 0, 0})}, segments(2), {0}});
  cases.push_back(
      {"UnsortedSegmentSum", "elements", {Ramp({2, 3}), Ints({0, 1, 2, 0, 1, 2}, {2, 3})}, segments(3), {0}});
  cases.push_back({"UnsortedSegmentSum", "empty", {Ramp({0, 2}), Tensor(DType::kInt32, {0})}, segments(2), {0}});
  cases.push_back(
      {"UnsortedSegmentSum", "bfloat16", {AsType(Ramp({4, 3}), DType::kBfloat16), Ints({1, 0, 1, 1})}, segments(2)});
  const auto partition = [](int count) -> OpCase::Build {
    return [count](Graph&, const Outputs& in) { return ops::DynamicPartition(in[0], in[1], count); };
  };
  cases.push_back({"DynamicPartition", "rows", {Ramp({5, 2}), Ints({1, 0, 1, 2, 1})}, partition(3), {0}});
  cases.push_back({"DynamicPartition", "one_empty", {Ramp({3}), Ints({0, 0, 2})}, partition(3), {0}});
  cases.push_back({"DynamicPartition", "matrix", {Ramp({2, 2}), Ints({1, 0, 0, 1}, {2, 2})}, partition(2), {0}});
  cases.push_back({"DynamicPartition",
                   "strings",
                   {Tensor::Vector(std::vector<std::string>{"a", "b"}), Ints({1, 0})},
                   partition(2)});
  const OpCase::Build stitch = [](Graph&, const Outputs& in) {
    return Outputs{ops::DynamicStitch({in[0], in[1]}, {in[2], in[3]})};
  };
  cases.push_back(
      {"DynamicStitch", "rows", {Ints({0, 3}), Ints({2, 1}), Ramp({2, 2}), Scatter({2, 2})}, stitch, {2, 3}});
  cases.push_back(
      {"DynamicStitch", "scalar_index", {Ints({2}, {}), Ints({0, 1}), Ramp({3}), Scatter({2, 3})}, stitch, {2, 3}});
}

}  // namespace

void AddIndexCases(std::vector<OpCase>& cases) {
  AddGatherCases(cases);
  AddUniqueCases(cases);
  AddLookupCases(cases);
  AddPartitionCases(cases);
}

}  // namespace cohort::testing
