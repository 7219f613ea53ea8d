// Graphs of TensorFlow 1, whose variables are references, run with the ops that take handles.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def.h"
#include "cohort/proto/graph.pb.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;

constexpr char kFloat[] = "attr { key: 'T' value { type: DT_FLOAT } } ";
constexpr char kVector[] = "shape { dim { size: 2 } }";

std::string NodeText(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                     const std::string& attrs) {
  std::string text = StrCat("node { name: '", name, "' op: '", op, "' ");
  for (const std::string& input : inputs) text += StrCat("input: '", input, "' ");
  return StrCat(text, attrs, "}\n");
}

std::string Constant(const std::string& name, const std::string& shape, const std::string& values) {
  return NodeText(
      name, "Const", {},
      StrCat("attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: DT_FLOAT "
             "tensor_shape { ",
             shape, " } ", values, " } } } "));
}

// w is [1, 2] at first; each step subtracts 0.5 [1, 1], and then adds [10, 20].
std::string TrainingGraph() {
  const std::string size = "dim { size: 2 }";
  const std::string locking = "attr { key: 'use_locking' value { b: true } } ";
  return StrCat(
      NodeText("w", "VariableV2", {},
               StrCat("attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { ", kVector,
                      " } } attr { key: 'container' value { s: '' } } attr { key: 'shared_name' value { s: '' } } ")),
      Constant("initial", size, "float_val: 1 float_val: 2"),
      NodeText("w/Assign", "Assign", {"w", "initial"},
               StrCat(kFloat, locking, "attr { key: 'validate_shape' value { b: true } } ")),
      NodeText("w/read", "Identity", {"w"}, StrCat(kFloat, "attr { key: '_class' value { list { s: 'loc:@w' } } } ")),
      Constant("rate", "", "float_val: 0.5"), Constant("gradient", size, "float_val: 1 float_val: 1"),
      NodeText("descend", "ApplyGradientDescent", {"w", "rate", "gradient"}, StrCat(kFloat, locking)),
      Constant("more", size, "float_val: 10 float_val: 20"),
      NodeText("add", "AssignAdd", {"descend", "more"}, StrCat(kFloat, locking)),
      NodeText("after", "Identity", {"add"}, kFloat), NodeText("twice", "AddV2", {"w", "add:0"}, kFloat),
      NodeText("is_there", "IsVariableInitialized", {"w"}, "attr { key: 'dtype' value { type: DT_FLOAT } } "));
}

TEST(ReferenceVariablesTest, TheGraphTrainsAsInTensorFlow) {
  RegisterAll();
  proto::GraphDef def;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(TrainingGraph(), &def));
  Graph graph;
  ImportGraphDef(graph, def.SerializeAsString());
  Session session(graph);
  const auto value = [&](const char* name) { return session.Run(graph.FindOutput(name)); };
  EXPECT_FALSE(value("is_there").scalar<bool>());
  session.Run(graph.FindNode("w/Assign"));
  EXPECT_TRUE(value("is_there").scalar<bool>());
  EXPECT_THAT(value("w/read").ToVector<float>(), ElementsAre(1, 2));
  session.Run(graph.FindNode("descend"));
  EXPECT_THAT(value("w/read").ToVector<float>(), ElementsAre(0.5f, 1.5f));
  EXPECT_THAT(value("after").ToVector<float>(), ElementsAre(10, 21));  // after both updates
  EXPECT_EQ(graph.FindNode("w")->op_name(), "VarHandleOp");
  EXPECT_EQ(value("twice").shape(), Shape{2});
}

// TensorFlow says of a MatMul whether it is a gradient, and of a handle to which variable it belongs.
TEST(ReferenceVariablesTest, WhereANodeComesFromIsNotKept) {
  RegisterAll();
  proto::GraphDef def;
  const std::string type = "attr { key: 'dtype' value { type: DT_FLOAT } } ";
  const std::string text = StrCat(
      Constant("m", "dim { size: 1 } dim { size: 1 }", "float_val: 3"),
      NodeText("square", "MatMul", {"m", "m"},
               StrCat(kFloat, "attr { key: 'grad_a' value { b: true } } attr { key: 'grad_b' value { b: false } } ")),
      NodeText(
          "v", "VarHandleOp", {},
          StrCat(type, "attr { key: 'shape' value { ", kVector, " } } attr { key: 'debug_name' value { s: 'v/' } } ")));
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def));
  const std::unique_ptr<Graph> graph = ParseGraphDef(def.SerializeAsString());
  Session session(*graph);
  EXPECT_THAT(session.Run(graph->FindOutput("square")).ToVector<float>(), ElementsAre(9));
}

TEST(ReferenceVariablesTest, AGraphThatIsImportedTwiceHasItsOwnVariables) {
  RegisterAll();
  proto::GraphDef def;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(TrainingGraph(), &def));
  Graph graph;
  for (const char* prefix : {"a", "b"}) ImportGraphDef(graph, def.SerializeAsString(), prefix);
  Session session(graph);
  EXPECT_EQ(graph.FindNode("a/w")->attr<std::string>("shared_name"), "a/w");
  session.Run(graph.FindNode("a/w/Assign"));
  EXPECT_TRUE(session.Run(graph.FindOutput("a/is_there")).scalar<bool>());
  EXPECT_FALSE(session.Run(graph.FindOutput("b/is_there")).scalar<bool>());
}

// A read for each input, each with all control inputs, would make a small file large.
TEST(ReferenceVariablesTest, ANodeReadsAVariableOnce) {
  RegisterAll();
  proto::GraphDef def;
  const std::string text =
      TrainingGraph() + NodeText("one", "NoOp", {}, "") + NodeText("two", "NoOp", {}, "") +
      NodeText("sum", "AddN", {"w", "w", "w", "^one", "^two"}, StrCat(kFloat, "attr { key: 'N' value { i: 3 } } "));
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def));
  const std::unique_ptr<Graph> graph = ParseGraphDef(def.SerializeAsString());
  const Node* const sum = graph->FindNode("sum");
  EXPECT_EQ(sum->input(0), sum->input(1));
  EXPECT_EQ(sum->input(0), sum->input(2));
  const Node* const read = sum->input(0).node;
  EXPECT_EQ(read->op_name(), "ReadVariableOp");
  ASSERT_EQ(read->control_inputs().size(), 1u);
  EXPECT_THAT(read->control_inputs()[0]->control_inputs(), ElementsAre(graph->FindNode("one"), graph->FindNode("two")));
  Session session(*graph);
  session.Run(graph->FindNode("w/Assign"));
  EXPECT_THAT(session.Run(graph->FindOutput("sum")).ToVector<float>(), ElementsAre(3, 6));
}

TEST(ReferenceVariablesTest, AnUpdateWithoutAFormForHandlesIsNamed) {
  RegisterAll();
  proto::GraphDef def;
  const std::string text = TrainingGraph() + NodeText("odd", "CountUpTo", {"w"}, kFloat);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def));
  try {
    ParseGraphDef(def.SerializeAsString());
    FAIL() << "expected an error";
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("CountUpTo"));
  }
}

}  // namespace
}  // namespace cohort
