#include "cohort/ops/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/reduction.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using testing::Interpreter;
using ::testing::IsEmpty;

std::vector<std::string> Names(const std::vector<VariableInfo*>& variables) {
  std::vector<std::string> names;
  for (const VariableInfo* variable : variables) names.push_back(variable->name);
  return names;
}

TEST(VariablesTest, NodesHaveTheNamesThatTensorFlowGives) {
  Graph graph;
  const NameScope scope(graph, "layer");
  const ops::Variable w(graph, Shape{2, 3}, initializers::GlorotUniform(), {.name = "w"});
  EXPECT_EQ(w.name(), "layer/w");
  EXPECT_EQ(w.handle().node->name(), "layer/w");
  EXPECT_EQ(w.handle().node->attr<std::string>("shared_name"), "layer/w");
  EXPECT_EQ(w.value().node->name(), "layer/w/Read/ReadVariableOp");
  EXPECT_EQ(w.initializer()->name(), "layer/w/Assign");
  EXPECT_EQ(w.is_initialized().node->name(), "layer/w/IsInitialized/VarIsInitializedOp");
  EXPECT_EQ(w.initial_value().node->name().rfind("layer/w/Initializer/", 0), 0u) << w.initial_value().name();
  EXPECT_EQ(w.shape(), (Shape{2, 3}));
  EXPECT_EQ(w.value().shape(), (Shape{2, 3}));
  EXPECT_EQ(w.dtype(), DType::kFloat32);
}

TEST(VariablesTest, NamesAreMadeUniqueUnlessTheyAreAskedFor) {
  Graph graph;
  const ops::Variable first(graph, Tensor::Scalar(1.0f), {.name = "w"});
  const ops::Variable second(graph, Tensor::Scalar(1.0f), {.name = "w"});
  EXPECT_EQ(second.name(), "w_1");
  const ops::Variable made = ops::GetVariable(graph, "kernel", Shape{3, 4});
  EXPECT_EQ(made.name(), "kernel");
  EXPECT_THROW(ops::GetVariable(graph, "kernel", Shape{3, 4}), AlreadyExistsError);
  EXPECT_THROW(ops::GetVariable(graph, "w", Shape{}), AlreadyExistsError);
  ops::GetVariable(graph, "1", Shape{});
  EXPECT_THROW(ops::GetVariable(graph, "1", Shape{}), AlreadyExistsError);  // would be "1_1"
  EXPECT_THAT(Names(graph.variables()), ElementsAre("w", "w_1", "kernel", "1"));
}

TEST(VariablesTest, OnlyTheHandleAndTheInitialValueAskTheDeviceFunction) {
  Graph graph;
  std::vector<std::string> asked;
  const DeviceScope scope(graph, [&](const NodeDraft& draft) -> std::string {
    asked.push_back(draft.op);
    if (draft.op != "VarHandleOp") return "/job:worker";
    EXPECT_EQ(draft.dtype, DType::kFloat32);
    EXPECT_EQ(draft.shape, (Shape{4}));
    return "/job:ps/task:1";
  });
  const ops::Variable w(graph, Shape{4}, initializers::Zeros(), {.name = "w"});
  EXPECT_THAT(asked, ElementsAre("Const", "Const", "Fill", "VarHandleOp"));
  for (const Node* node :
       {w.handle().node, w.value().node, w.initializer(), w.is_initialized().node, w.Read().node, w.AssignAdd(w)}) {
    EXPECT_EQ(node->device(), "/job:ps/task:1") << node->name();
  }
  EXPECT_EQ(w.initial_value().node->device(), "/job:worker");
  EXPECT_THAT(w.value().node->colocate_with(), ElementsAre("w"));
}

TEST(VariablesTest, MakingOneIgnoresControlDependencies) {
  Graph graph;
  const ControlDependencies after(graph, {ops::NoOp(graph)});
  const ops::Variable w(graph, Shape{4}, initializers::Zeros(), {.name = "w"});
  EXPECT_THAT(w.handle().node->control_inputs(), IsEmpty());
  EXPECT_THAT(w.value().node->control_inputs(), IsEmpty());
  EXPECT_EQ(w.Read().node->control_inputs().size(), 1u);
}

