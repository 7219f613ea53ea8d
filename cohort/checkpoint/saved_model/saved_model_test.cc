#include "cohort/checkpoint/saved_model/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cohort/checkpoint/saver.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/queues.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/step_clock.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"

namespace cohort::saved_model {
namespace {

using cohort::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<float> Numbers(const Tensor& tensor) {
  Graph graph;
  Session session(graph);
  return session.Run(ops::Cast(ops::Const(graph, tensor), DType::kFloat32)).ToVector<float>();
}

// y = x * w + c with w of a checkpoint and the local variable c = 1.
class SavedModelTest : public ::testing::Test {
 protected:
  SavedModelTest() {
    RegisterAll();
    Graph graph;
    const ops::Variable w(graph, Tensor::Vector<float>({2, 3}), {.name = "w"});
    Saver saver(graph);
    Session session(graph);
    session.Run(w.initializer());
    checkpoint_ = saver.Save(session, folder_ / "model.ckpt", 7);
  }
  // Adds the model to a graph whose w begins with other values than the checkpoint's.
  static std::map<std::string, SavedModelSignature> Model(Graph& graph) {
    const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "x");
    const ops::Variable w(graph, Tensor::Vector<float>({9, 9}), {.name = "w"});
    const ops::Variable c(graph, Tensor::Scalar(1.0f), {.name = "c", .local = true});
    return {{kDefaultSignature, {.inputs = {{"x", x}}, .outputs = {{"y", x * w + c}}}}};
  }
  static Tensor Ones() { return Tensor::FromValues<float>({1, 1}, Shape{1, 2}); }

  const TempFolder folder_;
  std::string checkpoint_;
};

TEST_F(SavedModelTest, WritesLayerNormInOpsOfTensorFlow) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    Graph graph;
    const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "x");
    const DType wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
    const Output scale = ops::Cast(ops::Const(graph, std::vector<float>{2, 3}), wide);
    const Output other = ops::Const(graph, 2.0f, "norm/Mean");  // a name that a small op might have taken
    const Output norm = ops::LayerNorm(ops::Cast(x, dtype), scale, scale, 0.5f, "norm");
    const Output next = ops::LayerNorm(ops::Cast(norm.node->output(1), dtype) * norm, scale, scale);
    const std::map<std::string, Output> outputs = {{"y", norm},
                                                   {"mean", norm.node->output(1)},
                                                   {"inverse", norm.node->output(2)},
                                                   {"next", next},
                                                   {"other", other}};
    WriteSavedModel(graph, {{kDefaultSignature, {.inputs = {{"x", x}}, .outputs = outputs}}}, "", folder_.path());
    const SavedModel model(folder_.path());
    // TensorFlow wants the number of the output in the names of a signature.
    EXPECT_THAT(ReadFile(folder_.path() + "/saved_model.pb"), HasSubstr("norm_/Squeeze:0"));
    for (const Node* node : model.graph().nodes()) EXPECT_NE(node->op().name(), "LayerNorm") << node->name();
    const Tensor rows = Tensor::FromValues<float>({1, 3, -2, 0.5}, Shape{2, 2});
    std::map<std::string, Tensor> got = model.Run({{"x", rows}});
    Session session(graph);
    for (const auto& [name, output] : outputs) {
      const std::vector<Tensor> values = session.Run({{x, rows}}, {output});
      ASSERT_EQ(got.at(name).dtype(), values[0].dtype());
      EXPECT_EQ(got.at(name).shape(), values[0].shape());
      // Both round once to the dtype. Sums may be in another order.
      EXPECT_THAT(Numbers(got.at(name)), Pointwise(FloatNear(1e-5f), Numbers(values[0]))) << name;
    }
  }
}

