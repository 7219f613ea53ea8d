// Cases of the ops that old input pipelines and vision models use: DecodeRaw, DecodeCSV, SparseToDense, the sorted
// segments, Multinomial and LRN.
#include <string>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/ops/decode.h"
#include "cohort/ops/gather_nd.h"
#include "cohort/ops/local_response.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/random.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;
using Strings = std::vector<std::string>;

Tensor Whole(std::vector<int32_t> values) { return Tensor::Vector(values); }
Tensor Whole(std::vector<int32_t> values, const Shape& shape) { return Tensor::FromValues(values, shape); }

void AddRaw(std::vector<OpCase>& cases) {
  const Tensor bytes = Tensor::FromValues(Strings{std::string("\0\1\2\3\4\5\6\7", 8), "\xff\xfe-words"}, Shape{2, 1});
  for (const DType dtype :
       {DType::kUint8, DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64, DType::kBool}) {
    for (const bool little : {true, false}) {
      cases.push_back({"DecodeRaw",
                       StrCat(DTypeName(dtype), little ? "" : "_big_endian"),
                       {dtype == DType::kBool ? Tensor::Scalar(std::string("\0\1\1\0", 4)) : bytes},
                       Unary([=](Output x) { return ops::DecodeRaw(x, dtype, little); })});
    }
  }
  const OpCase::Build pixels = Unary([](Output x) { return ops::DecodeRaw(x, DType::kUint8); });
  cases.push_back({"DecodeRaw", "empty_string", {Tensor::Scalar("")}, pixels});
  cases.push_back({"DecodeRaw", "no_strings", {Tensor(DType::kString, {0, 3})}, pixels});
}

void AddCsv(std::vector<OpCase>& cases) {
  const auto csv = [](std::vector<Tensor> defaults, ops::DecodeCSVOptions options) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) { return ops::DecodeCSV(in[0], defaults, options); };
  };
  const std::vector<Tensor> all = {Tensor::Scalar(1.5f), Tensor::Scalar(-2.5), Tensor::Scalar(7),
                                   Tensor::Scalar(int64_t{-9}), Tensor::Scalar("none")};
  const Strings rows = {"1,2,3,4,text", ",,,,", " 0.5 ,-1e3,\"-7\",\"8\",\"a \"\"quoted\"\", text\""};
  cases.push_back({"DecodeCSV", "every_dtype", {Tensor::Vector(Strings{rows[0], rows[1], rows[2]})}, csv(all, {})});
  cases.push_back({"DecodeCSV",
                   "missing_last_field",
                   {Tensor::Scalar("\n1,2,3,4,text,")},
                   csv({all[0], all[1], all[2], all[3], all[4], all[4]}, {})});
  cases.push_back({"DecodeCSV",
                   "required",
                   {Tensor::FromValues(Strings{"5,a", "6,"}, Shape{2, 1})},
                   csv({Tensor(DType::kInt32, {0}), Tensor::Vector(Strings{"-"})}, {})});
  cases.push_back({"DecodeCSV",
                   "selected",
                   {Tensor::Vector(Strings{"5,a,7,b", "6;,c,NA,"})},
                   csv({Tensor::Scalar("-"), Tensor::Scalar(3)}, {.na_value = "NA", .select_cols = {1, 2}})});
  cases.push_back({"DecodeCSV",
                   "tabs_and_quotes",
                   {Tensor::Vector(Strings{"5\t\"a", "6\ta,\"b\""})},
                   csv({Tensor::Scalar(0), Tensor::Scalar("")}, {.field_delim = "\t", .use_quote_delim = false})});
  cases.push_back({"DecodeCSV", "no_records", {Tensor(DType::kString, {0})}, csv({Tensor::Scalar(0)}, {})});
}

void AddSegments(std::vector<OpCase>& cases) {
  const OpCase::Build sum = Binary([](Output data, Output ids) { return ops::SegmentSum(data, ids); });
  const OpCase::Build mean = Binary([](Output data, Output ids) { return ops::SegmentMean(data, ids); });
  for (const auto& [op, build] : {std::pair("SegmentSum", sum), std::pair("SegmentMean", mean)}) {
    cases.push_back({op, "rows", {Ramp({5, 3}), Whole({0, 0, 1, 1, 1})}, build, {0}});
    cases.push_back({op, "gaps", {Scatter({4}), Tensor::Vector(std::vector<int64_t>{1, 1, 3, 4})}, build, {0}});
    cases.push_back({op, "deep", {Scatter({3, 2, 2}), Whole({0, 2, 2})}, build, {0}});
    cases.push_back({op, "empty", {Ramp({0, 2}), Tensor(DType::kInt32, {0})}, build, {0}});
    cases.push_back({op, "float32", {AsType(Scatter({4, 2}), DType::kFloat32), Whole({0, 1, 1, 1})}, build});
  }
  cases.push_back({"SegmentSum", "int32", {Whole({5, -7, 9, 1}), Whole({0, 0, 0, 1})}, sum});
  cases.push_back({"SegmentSum", "bfloat16", {AsType(Ramp({4, 3}), DType::kBfloat16), Whole({0, 1, 1, 1})}, sum});
}

