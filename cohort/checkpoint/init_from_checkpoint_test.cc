#include "cohort/checkpoint/init_from_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/checkpoint/checkpoint_reader.h"
#include "cohort/checkpoint/saver.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/partitioned_variables.h"
#include "cohort/runtime/session.h"

namespace cohort::train {
namespace {

using cohort::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

// The checkpoint has "w" [2, 1], "scope/b" [1] and "step", an int64.
class InitFromCheckpointTest : public ::testing::Test {
 protected:
  InitFromCheckpointTest() {
    // saver_test.cc of this program registers the ops.
    Graph graph;
    const ops::Variable w(graph, Tensor::FromValues<float>({3, 4}, Shape{2, 1}), {.name = "w"});
    const ops::Variable b(graph, Tensor::Vector<float>({5}), {.name = "scope/b"});
    const ops::Variable step(graph, Tensor::Scalar(int64_t{6}), {.name = "step", .trainable = false});
    Saver saver(graph);
    Session session(graph);
    session.Run(ops::GlobalVariablesInitializer(graph));
    prefix_ = saver.Save(session, folder_ / "model", 9);
  }
  Floats ValueOf(const ops::Variable& variable) {
    Session session(graph_);
    session.Run(ops::GlobalVariablesInitializer(graph_));
    session.Run(ops::LocalVariablesInitializer(graph_));
    return session.Run(variable.value()).ToVector<float>();
  }
  ops::Variable Zeros(const std::string& name, const Shape& shape, int64_t parts = 1) {
    return ops::GetVariable(graph_, name, shape,
                            {.initializer = initializers::Zeros(), .partitioner = [parts](const Shape& of, DType) {
                               std::vector<int64_t> all(static_cast<size_t>(of.rank()), 1);
                               all[0] = parts;
                               return all;
                             }});
  }
  const TempFolder folder_;
  std::string prefix_;
  Graph graph_;
};

TEST_F(InitFromCheckpointTest, AReaderListsAndLoads) {
  const CheckpointReader reader = LoadCheckpoint(folder_.path());
  EXPECT_EQ(reader.prefix(), prefix_);
  EXPECT_TRUE(reader.HasTensor("w"));
  EXPECT_FALSE(reader.HasTensor("v"));
  EXPECT_EQ(reader.GetVariableToDtypeMap().at("step"), DType::kInt64);
  EXPECT_EQ(reader.GetVariableToShapeMap().at("w"), (Shape{2, 1}));
  std::vector<std::string> names;
  for (const StoredShape& stored : ListVariables(prefix_)) names.push_back(stored.name);
  EXPECT_THAT(names, ElementsAre("scope/b", "step", "w"));
  EXPECT_EQ(LoadVariable(folder_.path(), "w").ToVector<float>(), (Floats{3, 4}));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { LoadVariable(prefix_, "v"); }), HasSubstr("v not found"));
  const TempFolder empty;
  EXPECT_THAT(MessageOf<NotFoundError>([&] { ListVariables(empty.path()); }), HasSubstr("there is none"));
}

TEST_F(InitFromCheckpointTest, NamesScopesAndVariables) {
  const ops::Variable a = Zeros("a", Shape{2, 1}), b = Zeros("new/b", Shape{1}), c = Zeros("c", Shape{1});
  const ops::Variable rest = Zeros("rest", Shape{1});
  InitFromCheckpoint(graph_, folder_.path(), {{"w", "a"}, {"scope/", "new/"}, {"scope/b", c}});
  EXPECT_EQ(ValueOf(a), (Floats{3, 4}));
  EXPECT_EQ(ValueOf(b), (Floats{5}));
  EXPECT_EQ(ValueOf(c), (Floats{5}));
  EXPECT_EQ(ValueOf(rest), (Floats{0}));
}

TEST_F(InitFromCheckpointTest, PartsBeginWithTheirRows) {
  const ops::Variable table = Zeros("table", Shape{2, 1}, 2), w = Zeros("w", Shape{2, 1}, 2);
  InitFromCheckpoint(graph_, prefix_, {{"w", table}});
  WarmStart(graph_, {.ckpt_to_initialize_from = prefix_, .vars_to_warm_start = "w$"});
  EXPECT_EQ(ValueOf(table), (Floats{3, 4}));
  EXPECT_EQ(ValueOf(w), (Floats{3, 4}));
}

TEST_F(InitFromCheckpointTest, WhatDoesNotFitIsNamed) {
  const ops::Variable a = Zeros("a", Shape{3, 1});
  const auto init = [&](const std::string& from, const AssignmentTarget& to) {
    InitFromCheckpoint(graph_, prefix_, {{from, to}});
  };
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { init("w", "a"); }), AllOf(HasSubstr("[3,1]"), HasSubstr("[2,1]")));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { init("v", a); }), HasSubstr("'v'"));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { init("w", "b"); }), HasSubstr("'b'"));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { init("scope/", "other/"); }), HasSubstr("'other/'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { init("scope", "a/"); }), HasSubstr("'a/'"));
}

TEST_F(InitFromCheckpointTest, WarmStartSelectsByExpression) {
  const ops::Variable w = Zeros("w", Shape{2, 1}), bias = Zeros("scope/bias", Shape{1});
  const ops::Variable step(graph_, Tensor::Scalar(int64_t{0}), {.name = "step", .trainable = false});
  // One expression selects among the trainable variables, so that `step` is left out.
  WarmStart(graph_,
            {.ckpt_to_initialize_from = folder_.path(), .var_name_to_prev_var_name = {{"scope/bias", "scope/b"}}});
  EXPECT_EQ(ValueOf(w), (Floats{3, 4}));
  EXPECT_EQ(ValueOf(bias), (Floats{5}));
  Session session(graph_);
  session.Run(ops::GlobalVariablesInitializer(graph_));
  EXPECT_EQ(session.Run(step.value()).scalar<int64_t>(), 0);
  WarmStart(graph_, {.ckpt_to_initialize_from = prefix_, .vars_to_warm_start = std::vector<std::string>{"st.*"}});
  Session other(graph_);
  other.Run(ops::GlobalVariablesInitializer(graph_));
  EXPECT_EQ(other.Run(step.value()).scalar<int64_t>(), 6);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                WarmStart(graph_, {.ckpt_to_initialize_from = prefix_,
                                   .vars_to_warm_start = "w",
                                   .var_name_to_prev_var_name = {{"scope/bias", "scope/b"}}});
              }),
              HasSubstr("'scope/bias'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { WarmStart(graph_, {.ckpt_to_initialize_from = prefix_, .vars_to_warm_start = "("}); }),
              HasSubstr("'('"));
}

}  // namespace
}  // namespace cohort::train