TEST_F(SavedModelTest, WritesVocabulariesAsSortedLists) {
  Graph graph;
  const Output words = ops::Placeholder(graph, DType::kString, Shape{-1, 2}, "words");
  const Output ids = ops::Placeholder(graph, DType::kInt64, Shape{-1}, "ids");
  const Tensor colours = Tensor::Vector(std::vector<std::string>{"red", "", "green", "blue"});
  const Tensor numbers = Tensor::Vector(std::vector<int64_t>{7, -3, 0});
  const std::map<std::string, Output> outputs = {
      {"word", ops::VocabularyLookup(words, colours, -5)},
      {"id", ops::VocabularyLookup(ids, numbers, std::nullopt)},
      {"nothing", ops::VocabularyLookup(ids, Tensor(DType::kInt64, Shape{0}), 9)}};
  WriteSavedModel(graph, {{kDefaultSignature, {.inputs = {{"words", words}, {"ids", ids}}, .outputs = outputs}}}, "",
                  folder_.path());
  const SavedModel model(folder_.path());
  const Tensor asked = Tensor::FromValues(std::vector<std::string>{"blue", "hat", "", "red"}, Shape{2, 2});
  std::map<std::string, Tensor> got =
      model.Run({{"words", asked}, {"ids", Tensor::Vector(std::vector<int64_t>{0, 7, -3, 7})}});
  EXPECT_EQ(got.at("word").shape(), (Shape{2, 2}));
  EXPECT_THAT(got.at("word").ToVector<int64_t>(), ElementsAre(3, -5, 1, 0));
  EXPECT_THAT(got.at("id").ToVector<int64_t>(), ElementsAre(2, 0, 1, 0));
  EXPECT_THAT(got.at("nothing").ToVector<int64_t>(), ElementsAre(9, 9, 9, 9));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Run({{"words", asked}, {"ids", Tensor::Vector(std::vector<int64_t>{7, 8})}});
              }),
              HasSubstr("is not in [0, 3)"));
}

// TensorFlow has the op, but cannot run it between a convolution and a Tanh.
TEST_F(SavedModelTest, WritesBatchNormOfInferenceInSmallOps) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    Graph graph;
    const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 1, 1, 2}, "x");
    const auto channels = [&](std::vector<float> values) { return ops::Const(graph, values); };
    const ops::BatchNorm norm =
        ops::FusedBatchNorm(ops::Cast(x, dtype), channels({2, 3}), channels({1, 0}), channels({0.5, -1}),
                            channels({4, 0.25}), {.epsilon = 0.1f, .is_training = false}, "norm");
    const std::map<std::string, Output> outputs = {{"y", norm.y}, {"mean", norm.y.node->output(1)}};
    const std::string dir = folder_ / StrCat(dtype);
    CreateDirectories(dir);
    WriteSavedModel(graph, {{kDefaultSignature, {.inputs = {{"x", x}}, .outputs = outputs}}}, "", dir);
    const SavedModel model(dir);
    for (const Node* node : model.graph().nodes()) EXPECT_NE(node->op().name(), "FusedBatchNormV3") << node->name();
    const Tensor rows = Tensor::FromValues<float>({1, 3, -2, 0.5}, Shape{2, 1, 1, 2});
    std::map<std::string, Tensor> got = model.Run({{"x", rows}});
    Session session(graph);
    for (const auto& [name, output] : outputs) {
      const std::vector<Tensor> values = session.Run({{x, rows}}, {output});
      EXPECT_EQ(got.at(name).shape(), values[0].shape());
      const float near = dtype == DType::kFloat32 ? 1e-5f : 0.1f;
      EXPECT_THAT(Numbers(got.at(name)), Pointwise(FloatNear(near), Numbers(values[0]))) << name;
    }
  }
}

TEST_F(SavedModelTest, CarriesTheValuesOfTheCheckpoint) {
  Graph graph;
  WriteSavedModel(graph, Model(graph), checkpoint_, folder_.path());
  const SavedModel loaded(folder_.path());
  EXPECT_THAT(loaded.Run({{"x", Ones()}}).at("y").ToVector<float>(), ElementsAre(3, 4));
  EXPECT_EQ(loaded.signatures().at(kDefaultSignature).method_name, kPredictMethod);
  EXPECT_EQ(loaded.signatures().at(kDefaultSignature).inputs.at("x").shape(), (Shape{-1, 2}));
}

// The variable "cut" has two parts, which are saved; itself it is listed as a local variable.
TEST_F(SavedModelTest, AVariableOfPartsIsExported) {
  const auto model = [](Graph& graph) {
    std::vector<VariableInfo*> parts;
    for (const float begin : {1.0f, 5.0f}) {
      const Tensor rows = Tensor::FromValues<float>({begin, begin + 1, begin + 2, begin + 3}, Shape{2, 2});
      parts.push_back(ops::Variable(graph, rows, {.name = StrCat("cut/part_", parts.size())}).info());
    }
    VariableRequest request;
    request.name = "cut";
    request.shape = Shape{4, 2};
    const ops::Variable cut(ops::MakeVariableOfParts(graph, request, parts));
    const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "x");
    return std::map<std::string, SavedModelSignature>{
        {kDefaultSignature, {.inputs = {{"x", x}}, .outputs = {{"y", x + ops::Sum(cut, 0)}}}}};
  };
  std::string checkpoint;
  {
    Graph graph;
    model(graph);
    Saver saver(graph);
    Node* init = ops::GlobalVariablesInitializer(graph);
    Session session(graph);
    session.Run(init);
    checkpoint = saver.Save(session, folder_ / "parts.ckpt", 1);
  }
  Graph graph;
  WriteSavedModel(graph, model(graph), checkpoint, folder_.path());
  const SavedModel loaded(folder_.path());
  EXPECT_THAT(loaded.Run({{"x", Ones()}}).at("y").ToVector<float>(), ElementsAre(1 + 3 + 5 + 7 + 1, 2 + 4 + 6 + 8 + 1));
}

