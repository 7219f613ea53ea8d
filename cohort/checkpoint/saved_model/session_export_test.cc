// SavedModels that are written from a session. tests/interop/test_saved_model.py has TensorFlow load them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cohort/checkpoint/saved_model/saved_model.h"
#include "cohort/checkpoint/saver.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/local_cluster.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/unary.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"
#include "cohort/train/optimizer.h"

namespace cohort::saved_model {
namespace {

using cohort::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x * w + b * c. b begins with 1, c is local. "unused" is needed by nothing.
struct Model {
  Graph graph;
  Output x, y;
  ops::Variable w, b, unused;
  Node* init = nullptr;

  explicit Model(const std::string& device = "") {
    RegisterAll();
    x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "x");
    const DeviceScope scope(graph, device);
    w = ops::Variable(graph, Tensor::Vector<float>({2, 3}), {.name = "w"});
    b = ops::Variable(graph, Tensor::Scalar(1.0f), {.name = "b"});
    unused = ops::Variable(graph, Tensor::Scalar(4.0f), {.name = "unused"});
    const ops::Variable c(graph, Tensor::Scalar(10.0f), {.name = "c", .local = true});
    y = x * w + b * c;
    init = ops::GlobalVariablesInitializer(graph);
  }
  void Export(Session& session, const std::string& dir) const { SimpleSave(session, dir, {{"x", x}}, {{"y", y}}); }
};

std::vector<float> Predictions(const std::string& dir) {
  return SavedModel(dir).Run({{"x", Tensor::FromValues<float>({1, 1}, Shape{1, 2})}}).at("y").ToVector<float>();
}

TEST(SessionExportTest, HasTheValuesOfTheSession) {
  const TempFolder folder;
  Model model;
  Node* change = model.w.AssignAdd(ops::Const(model.graph, std::vector<float>{0.5, 0.5}));
  // The saver's nodes do not get into the file.
  const Saver saver(model.graph);
  model.graph.Finalize();
  Session session(model.graph);
  session.Run({}, {}, {model.init});
  const int nodes = model.graph.num_nodes();
  model.Export(session, folder / "first");
  session.Run(change);
  model.Export(session, folder / "a/b/second/");
  EXPECT_EQ(model.graph.num_nodes(), nodes);
  EXPECT_THAT(Predictions(folder / "first"), ElementsAre(12, 13));
  EXPECT_THAT(Predictions(folder / "a/b/second"), ElementsAre(12.5, 13.5));
  const BundleReader values(folder / "first/variables/variables");
  EXPECT_TRUE(values.Has("w"));
  EXPECT_TRUE(values.Has("b"));
  EXPECT_EQ(values.tensors().size(), 2u) << "only variables that the signature needs are written";
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().string().find(".tempstate"), std::string::npos) << entry.path();
  }
}

TEST(SessionExportTest, HasTheValuesOfParameterServers) {
  const TempFolder folder;
  RegisterAll();
  ServerOptions server;
  server.token = "session-export-test";
  server.config.intra_op_parallelism_threads = 1;
  distribute::LocalCluster cluster({.workers = 1, .ps = 1, .server = server});
  Model model("/job:ps/task:0");
  const Output loss = ops::Mean(ops::Square(model.y));
  train::AdamOptimizer optimizer(0.1);
  Node* step = optimizer.Minimize(loss);
  Node* init = ops::GlobalVariablesInitializer(model.graph);
  Node* local = ops::LocalVariablesInitializer(model.graph);
  const Tensor ones = Tensor::FromValues<float>({1, 1}, Shape{1, 2});
  std::vector<float> trained;
  {
    Session session(model.graph, cluster.server("worker", 0).Target());
    session.Run({}, {}, {init, local});
    for (int i = 0; i < 3; ++i) session.Run({{model.x, ones}}, {}, {step});
    trained = session.Run({{model.x, ones}}, {model.y})[0].ToVector<float>();
    model.Export(session, folder / "model");
  }
  EXPECT_THAT(Predictions(folder / "model"), ::testing::Pointwise(::testing::FloatEq(), trained));
  EXPECT_NE(trained[0], 12);
  EXPECT_EQ(BundleReader(folder / "model/variables/variables").tensors().size(), 2u);
}

// The initial value of a local variable needs another variable, which the signature itself does not read.
TEST(SessionExportTest, WhatALocalVariableBeginsWithIsWritten) {
  const TempFolder folder;
  RegisterAll();
  Graph graph;
  const ops::Variable w(graph, Tensor::Vector<float>({1, 2}), {.name = "w"});
  const ops::Variable copy(graph, w.value(), {.name = "copy", .local = true});
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "x");
  const Output y = x + copy;
  Session session(graph);
  session.Run({}, {}, {ops::GlobalVariablesInitializer(graph)});
  session.Run(w.AssignAdd(ops::Const(graph, std::vector<float>{1, 1})));
  SimpleSave(session, folder / "model", {{"x", x}}, {{"y", y}});
  EXPECT_THAT(Predictions(folder / "model"), ElementsAre(3, 4));
}

TEST(SessionExportTest, HasSeveralSignaturesAndTags) {
  const TempFolder folder;
  Model model;
  Session session(model.graph);
  session.Run({}, {}, {model.init});
  Save(session, folder / "model",
       {{"sum", {.inputs = {{"x", model.x}}, .outputs = {{"y", model.y}}}}, {"weights", {.outputs = {{"w", model.w}}}}},
       {.tags = {"serve", "gpu"}});
  const SavedModel loaded(folder / "model", {"gpu", "serve"});
  EXPECT_THAT(loaded.Run({}, "weights").at("w").ToVector<float>(), ElementsAre(2, 3));
  EXPECT_EQ(loaded.signatures().size(), 2u);
  EXPECT_THROW(SavedModel(folder / "model"), NotFoundError);
}

TEST(SessionExportTest, AModelWithoutVariables) {
  const TempFolder folder;
  RegisterAll();
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "x");
  const Output y = x * 2.0f;
  Session session(graph);
  SimpleSave(session, folder / "model", {{"x", x}}, {{"y", y}});
  EXPECT_THAT(Predictions(folder / "model"), ElementsAre(2, 2));
}

TEST(SessionExportTest, WhatIsWrongIsNamedAndNothingIsLeft) {
  const TempFolder folder;
  Model model;
  Session session(model.graph);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { model.Export(session, folder / "early"); }),
              HasSubstr("uninitialized value"));
  session.Run({}, {}, {model.init});
  CreateDirectories(folder / "empty");
  model.Export(session, folder / "empty");
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { model.Export(session, folder / "empty"); }),
              HasSubstr(folder / "empty"));
  EXPECT_THAT(Predictions(folder / "empty"), ElementsAre(12, 13));
  WriteFileAtomically(folder / "file", "text");
  EXPECT_THROW(model.Export(session, folder / "file"), AlreadyExistsError);
  EXPECT_THROW(model.Export(session, ""), InvalidArgumentError);
  Graph other;
  const Output stranger = ops::Placeholder(other, DType::kFloat32, Shape{2}, "x");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                SimpleSave(session, folder / "bad", {{"x", stranger}}, {{"y", model.y}});
              }),
              AllOf(HasSubstr("serving_default"), HasSubstr("\"x\"")));
  EXPECT_THROW(Save(session, folder / "bad", {}), InvalidArgumentError);
  EXPECT_THROW(Save(session, folder / "bad", {{"f", {.outputs = {{"y", model.y}}}}}, {.tags = {}}),
               InvalidArgumentError);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(left, ::testing::UnorderedElementsAre("empty", "file"));
}

}  // namespace
}  // namespace cohort::saved_model
