#include "cohort/ops/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/variables.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;

std::vector<float> ToFloats(const Tensor& tensor) { return tensor.ToVector<float>(); }

class StateTest : public ::testing::Test {
 protected:
  Output Vector(const std::vector<float>& values) { return ops::Const(graph, values); }

  Graph graph;
  Interpreter run;
};

TEST_F(StateTest, AVariableHoldsItsValueBetweenSteps) {
  const ops::Variable w(graph, Tensor::Vector<float>({1, 2, 3}), {.name = "w"});
  EXPECT_FALSE(run.Run1(w.is_initialized()).scalar<bool>());
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { run.Run1(w); }),
              HasSubstr("Attempting to use uninitialized value w"));
  run.RunNode(w.initializer());
  EXPECT_TRUE(run.Run1(w.is_initialized()).scalar<bool>());
  EXPECT_THAT(ToFloats(run.Run1(w)), ElementsAre(1, 2, 3));
  run.RunNode(w.AssignAdd(Vector({10, 20, 30})));
  run.RunNode(w.AssignSub(Vector({1, 1, 1})));
  EXPECT_THAT(ToFloats(run.Run1(w)), ElementsAre(10, 21, 32));
  run.RunNode(w.initializer());
  EXPECT_THAT(ToFloats(run.Run1(w)), ElementsAre(1, 2, 3));
}

TEST_F(StateTest, UpdatesNeverReachAConstantOrAnEarlierRead) {
  const ops::Variable w(graph, Tensor::Vector<float>({1, 2}), {.name = "w"});
  run.RunNode(w.initializer());
  const Tensor before = run.Run1(w);
  run.RunNode(w.AssignAdd(Vector({5, 5})));
  EXPECT_THAT(ToFloats(before), ElementsAre(1, 2));
  EXPECT_THAT(ToFloats(run.Run1(w.initial_value())), ElementsAre(1, 2));
  EXPECT_THAT(ToFloats(run.Run1(w)), ElementsAre(6, 7));
}

TEST_F(StateTest, AnAssignedFeedStaysTheCallers) {
  const ops::Variable w(graph, Shape{2}, initializers::Zeros(), {.name = "w"});
  const Output fed = ops::Placeholder(graph, DType::kFloat32, Shape{2});
  const Tensor value = Tensor::Vector<float>({3, 4});
  run.RunNode(w.Assign(fed), {{fed, value}});
  run.RunNode(w.AssignAdd(Vector({1, 1})));
  EXPECT_THAT(ToFloats(value), ElementsAre(3, 4));
  EXPECT_THAT(ToFloats(run.Run1(w)), ElementsAre(4, 5));
}

TEST_F(StateTest, UpdatesWorkForAllNumbers) {
  const ops::Variable i32(graph, Tensor::Scalar(int32_t{7}), {.name = "i32"});
  const ops::Variable i64(graph, Tensor::Scalar(int64_t{7}), {.name = "i64"});
  const ops::Variable f64(graph, Tensor::Scalar(0.5), {.name = "f64"});
  const ops::Variable bf16(graph, Tensor::Scalar(bfloat16(1.5f)), {.name = "bf16"});
  run.RunNode(ops::GlobalVariablesInitializer(graph));
  run.RunNode(i32.AssignAdd(ops::Const(graph, 3)));
  run.RunNode(i64.AssignSub(ops::Const(graph, int64_t{10})));
  run.RunNode(f64.AssignAdd(ops::Const(graph, 0.25)));
  run.RunNode(bf16.AssignAdd(ops::Const(graph, Tensor::Scalar(bfloat16(2.0f)))));
  EXPECT_EQ(run.Run1(i32).scalar<int32_t>(), 10);
  EXPECT_EQ(run.Run1(i64).scalar<int64_t>(), -3);
  EXPECT_EQ(run.Run1(f64).scalar<double>(), 0.75);
  EXPECT_EQ(float(run.Run1(bf16).scalar<bfloat16>()), 3.5f);
}