void AddSparseToDense(std::vector<OpCase>& cases) {
  const auto dense = [](std::vector<int64_t> shape, bool validate) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) { return Outputs{ops::SparseToDense(in[0], shape, in[1], in[2], validate)}; };
  };
  const Tensor rest = Tensor::Scalar(0.25);
  const auto add = [&](const char* label, Tensor indices, Tensor values, OpCase::Build build) {
    OpCase added{"SparseToDense", label, {std::move(indices), std::move(values), rest}, std::move(build), {1, 2}};
    added.known_shapes_only = true;
    cases.push_back(added);
  };
  add("matrix", Whole({0, 1, 2, 0, 2, 1}, {3, 2}), Ramp({3}), dense({3, 2}, true));
  add("vector", Whole({1, 4}), Ramp({2}), dense({6}, true));
  add("one_value", Whole({1, 4}), Tensor::Scalar(3.5), dense({6}, true));
  add("one_index", Tensor::Scalar(int32_t{2}), Tensor::Scalar(3.5), dense({4}, true));
  cases.push_back({"SparseToDense",
                   "strings",
                   {Tensor::Vector(std::vector<int64_t>{3, 0}), Tensor::Vector(Strings{"a", "b"}), Tensor::Scalar("-")},
                   dense({4}, false)});
}

void AddMultinomial(std::vector<OpCase>& cases) {
  const auto draw = [](DType dtype) -> OpCase::Build {
    return [dtype](Graph&, const Outputs& in) { return Outputs{ops::Multinomial(in[0], 37, 5, dtype)}; };
  };
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    cases.push_back(
        {"Multinomial", std::string(DTypeName(dtype)), {AsType(Scatter({1, 6}, -2, 2), dtype)}, draw(DType::kInt64)});
  }
  cases.push_back({"Multinomial",
                   "int32",
                   {Whole({0, 2, 1}, {1, 3})},
                   draw(DType::kInt32),
                   {},
                   1e-5,
                   1e-6,
                   /*compare_values=*/false});  // TensorFlow has no CPU kernel for it
}

void AddLocalResponse(std::vector<OpCase>& cases) {
  const std::vector<std::pair<const char*, ops::LRNOptions>> options = {
      {"defaults", {}},
      {"alexnet", {.depth_radius = 2, .bias = 2.0f, .alpha = 1e-4f, .beta = 0.75f}},
      {"narrow", {.depth_radius = 1, .bias = 0.5f, .alpha = 0.7f, .beta = 1.5f}},
      {"own_channel", {.depth_radius = 0, .bias = 1.0f, .alpha = 2.0f, .beta = 1.0f}}};
  for (const auto& [label, option] : options) {
    const OpCase::Build build = Unary([o = option](Output x) { return ops::LRN(x, o); });
    cases.push_back({"LRN", label, {AsType(Scatter({2, 2, 1, 7}, -2, 2), DType::kFloat32)}, build, {0}, 1e-2, 2e-3});
    cases.push_back({"LRNGrad",
                     label,
                     {AsType(Scatter({2, 1, 2, 7}, -1, 1, 2), DType::kFloat32),
                      AsType(Scatter({2, 1, 2, 7}, -2, 2), DType::kFloat32)},
                     [o = option](Graph&, const Outputs& in) {
                       return Outputs{ops::Op("LRNGrad", {in[0], in[1], ops::LRN(in[1], o)})
                                          .Attr("depth_radius", int64_t{o.depth_radius})
                                          .Attr("bias", o.bias)
                                          .Attr("alpha", o.alpha)
                                          .Attr("beta", o.beta)
                                          .Finish1()};
                     }});
  }
  const OpCase::Build plain = Unary([](Output x) { return ops::LRN(x); });
  cases.push_back({"LRN", "no_images", {Tensor(DType::kFloat32, {0, 2, 2, 3})}, plain});
  // TensorFlow's CPU has no kernel for bfloat16.
  const Tensor narrow = AsType(Scatter({1, 2, 2, 5}), DType::kBfloat16);
  cases.push_back({"LRN", "bfloat16", {narrow}, plain, {}, 1e-5, 1e-6, /*compare_values=*/false});
}

}  // namespace

void AddRecordCases(std::vector<OpCase>& cases) {
  AddRaw(cases);
  AddCsv(cases);
  AddSegments(cases);
  AddSparseToDense(cases);
  AddMultinomial(cases);
  AddLocalResponse(cases);
}

}  // namespace cohort::testing