TEST(VariablesTest, CreatorsSeeTheRequestAndMayMakeSeveral) {
  Graph graph;
  std::vector<std::string> seen;
  const VariableCreatorScope mirror(graph, [&](const VariableMaker& next, const VariableRequest& request) {
    seen.push_back(request.name);
    VariableInfo* first = next(request);
    VariableRequest copy = request;
    copy.name = first->name + "/replica_1";
    next(copy);
    return first;
  });
  graph.set_seed(3);
  const ops::Variable w(graph, Shape{16}, initializers::RandomNormal(), {.name = "w"});
  EXPECT_THAT(seen, ElementsAre("w"));
  EXPECT_THAT(Names(graph.variables()), ElementsAre("w", "w/replica_1"));
  Interpreter run;
  run.RunNode(ops::GlobalVariablesInitializer(graph));
  const ops::Variable copy(graph.variables()[1]);
  EXPECT_EQ(run.Run1(w).ToVector<float>(), run.Run1(copy).ToVector<float>());
}

TEST(VariablesTest, InitialValuesFollowFromSeedAndNameAlone) {
  const auto values = [](int64_t graph_seed, const std::string& name, int64_t seed, int others) {
    Graph graph;
    graph.set_seed(graph_seed);
    for (int i = 0; i < others; ++i) ops::Const(graph, 1.0f);
    const ops::Variable w(graph, Shape{8}, initializers::RandomUniform(-1, 1, seed), {.name = name});
    return Interpreter().Run1(w.initial_value()).ToVector<float>();
  };
  const std::vector<float> base = values(1, "w", 0, 0);
  EXPECT_EQ(base, values(1, "w", 0, 5));
  EXPECT_NE(base, values(2, "w", 0, 0));
  EXPECT_NE(base, values(1, "v", 0, 0));
  EXPECT_NE(base, values(1, "w", 1, 0));
}

struct Moments {
  double mean, stddev, largest;
};
Moments MomentsOf(const ops::Initializer& initializer, const Shape& shape) {
  Graph graph;
  const std::vector<float> values =
      Interpreter().Run1(initializer({graph, shape, DType::kFloat32, "w"})).ToVector<float>();
  double sum = 0;
  double squares = 0;
  double largest = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  const double n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n)), largest};
}

TEST(InitializersTest, HaveTheSpreadThatTheirNameSays) {
  const Shape shape{200, 300};
  const double glorot = std::sqrt(2.0 / 500);
  const Moments uniform = MomentsOf(initializers::GlorotUniform(), shape);
  EXPECT_NEAR(uniform.mean, 0, 0.01 * glorot * 3);
  EXPECT_NEAR(uniform.stddev, glorot, 0.02 * glorot);
  EXPECT_LE(uniform.largest, std::sqrt(6.0 / 500));
  const double he = std::sqrt(2.0 / 200);
  const Moments normal = MomentsOf(initializers::HeNormal(), shape);
  EXPECT_NEAR(normal.stddev, he, 0.02 * he);
  EXPECT_LE(normal.largest, 2 * he / 0.8796);
  EXPECT_NEAR(MomentsOf(initializers::LecunNormal(), shape).stddev, std::sqrt(1.0 / 200), 0.002);
  const Moments shifted = MomentsOf(initializers::RandomNormal(3.0, 0.5), shape);
  EXPECT_NEAR(shifted.mean, 3.0, 0.02);
  EXPECT_NEAR(shifted.stddev, 0.5, 0.01);
  EXPECT_LE(MomentsOf(initializers::TruncatedNormal(0.0, 0.1), shape).largest, 0.2);
  EXPECT_NEAR(MomentsOf(initializers::GlorotNormal(), shape).stddev, glorot, 0.02 * glorot);
  const Moments he_uniform = MomentsOf(initializers::HeUniform(), shape);
  EXPECT_NEAR(he_uniform.stddev, he, 0.02 * he);
  EXPECT_LE(he_uniform.largest, std::sqrt(6.0 / 200));
  EXPECT_NEAR(MomentsOf(initializers::LecunUniform(), shape).stddev, std::sqrt(1.0 / 200), 0.002);
  const double scaled = std::sqrt(3.0 / 300);
  EXPECT_NEAR(
      MomentsOf(initializers::VarianceScaling(3.0, ops::FanMode::kFanOut, ops::Distribution::kUniform), shape).stddev,
      scaled, 0.02 * scaled);
}