TEST_F(SavedModelTest, EqualModelsGiveEqualFiles) {
  for (const char* name : {"a", "b"}) {
    CreateDirectories(folder_ / name);
    Graph graph;
    WriteSavedModel(graph, Model(graph), checkpoint_, folder_ / name);
  }
  for (const char* file : {"/saved_model.pb", "/variables/variables.index"}) {
    EXPECT_EQ(ReadFile((folder_ / "a") + file), ReadFile((folder_ / "b") + file)) << file;
  }
}

TEST_F(SavedModelTest, AnOpWithoutTensorFlowFormIsNamed) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{2}, "x");
  Node* own = ops::FIFOQueue(graph, {DType::kFloat32}).Reset("mine");
  const ControlDependencies after(graph, {own});
  const Output y = ops::Identity(x);
  EXPECT_THAT(
      MessageOf<UnimplementedError>([&] {
        WriteSavedModel(graph, {{"f", {.inputs = {{"x", x}}, .outputs = {{"y", y}}}}}, checkpoint_, folder_.path());
      }),
      AllOf(HasSubstr("QueueReset"), HasSubstr("\"mine\"")));
  EXPECT_FALSE(FileExists(folder_ / "saved_model.pb"));
}

TEST_F(SavedModelTest, AnOpWithoutTensorFlowFormInAFunctionIsNamed) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{2}, "x");
  const auto same = [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{ops::Identity(in[0])}; };
  const auto counting = [](Graph& body, const std::vector<Output>& in) {
    const ControlDependencies after(body, {ops::StepClockTakeStaleness(ops::StepClock(body), "mine").node});
    return std::vector<Output>{ops::Identity(in[0])};
  };
  const Output y = ops::If(ops::Sum(x) > 0.0f, {x}, counting, same)[0];
  EXPECT_THAT(
      MessageOf<UnimplementedError>([&] {
        WriteSavedModel(graph, {{"f", {.inputs = {{"x", x}}, .outputs = {{"y", y}}}}}, checkpoint_, folder_.path());
      }),
      AllOf(HasSubstr("StepClock"), HasSubstr("in the function \"")));
}

TEST_F(SavedModelTest, AVariableThatTheCheckpointLacksIsNamed) {
  Graph graph;
  const ops::Variable other(graph, Tensor::Scalar(1.0f), {.name = "other"});
  EXPECT_THAT(
      MessageOf<NotFoundError>([&] {
        WriteSavedModel(graph, {{"f", {.outputs = {{"y", ops::Identity(other)}}}}}, checkpoint_, folder_.path());
      }),
      AllOf(HasSubstr("other"), HasSubstr(checkpoint_)));
}

TEST_F(SavedModelTest, BadCallsAreNamed) {
  Graph graph;
  WriteSavedModel(graph, Model(graph), checkpoint_, folder_.path());
  const SavedModel loaded(folder_.path());
  EXPECT_THAT(MessageOf<NotFoundError>([&] {
                loaded.Run({{"x", Ones()}}, "other");
              }),
              AllOf(HasSubstr("other"), HasSubstr(kDefaultSignature)));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                loaded.Run({{"z", Ones()}});
              }),
              AllOf(HasSubstr("inputs x"), HasSubstr("got z")));
  EXPECT_THROW(loaded.Run({}), InvalidArgumentError);
  EXPECT_THAT(MessageOf<NotFoundError>([&] { SavedModel(folder_.path(), {"train"}); }),
              AllOf(HasSubstr("{train}"), HasSubstr("{serve}")));
  EXPECT_THROW(SavedModel(folder_ / "nowhere"), NotFoundError);
}

TEST_F(SavedModelTest, DamagedFilesAreNamed) {
  Graph graph;
  WriteSavedModel(graph, Model(graph), checkpoint_, folder_.path());
  const std::string path = folder_ / "saved_model.pb", bytes = ReadFile(path);
  WriteFileAtomically(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(MessageOf<DataLossError>([&] { SavedModel(folder_.path()); }), HasSubstr(path));
  WriteFileAtomically(path, bytes);
  std::filesystem::resize_file(folder_ / "variables/variables.data-00000-of-00001", 2);
  EXPECT_THROW(SavedModel(folder_.path()), DataLossError);
}

}  // namespace
}  // namespace cohort::saved_model