TEST_F(StateTest, GatherReadsRows) {
  const ops::Variable table(graph, Tensor::FromValues<float>(std::vector<float>{0, 1, 10, 11, 20, 21}, Shape{3, 2}),
                            {.name = "table"});
  run.RunNode(table.initializer());
  const Output rows = table.Gather(ops::Const(graph, std::vector<int32_t>{2, 0, 2, 1}, Shape{2, 2}));
  EXPECT_EQ(rows.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(ToFloats(run.Run1(rows)), ElementsAre(20, 21, 0, 1, 20, 21, 10, 11));
  const Output outside = table.Gather(ops::Const(graph, std::vector<int64_t>{0, 3}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { run.Run1(outside); }), HasSubstr("indices[1] = 3"));
}

TEST_F(StateTest, ScatterChangesRows) {
  const ops::Variable table(graph, Shape{3, 2}, initializers::Zeros(), {.name = "table"});
  run.RunNode(table.initializer());
  const Output repeated = ops::Const(graph, std::vector<int32_t>{1, 1, 2});
  const Output rows = ops::Const(graph, std::vector<float>{1, 2, 10, 20, 5, 6}, Shape{3, 2});
  run.RunNode(ops::ResourceScatterAdd(table.handle(), repeated, rows));
  EXPECT_THAT(ToFloats(run.Run1(table)), ElementsAre(0, 0, 11, 22, 5, 6));
  run.RunNode(ops::ResourceScatterSub(table.handle(), repeated, rows));
  EXPECT_THAT(ToFloats(run.Run1(table)), ElementsAre(0, 0, 0, 0, 0, 0));
  run.RunNode(ops::ResourceScatterUpdate(table.handle(), repeated, rows));
  EXPECT_THAT(ToFloats(run.Run1(table)), ElementsAre(0, 0, 10, 20, 5, 6));
  run.RunNode(
      ops::ResourceScatterAdd(table.handle(), ops::Const(graph, std::vector<int32_t>{0, 2}), ops::Const(graph, 1.0f)));
  EXPECT_THAT(ToFloats(run.Run1(table)), ElementsAre(1, 1, 10, 20, 6, 7));
  run.RunNode(ops::ResourceScatterAdd(table.handle(), ops::Const(graph, Tensor(DType::kInt32, Shape{0})),
                                      ops::Const(graph, Tensor(DType::kFloat32, Shape{0, 2}))));
  EXPECT_THAT(ToFloats(run.Run1(table)), ElementsAre(1, 1, 10, 20, 6, 7));
}

TEST_F(StateTest, WholeUpdatesStillWorkOnceRowsWereRead) {
  const ops::Variable table(graph, Shape{2, 1}, initializers::Ones(), {.name = "table"});
  run.RunNode(table.initializer());
  run.Run1(table.Gather(ops::Const(graph, std::vector<int32_t>{0})));
  run.RunNode(table.AssignAdd(ops::Const(graph, std::vector<float>{1, 2}, Shape{2, 1})));
  EXPECT_THAT(ToFloats(run.Run1(table)), ElementsAre(2, 3));
  run.RunNode(table.initializer());
  run.RunNode(ops::ResourceScatterAdd(table.handle(), ops::Const(graph, std::vector<int32_t>{1}),
                                      ops::Const(graph, std::vector<float>{4}, Shape{1, 1})));
  EXPECT_THAT(ToFloats(run.Run1(table)), ElementsAre(1, 5));
  EXPECT_THAT(ToFloats(run.Run1(table.initial_value())), ElementsAre(1, 1));
}

TEST_F(StateTest, ShapeOfAVariable) {
  const ops::Variable table(graph, Shape{3, 2}, initializers::Zeros(), {.name = "table"});
  EXPECT_THAT(run.Run1(ops::VariableShape(table.handle())).ToVector<int32_t>(), ElementsAre(3, 2));
  EXPECT_THAT(run.Run1(ops::VariableShape(table.handle(), DType::kInt64)).ToVector<int64_t>(), ElementsAre(3, 2));
}

TEST_F(StateTest, VariablesAreSharedByNameAndClearedWithTheirContainer) {
  const Output one = ops::VarHandleOp(graph, DType::kFloat32, Shape{1}, "shared");
  const Output two = ops::VarHandleOp(graph, DType::kFloat32, Shape{1}, "shared");
  const Output other = ops::VarHandleOp(graph, DType::kFloat32, Shape{1}, "shared", "box");
  run.RunNode(ops::AssignVariableOp(one, Vector({8})));
  const Output initialized_two = ops::VarIsInitializedOp(two);
  EXPECT_THAT(ToFloats(run.Run1(ops::ReadVariableOp(two))), ElementsAre(8));
  EXPECT_FALSE(run.Run1(ops::VarIsInitializedOp(other)).scalar<bool>());
  run.device().resources().Clear("");
  EXPECT_FALSE(run.Run1(initialized_two).scalar<bool>());  // the kernel had cached the handle
}

TEST_F(StateTest, RefusesAnotherDTypeOrShape) {
  const ops::Variable w(graph, Shape{2}, initializers::Zeros(), {.name = "w"});
  EXPECT_THROW(w.Assign(Vector({1, 2, 3})), InvalidArgumentError);
  EXPECT_THROW(w.AssignAdd(ops::Const(graph, 1)), InvalidArgumentError);
  const Output fed = ops::Placeholder(graph, DType::kFloat32, Shape{Shape::kUnknownDim});
  Node* add = w.AssignAdd(fed);
  run.RunNode(w.initializer());
  const std::string message = MessageOf<InvalidArgumentError>([&] {
    run.RunNode(add, {{fed, Tensor::Vector<float>({1, 2, 3})}});
  });
  EXPECT_THAT(message, HasSubstr("[2]"));
  EXPECT_THAT(message, HasSubstr("[3]"));
  EXPECT_THAT(message, HasSubstr("'w'"));
  const Output clash = ops::VarHandleOp(graph, DType::kInt32, Shape{2}, "w");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { run.Run1(ops::VarIsInitializedOp(clash)); }),
              HasSubstr("the one in container 'localhost' is float32[2]"));
}

}  // namespace
}  // namespace cohort