TEST(InitializersTest, FansCountTheReceptiveField) {
  const auto fans = [](const Shape& shape) { return std::pair(ops::Fans(shape).in, ops::Fans(shape).out); };
  EXPECT_EQ(fans(Shape{}), std::pair(1.0, 1.0));
  EXPECT_EQ(fans(Shape{5}), std::pair(5.0, 5.0));
  EXPECT_EQ(fans(Shape{2, 3}), std::pair(2.0, 3.0));
  EXPECT_EQ(fans(Shape{3, 3, 16, 32}), std::pair(144.0, 288.0));
  EXPECT_EQ(fans(Shape{3, 3, 128, 1}), std::pair(1152.0, 9.0));  // a depthwise kernel, as TensorFlow counts it
}

TEST(InitializersTest, RefuseWhatTheyCannotFill) {
  Graph graph;
  EXPECT_THROW(ops::Variable(graph, Shape{Shape::kUnknownDim}, initializers::Zeros()), InvalidArgumentError);
  EXPECT_THROW(ops::Variable(graph, Shape{2}, initializers::RandomNormal(), {.dtype = DType::kInt32}),
               InvalidArgumentError);
  EXPECT_THROW(ops::Variable(graph, Shape{2}, initializers::Constant(Tensor::Vector<float>({1, 2, 3}))),
               InvalidArgumentError);
}

TEST(VariablesTest, ReportsWhatHasNoValueYet) {
  Graph graph;
  const Output none = ops::ReportUninitializedVariables(graph);
  const ops::Variable a(graph, Tensor::Scalar(1.0f), {.name = "a"});
  const ops::Variable b(graph, Tensor::Scalar(1.0f), {.name = "b", .local = true});
  const ops::Variable c(graph, Tensor::Scalar(1.0f), {.name = "c"});
  const Output report = ops::ReportUninitializedVariables(graph);
  Interpreter run;
  EXPECT_EQ(run.Run1(none).num_elements(), 0);
  EXPECT_THAT(run.Run1(report).ToVector<std::string>(), ElementsAre("a", "b", "c"));
  run.RunNode(ops::LocalVariablesInitializer(graph));
  EXPECT_THAT(run.Run1(report).ToVector<std::string>(), ElementsAre("a", "c"));
  run.RunNode(ops::GlobalVariablesInitializer(graph));
  EXPECT_THAT(run.Run1(report).ToVector<std::string>(), IsEmpty());
  EXPECT_FALSE(b.trainable());
}

