// For tests: a layer of a program's own that uses ops which move values. It computes attention with two heads, then
// slices, joins, looks up, selects and resizes parts of the result. Its input is [batch, 4, 6].
#pragma once

#include <vector>

#include "cohort/keras/layers/layer.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/image.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/softmax.h"

namespace cohort::keras {

class ArrayOps final : public Layer {
 public:
  ArrayOps() : Layer("ArrayOps") {}

  std::vector<WeightSpec> Build(const std::vector<LayerInput>&) const override {
    return {{.name = "kernel", .shape = Shape{6, 18}}, {.name = "bias", .shape = Shape{3}, .initializer = "ones"}};
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output attended = Attended(ctx, inputs[0]);
    std::vector<Output> results = Parts(ctx, attended);
    for (const Output& chosen : Chosen(ctx, attended)) results.push_back(chosen);
    for (const Output& resized : Resized(attended)) results.push_back(resized);
    for (Output& result : results)
      result = ops::Reshape(result, {-1, result.shape().Sub(1, result.shape().rank()).num_elements()});
    return {ops::Concat(results, -1)};
  }

 private:
  // Returns [batch, 4, 6]. Each token attends to itself and to the tokens before it.
  static Output Attended(CallContext& ctx, const Output& x) {
    const std::vector<Output> parts = ops::Split(ops::BatchMatMul(x, ctx.weight("kernel")), -1, 3);
    const auto heads = [](const Output& part) {
      return ops::Transpose(ops::Reshape(part, {-1, 4, 2, 3}), {0, 2, 1, 3});
    };
    const Output scores = ops::BatchMatMul(heads(parts[0]), heads(parts[1]), false, true);
    const Output rows = ops::Const(ctx.graph(), std::vector<int32_t>{0, 1, 2, 3}, Shape{4, 1});
    const Output columns = ops::Const(ctx.graph(), std::vector<int32_t>{0, 1, 2, 3}, Shape{1, 4});
    // This 0 is computed from x, so that `sees` is computed from x, too. A value that is computed from constants alone
    // becomes a constant.
    const Output zero = ops::Squeeze(ops::Slice(ops::ShapeOf(x), {2}, {1})) - ops::Const(ctx.graph(), int32_t{6});
    const Output sees = ops::GreaterEqual(rows + zero, columns);
    const Output masked = ops::SelectV2(sees, scores, ops::ScalarLike(scores, -1e9));
    const Output values = ops::BatchMatMul(ops::Softmax(masked), heads(parts[2]));
    return ops::Reshape(ops::Transpose(values, {0, 2, 1, 3}), {-1, 4, 6});
  }

  static std::vector<Output> Parts(CallContext& ctx, const Output& x) {
    const std::vector<Output> tokens = ops::Unpack(x, 4, 1);
    const Output stacked = ops::Pack({tokens[0] + tokens[3], tokens[1]}, 1);  // [batch, 2, 6]
    const Output first = ops::Slice(stacked, {0, 0, 1}, {-1, -1, 3});
    const Output backwards =
        ops::StridedSlice(stacked, {0, 0, 0}, {0, 0, 0}, {1, 1, -2}, {.begin_mask = 7, .end_mask = 7});
    const Output last =
        ops::StridedSlice(x, {0, -1, 0}, {0, 0, 0}, {1, 1, 1}, {.begin_mask = 5, .end_mask = 5, .shrink_axis_mask = 2});
    const Output column = ops::StridedSlice(x, {0, 1, 0}, {0, 0, 2}, {1, 1, 1},
                                            {.begin_mask = 5, .ellipsis_mask = 1, .new_axis_mask = 2});
    const Output rest = ops::SplitV(x, {1, -1}, 1)[1];
    const Output looked_up = ops::Gather(x, ops::Const(ctx.graph(), std::vector<int32_t>{2, 0}), 1);
    const Output spread = ops::BroadcastTo(ctx.weight("bias"), ops::ShapeOf(first));
    const Output rows = ops::Squeeze(ops::Slice(ops::ShapeOf(x), {0}, {1}), {0});
    const Output flat = ops::Reshape(stacked, ops::Pack({rows, ops::Const(ctx.graph(), int32_t{12})}));
    const Output padded = ops::Pad(last, {{0, 0}, {1, 2}}, ops::ScalarLike(last, 0.5));
    return {first * spread, backwards,
            column,         rest,
            looked_up,      ops::Slice(flat, {0, 0}, {-1, 12}),
            padded,         ops::Tile(ops::Squeeze(ops::ExpandDims(last, 1), {1}), {1, 2})};
  }

  static std::vector<Output> Chosen(CallContext& ctx, const Output& x) {
    const Output last = ops::Squeeze(ops::Slice(x, {0, 3, 0}, {-1, 1, -1}), {1});  // [batch, 6]
    const Output zero = ops::ScalarLike(last, 0.0);
    const Output sums = ops::Sum(last, {1});
    const Output by_row = ops::Select(ops::Less(sums, zero), last, last * 2.0f);
    const Output flags = ops::LogicalAnd(ops::LogicalNot(ops::LessEqual(last, zero)),
                                         ops::LogicalOr(ops::NotEqual(last, zero), ops::Equal(last, zero)));
    const Output place = ops::ExpandDims(ops::Cast(ops::Greater(sums, zero), DType::kInt32), -1);
    return {by_row, ops::Cast(flags, last.dtype()), ops::Gather(x, place, 1, 1),
            ops::ClipByValue(last, ops::ScalarLike(last, -0.3), ops::ScalarLike(last, 0.3))};
  }

  // The result as images [4, 3, 2], in other sizes. Layers of Keras do not have these places of pixels.
  static std::vector<Output> Resized(const Output& x) {
    const Output images = ops::Reshape(x, {-1, 4, 3, 2});
    std::vector<Output> results;
    for (const ops::ResizeOptions& options : {ops::ResizeOptions{}, ops::ResizeOptions{.align_corners = true}}) {
      results.push_back(ops::ResizeBilinear(images, {7, 2}, options));
      results.push_back(ops::ResizeNearestNeighbor(images, {7, 2}, options));
      results.push_back(ops::ResizeNearestNeighbor(images, {3, 8}, options));
    }
    return results;
  }
};

}  // namespace cohort::keras
