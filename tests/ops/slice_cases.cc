// Cases of ops that take parts of a tensor, join and split tensors, pad and repeat them.
#include <string>

#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/slice.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

Tensor Words(const std::vector<std::string>& words) { return Tensor::Vector(words); }

void AddConcatCases(std::vector<OpCase>& cases) {
  const auto concat = [](int axis) -> OpCase::Build {
    return [axis](Graph& graph, const Outputs& in) {
      return Outputs{graph.Op("ConcatV2").Inputs(in).Input(ops::Const(graph, axis)).Finish1()};
    };
  };
  cases.push_back({"ConcatV2", "rows", {Ramp({2, 3}), Scatter({1, 3})}, concat(0), {0, 1}});
  cases.push_back({"ConcatV2", "columns", {Ramp({2, 3}), Scatter({2, 1}), Ramp({2, 0})}, concat(-1), {0, 1, 2}});
  cases.push_back({"ConcatV2", "middle", {Ramp({2, 1, 2}), Scatter({2, 3, 2})}, concat(1), {0, 1}});
  cases.push_back({"ConcatV2", "strings", {Words({"a", "b"}), Words({"c"})}, concat(0)});
  cases.push_back({"ConcatOffset",
                   "rows",
                   {Tensor::Vector(std::vector<int32_t>{2, 2, 7}), Tensor::Vector(std::vector<int32_t>{2, 3, 7}),
                    Tensor::Vector(std::vector<int32_t>{2, 9, 7})},
                   [](Graph& graph, const Outputs& in) {
                     Node* node = graph.Op("ConcatOffset").Input(ops::Const(graph, 1)).Inputs(in).Finish();
                     return Outputs{node->output(0), node->output(1), node->output(2)};
                   }});
}

void AddSplitCases(std::vector<OpCase>& cases) {
  const auto split = [](int axis, int parts) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) { return ops::Split(in[0], axis, parts); };
  };
  cases.push_back({"Split", "rows", {Ramp({4, 3})}, split(0, 2), {0}});
  cases.push_back({"Split", "columns", {Ramp({2, 6})}, split(-1, 3), {0}});
  cases.push_back({"Split", "empty", {Ramp({4, 0})}, split(0, 2), {0}});
  cases.push_back({"Split", "one", {Ramp({2})}, split(0, 1), {0}});
  cases.push_back({"Split", "strings", {Words({"a", "b"})}, split(0, 2)});
  const auto split_v = [](const std::vector<int64_t>& sizes, int axis) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) { return ops::SplitV(in[0], sizes, axis); };
  };
  cases.push_back({"SplitV", "rows", {Ramp({4, 3})}, split_v({1, 3}, 0), {0}});
  cases.push_back({"SplitV", "rest", {Ramp({2, 6})}, split_v({2, -1, 1}, 1), {0}});
  cases.push_back({"SplitV", "with_empty", {Ramp({2, 3})}, split_v({0, 3}, -1), {0}});
}

void AddPackCases(std::vector<OpCase>& cases) {
  for (const int axis : {0, 1, 2, -1}) {
    const std::string label = StrCat("axis_", axis < 0 ? "minus_" : "", std::abs(axis));
    cases.push_back({"Pack",
                     label,
                     {Ramp({2, 3}), Scatter({2, 3})},
                     [axis](Graph&, const Outputs& in) { return Outputs{ops::Pack(in, axis)}; },
                     {0, 1}});
    cases.push_back({"Unpack",
                     label,
                     {Ramp({2, 2, 2})},
                     [axis](Graph&, const Outputs& in) { return ops::Unpack(in[0], 2, axis); },
                     {0}});
  }
  cases.push_back({"Pack",
                   "empty",
                   {Ramp({0, 3}), Ramp({0, 3})},
                   [](Graph&, const Outputs& in) { return Outputs{ops::Pack(in, 1)}; },
                   {0, 1}});
  cases.push_back(
      {"Unpack", "empty", {Ramp({2, 0})}, [](Graph&, const Outputs& in) { return ops::Unpack(in[0], 2, 0); }, {0}});
  cases.push_back({"Pack",
                   "scalars",
                   {Ramp({}), Ramp({}, 2, 3), Ramp({}, 4, 5)},
                   [](Graph&, const Outputs& in) { return Outputs{ops::Pack(in)}; },
                   {0, 1, 2}});
  cases.push_back(
      {"Unpack", "vector", {Ramp({3})}, [](Graph&, const Outputs& in) { return ops::Unpack(in[0], 3); }, {0}});
}

void AddTileCases(std::vector<OpCase>& cases) {
  const auto tile = [&](const char* label, const Shape& shape, const std::vector<int64_t>& multiples) {
    cases.push_back({"Tile",
                     label,
                     {Ramp(shape)},
                     [multiples](Graph&, const Outputs& in) { return Outputs{ops::Tile(in[0], multiples)}; },
                     {0}});
  };
  tile("both", {2, 3}, {2, 3});
  tile("none", {2, 3}, {1, 1});
  tile("inner", {2, 3}, {1, 2});
  tile("empty", {2, 3}, {0, 2});
  tile("three", {2, 1, 2}, {2, 3, 2});
  cases.push_back({"Tile", "strings", {Words({"a", "b"})}, [](Graph&, const Outputs& in) {
                     return Outputs{ops::Tile(in[0], {2})};
                   }});
}