TEST(VariablesTest, GradientsGatherAllUsesOfAHandle) {
  Graph graph;
  const ops::Variable w(graph, Tensor::FromValues<float>(std::vector<float>{1, 2, 3, 4}, Shape{2, 2}), {.name = "w"});
  // Once through the shared read, once through a read of its own.
  const Output loss = ops::Sum(ops::Add(ops::Mul(w, w.Read()), w));
  Interpreter run;
  run.RunNode(w.initializer());
  const Gradient dense = Gradients({loss}, {w.handle()})[0];
  EXPECT_THAT(run.Run1(dense.values).ToVector<float>(), ElementsAre(3, 5, 7, 9));
  // Rows alone stay rows; with a whole read they become dense.
  const Output indices = ops::Const(graph, std::vector<int32_t>{1, 1, 0, 1}, Shape{2, 2});
  const Output rows = ops::Sum(w.Gather(indices));
  const Gradient sparse = Gradients({rows}, {w.handle()})[0];
  ASSERT_TRUE(sparse.is_sparse());
  EXPECT_EQ(run.Run1(sparse.values).shape(), (Shape{4, 2}));
  EXPECT_THAT(run.Run1(sparse.indices).ToVector<int32_t>(), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(run.Run1(sparse.dense_shape).ToVector<int64_t>(), ElementsAre(2, 2));
  EXPECT_THAT(run.Run1(ToDense(sparse)).ToVector<float>(), ElementsAre(1, 1, 3, 3));
  const Gradient both = Gradients({ops::Add(rows, loss)}, {w.handle()})[0];
  EXPECT_THAT(run.Run1(ToDense(both)).ToVector<float>(), ElementsAre(4, 6, 10, 12));
}

TEST(VariablesTest, GatherUniqueLooksEachRowUpOnce) {
  Graph graph;
  const ops::Variable w(graph, Tensor::FromValues<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{3, 2}),
                        {.name = "w"});
  Interpreter run;
  run.RunNode(w.initializer());
  const Output indices = ops::Placeholder(graph, DType::kInt64, Shape{-1, 2});
  const Output rows = w.GatherUnique(indices);
  const Interpreter::Feeds feeds = {{indices, Tensor::FromValues(std::vector<int64_t>{2, 2, 0, 2}, Shape{2, 2})}};
  EXPECT_EQ(rows.shape(), (Shape{-1, 2, 2}));
  EXPECT_EQ(run.Run1(rows, feeds).ToVector<float>(), run.Run1(w.Gather(indices), feeds).ToVector<float>());
  const Output weights = ops::Const(graph, std::vector<float>{1, 10, 100, 1000}, Shape{2, 2, 1});
  const Gradient gradient = Gradients({ops::Sum(rows * weights)}, {w.handle()})[0];
  ASSERT_TRUE(gradient.is_sparse());
  EXPECT_THAT(run.Run1(gradient.indices, feeds).ToVector<int64_t>(), ElementsAre(2, 0));
  EXPECT_THAT(run.Run1(gradient.values, feeds).ToVector<float>(), ElementsAre(1011, 1011, 100, 100));
}

TEST(ControlTest, GroupsByDevice) {
  Graph graph;
  const auto on = [&](const char* device) {
    const DeviceScope scope(graph, device);
    return ops::NoOp(graph);
  };
  Node* a = on("/job:ps/task:0");
  Node* b = on("/job:ps/task:1");
  Node* c = on("/job:ps/task:0");
  Node* alone = ops::Group(graph, {a, c}, "alone");
  EXPECT_EQ(alone->device(), "/job:ps/task:0");
  EXPECT_THAT(alone->control_inputs(), ElementsAre(a, c));
  Node* all = ops::Group(graph, {a, b, c}, "all");
  ASSERT_EQ(all->control_inputs().size(), 2u);
  EXPECT_THAT(all->control_inputs()[0]->control_inputs(), ElementsAre(a, c));
  EXPECT_EQ(all->control_inputs()[1]->device(), "/job:ps/task:1");
  EXPECT_THAT(ops::Group(graph, {}, "none")->control_inputs(), IsEmpty());
}

TEST(ControlTest, AssertShowsItsData) {
  Graph graph;
  const Output condition = ops::Placeholder(graph, DType::kBool, Shape());
  Node* check =
      ops::Assert(condition, {ops::Const(graph, "limit"), ops::Const(graph, std::vector<int32_t>{1, 2, 3, 4})}, 2);
  Interpreter run;
  run.RunNode(check, {{condition, Tensor::Scalar(true)}});
  try {
    run.RunNode(check, {{condition, Tensor::Scalar(false)}});
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("assertion failed"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("limit"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("1, 2"));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("2, 3")));
  }
}

TEST(ControlTest, PrintPassesItsInputOnAndStopsAfterFirstN) {
  Graph graph;
  const Output x = ops::Const(graph, 7.0f);
  const Output printed = ops::Print(x, {x}, "x = ", /*first_n=*/2);
  Interpreter run;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run.Run1(printed).scalar<float>(), 7.0f);
  run.RunNode(ops::PrintV2(ops::Const(graph, "done")));
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("x = "), 0u);
  size_t lines = 0;
  for (const char c : text) lines += c == '\n';
  EXPECT_EQ(lines, 3u) << text;
  EXPECT_TRUE(text.ends_with("done\n")) << text;
}

}  // namespace
}  // namespace cohort
