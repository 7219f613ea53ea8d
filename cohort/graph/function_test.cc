#include "cohort/graph/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/graph_def.h"
#include "cohort/graph/testing/test_ops.h"
#include "cohort/proto/graph.pb.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Outputs = std::vector<Output>;

// x [?,3], y: x times a constant, and the second part of that.
Outputs Body(Graph& body, const Outputs& args) {
  const Output c = TestConst(body, Tensor::Vector<float>({1, 2, 3}), "c");
  const Output product = TestMul(args[0], c, "scope/product");
  Node* split = body.Op("TestSplit").Input(product).Control(c.node).Finish();
  return {split->output(1), args[1], split->output(0)};
}
const std::vector<FunctionArg> kArgs = {{DType::kFloat32, Shape{-1, 3}, "x"}, {DType::kInt64, Shape::UnknownRank()}};

TEST(FunctionTest, IsKeptByName) {
  Graph graph;
  const Function& function = graph.DefineFunction("f", kArgs, Body);
  EXPECT_EQ(function.args().size(), 2u);
  EXPECT_EQ(function.results().size(), 3u);
  EXPECT_EQ(function.args()[0].shape(), (Shape{-1, 3}));
  EXPECT_THAT(function.Signature(), HasSubstr("f(x: float32[?,3], arg1: int64<unknown>) -> (float32"));
  EXPECT_EQ(graph.num_nodes(), 0);
  EXPECT_EQ(graph.FindFunction("f").get(), &function);
  EXPECT_EQ(graph.FindFunction("g"), nullptr);
  EXPECT_THROW(graph.DefineFunction("f", kArgs, Body), AlreadyExistsError);
}

TEST(FunctionTest, RefusesWhatIsNoFunction) {
  Graph graph;
  Graph other;
  const Output foreign = TestInput(other, DType::kFloat32, Shape(), "z");
  EXPECT_THROW(graph.DefineFunction("", kArgs, Body), InvalidArgumentError);
  EXPECT_THROW(graph.DefineFunction("a b", kArgs, Body), InvalidArgumentError);
  EXPECT_THROW(graph.DefineFunction("f", kArgs, nullptr), InvalidArgumentError);
  EXPECT_THROW(graph.DefineFunction("f", {{}}, Body), InvalidArgumentError);
  EXPECT_THROW(graph.DefineFunction("f", kArgs, [&](Graph&, const Outputs&) { return Outputs{foreign}; }),
               InvalidArgumentError);
  EXPECT_THROW(graph.DefineFunction("f", kArgs, [](Graph&, const Outputs&) { return Outputs{{}}; }),
               InvalidArgumentError);
  EXPECT_TRUE(graph.functions().empty());
}

TEST(FunctionTest, BytesAreTensorFlowsFunctionDef) {
  Graph graph;
  proto::FunctionDef def;
  ASSERT_TRUE(def.ParseFromString(SerializeFunction(graph.DefineFunction("f", kArgs, Body))));
  EXPECT_EQ(def.signature().input_arg(0).name(), "x");
  EXPECT_EQ(def.signature().output_arg(1).type(), proto::DT_INT64);
  EXPECT_EQ(def.ret().at("result1"), "arg1");
  ASSERT_EQ(def.node_def_size(), 3);
  EXPECT_EQ(def.node_def(1).name(), "scope/product");
  EXPECT_EQ(def.node_def(1).input(0), "x");
  EXPECT_THAT(def.node_def(1).input(1), HasSubstr("c:output:0"));
  EXPECT_EQ(def.node_def(2).input(1), "^c");
  EXPECT_EQ(def.arg_attr().at(0).attr().at("_output_shapes").list().shape(0).dim(1).size(), 3);
}

TEST(FunctionTest, ComesBackFromBytes) {
  Graph graph;
  const Function& function = graph.DefineFunction("f", kArgs, Body);
  const std::shared_ptr<const Function> copy = ParseFunction(SerializeFunction(function));
  EXPECT_EQ(copy->Signature(), function.Signature());
  EXPECT_EQ(copy->graph().num_nodes(), function.graph().num_nodes());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(copy->results()[i].name(), function.results()[i].name());
  EXPECT_EQ(SerializeFunction(*copy), SerializeFunction(function));
}

TEST(FunctionTest, LibraryTravelsWithTheGraph) {
  Graph graph;
  TestConst(graph, Tensor::Scalar(1.0f), "one");
  graph.DefineFunction("f", kArgs, Body);
  graph.DefineFunction("identity", {kArgs[0]}, [](Graph&, const Outputs& args) { return args; });
  const std::string bytes = SerializeGraphDef(graph);
  const std::unique_ptr<Graph> copy = ParseGraphDef(bytes);
  EXPECT_EQ(copy->num_nodes(), 1);
  ASSERT_EQ(copy->functions().size(), 2u);
  EXPECT_EQ(SerializeGraphDef(*copy), bytes);
  ImportGraphDef(*copy, bytes, "again");  // functions that are there stay
  EXPECT_EQ(copy->functions().size(), 2u);
}

proto::FunctionDef ValidDef() {
  Graph graph;
  proto::FunctionDef def;
  def.ParseFromString(SerializeFunction(graph.DefineFunction("f", kArgs, Body)));
  return def;
}

std::string MessageFor(const proto::FunctionDef& def) {
  try {
    ParseFunction(def.SerializeAsString());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FunctionTest, WrongDefsAreTold) {
  proto::FunctionDef def = ValidDef();
  def.mutable_node_def(1)->set_input(1, "c:output:1");
  EXPECT_THAT(MessageFor(def), AllOf(HasSubstr("the function 'f' cannot be read"), HasSubstr("got 'c:output:1'")));
  for (const char* input : {"nobody", "nobody:output:0", "c:other:0", "c:output:x", "c:output:", ":", "c::0", ""}) {
    def.mutable_node_def(1)->set_input(1, input);
    EXPECT_THAT(MessageFor(def), HasSubstr("the function 'f' cannot be read")) << input;
  }
  def = ValidDef();
  def.mutable_ret()->erase("result0");
  EXPECT_THAT(MessageFor(def), HasSubstr("result 'result0' has no value"));
  def = ValidDef();
  def.mutable_signature()->mutable_input_arg(0)->set_type_attr("T");
  EXPECT_THAT(MessageFor(def), HasSubstr("argument 'x' has a dtype that the call decides"));
  def = ValidDef();
  def.mutable_node_def(0)->set_op("NoSuchOp");
  EXPECT_THAT(MessageFor(def), HasSubstr("NoSuchOp"));
  EXPECT_THROW(ParseFunction("\xff\xff"), InvalidArgumentError);
}

TEST(FunctionTest, AGraphKeepsWhatItCanOfALibrary) {
  proto::GraphDef graph_def;
  *graph_def.mutable_library()->add_function() = ValidDef();
  proto::FunctionDef* unknown = graph_def.mutable_library()->add_function();
  *unknown = ValidDef();
  unknown->mutable_signature()->set_name("unknown");
  unknown->mutable_node_def(0)->set_op("NoSuchOp");
  ::testing::internal::CaptureStderr();
  const std::unique_ptr<Graph> graph = ParseGraphDef(graph_def.SerializeAsString());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), AllOf(HasSubstr("'unknown'"), HasSubstr("left out")));
  EXPECT_EQ(graph->functions().size(), 1u);
}

}  // namespace
}  // namespace cohort