void AddSliceAndPadCases(std::vector<OpCase>& cases) {
  const auto slice = [&](const char* label, const Shape& shape, const std::vector<int64_t>& begin,
                         const std::vector<int64_t>& size) {
    cases.push_back({"Slice",
                     label,
                     {Ramp(shape)},
                     [=](Graph&, const Outputs& in) { return Outputs{ops::Slice(in[0], begin, size)}; },
                     {0}});
  };
  slice("matrix", {3, 4}, {1, 1}, {2, 2});
  slice("rows", {3, 4}, {1, 0}, {1, -1});
  slice("rest", {3, 4}, {0, 2}, {-1, -1});
  slice("empty", {3, 4}, {3, 0}, {0, 4});
  slice("scalar", {}, {}, {});
  cases.push_back(
      {"Slice",
       "fed_begin",
       {Ramp({5}), Tensor::Vector(std::vector<int32_t>{1})},
       [](Graph& graph, const Outputs& in) { return Outputs{ops::Slice(in[0], in[1], ops::IntVector(graph, {3}))}; },
       {0}});
  const auto pad = [&](const char* label, const Shape& shape,
                       const std::vector<std::pair<int64_t, int64_t>>& paddings) {
    cases.push_back({"Pad",
                     label,
                     {Ramp(shape)},
                     [=](Graph&, const Outputs& in) { return Outputs{ops::Pad(in[0], paddings)}; },
                     {0}});
    cases.push_back({"PadV2",
                     label,
                     {Ramp(shape), Ramp({}, 4, 5)},
                     [=](Graph&, const Outputs& in) { return Outputs{ops::Pad(in[0], paddings, in[1])}; },
                     {0, 1}});
  };
  pad("matrix", {2, 3}, {{1, 2}, {0, 1}});
  pad("nothing", {2, 3}, {{0, 0}, {0, 0}});
  pad("empty", {0, 2}, {{1, 1}, {0, 0}});
  pad("image", {2, 2, 2, 1}, {{0, 0}, {1, 1}, {1, 1}, {0, 0}});
}

struct StridedRow {
  const char* label;
  Shape shape;
  std::vector<int64_t> begin, end, strides;
  ops::StridedSliceMasks masks;
};

void AddStridedCases(std::vector<OpCase>& cases) {
  const StridedRow rows[] = {
      {"plain", {5, 4}, {1, 0}, {4, 3}, {1, 1}, {}},
      {"steps", {7, 4}, {0, 1}, {7, 4}, {3, 2}, {}},
      {"backwards", {5}, {4}, {1}, {-2}, {}},
      {"backwards_whole", {5}, {0}, {0}, {-1}, {.begin_mask = 1, .end_mask = 1}},
      {"negative_bounds", {5, 2}, {-3, 0}, {-1, 2}, {1, 1}, {}},
      {"clamped", {3}, {-9}, {9}, {1}, {}},
      {"none_taken", {4}, {3}, {1}, {1}, {}},
      {"open_bounds", {4, 3}, {1, 1}, {2, 2}, {1, 1}, {.begin_mask = 1, .end_mask = 2}},
      {"fewer_indices", {3, 2, 2}, {1}, {3}, {1}, {}},
      {"one_element", {3, 4}, {1, 2}, {2, 3}, {1, 1}, {.shrink_axis_mask = 3}},
      {"last_row", {3, 4}, {-1}, {0}, {1}, {.shrink_axis_mask = 1}},
      {"new_axes", {2, 3}, {0, 0, 0}, {0, 2, 0}, {1, 1, 1}, {.new_axis_mask = 5}},
      {"ellipsis", {2, 3, 2}, {0, 1}, {0, 2}, {1, 1}, {.ellipsis_mask = 1}},
      {"ellipsis_in_the_middle",
       {2, 3, 2, 2},
       {1, 0, 1},
       {2, 0, 2},
       {1, 1, 1},
       {.ellipsis_mask = 2, .shrink_axis_mask = 4}},
      {"ellipsis_of_nothing", {2, 3}, {0, 0, 1}, {2, 0, 3}, {1, 1, 1}, {.ellipsis_mask = 2}},
      {"empty_input", {0, 3}, {0, 0}, {5, 2}, {1, 1}, {}},
  };
  for (const StridedRow& r : rows) {
    cases.push_back({"StridedSlice",
                     r.label,
                     {Ramp(r.shape)},
                     [r](Graph&, const Outputs& in) {
                       return Outputs{ops::StridedSlice(in[0], r.begin, r.end, r.strides, r.masks)};
                     },
                     {0}});
  }
  const auto grad = [](const std::vector<int64_t>& shape, const std::vector<int64_t>& begin,
                       const std::vector<int64_t>& end, const std::vector<int64_t>& strides,
                       int64_t shrink) -> OpCase::Build {
    return [=](Graph& graph, const Outputs& in) {
      return Outputs{graph.Op("StridedSliceGrad")
                         .Input(ops::IntVector(graph, shape))
                         .Input(ops::IntVector(graph, begin))
                         .Input(ops::IntVector(graph, end))
                         .Input(ops::IntVector(graph, strides))
                         .Input(in[0])
                         .Attr("shrink_axis_mask", shrink)
                         .Finish1()};
    };
  };
  cases.push_back({"StridedSliceGrad", "steps", {Ramp({2, 2})}, grad({4, 3}, {0, 2}, {4, -4}, {2, -2}, 0), {0}});
  cases.push_back({"StridedSliceGrad", "one_row", {Ramp({3})}, grad({4, 3}, {1, 0}, {2, 3}, {1, 1}, 1), {0}});
}

}  // namespace

void AddSliceCases(std::vector<OpCase>& cases) {
  AddConcatCases(cases);
  AddSplitCases(cases);
  AddPackCases(cases);
  AddTileCases(cases);
  AddSliceAndPadCases(cases);
  AddStridedCases(cases);
}

}  // namespace cohort::testing
