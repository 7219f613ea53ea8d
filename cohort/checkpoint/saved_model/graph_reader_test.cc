// Graphs as TensorFlow 2 writes them: signatures and the restore op are calls of functions. The graphs are small and
// made by hand; tests/interop/test_saved_model_tf2.py loads those of TensorFlow and Keras.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "cohort/checkpoint/saved_model/graph_reader_internal.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/function.h"
#include "cohort/proto/saved_model.pb.h"
#include "cohort/registration.h"

namespace cohort::saved_model {
namespace {

using cohort::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- texts of messages ---------------------------------------------------------------------------------------------

std::string Attr(const std::string& name, const std::string& value) {
  return StrCat("attr { key: '", name, "' value { ", value, " } } ");
}
const std::string kFloat = Attr("T", "type: DT_FLOAT");

std::string NodeText(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                     const std::string& attrs) {
  std::string text = StrCat("name: '", name, "' op: '", op, "' ", attrs);
  for (const std::string& input : inputs) text += StrCat("input: '", input, "' ");
  return text;
}
std::string InGraph(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                    const std::string& attrs = "") {
  return StrCat("node { ", NodeText(name, op, inputs, attrs), "} ");
}
std::string InBody(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& attrs = "") {
  return StrCat("node_def { ", NodeText(name, op, inputs, attrs), "} ");
}
std::string Calls(const std::string& function) {
  return StrCat(Attr("f", StrCat("func { name: '", function, "' }")), Attr("config_proto", "s: 'x'"));
}
std::string Float(float value) {
  return StrCat(Attr("dtype", "type: DT_FLOAT"),
                Attr("value", StrCat("tensor { dtype: DT_FLOAT tensor_shape { } float_val: ", value, " }")));
}
std::string Input(const std::string& name) {
  return InGraph(name, "Placeholder", {},
                 Attr("dtype", "type: DT_FLOAT") + Attr("shape", "shape { dim { size: -1 } }"));
}
std::string Variable(const std::string& name) {
  return InGraph(name, "VarHandleOp", {},
                 StrCat(Attr("dtype", "type: DT_FLOAT"), Attr("shape", "shape { }"),
                        Attr("shared_name", "s: '" + name + "'"), Attr("debug_name", "s: 'other/'")));
}

// A function. An argument or a result is "name" or, for a handle, "*name". `body` has its nodes, "ret" and so on.
std::string FunctionText(const std::string& name, const std::vector<std::string>& args,
                         const std::vector<std::string>& results, const std::string& body) {
  std::string text = StrCat("function { signature { name: '", name, "' ");
  const auto add = [&text](const char* field, const std::string& arg) {
    const bool handle = arg[0] == '*';
    text += StrCat(field, " { name: '", handle ? arg.substr(1) : arg, "' type: ", handle ? "DT_RESOURCE" : "DT_FLOAT",
                   " } ");
  };
  for (const std::string& arg : args) add("input_arg", arg);
  for (const std::string& result : results) add("output_arg", result);
  return StrCat(text, "} ", body, "} ");
}
std::string Ret(const std::string& name, const std::string& value) {
  return StrCat("ret { key: '", name, "' value: '", value, "' } ");
}
std::string Effect(const std::string& node) { return StrCat("control_ret { key: '", node, "' value: '", node, "' } "); }
const std::string kReads = Attr("dtype", "type: DT_FLOAT");

// A SavedModel with a signature "f" from x to y.
std::string SavedBytes(const std::string& nodes, const std::string& functions, const std::string& y = "call:0",
                       const std::string& more = "") {
  const std::string text =
      StrCat("saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def { ", nodes,
             "library { ", functions,
             "} } signature_def { key: 'f' value { inputs { key: 'x' value { name: 'x:0' } } outputs { key: 'y' value "
             "{ name: '",
             y, "' } } } } ", more, "}");
  proto::SavedModel model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model.SerializeAsString();
}

class GraphReaderTest : public ::testing::Test {
 protected:
  GraphReaderTest() { RegisterAll(); }

  // Loads the model and returns the output of "f" for [1, 2].
  std::vector<float> Run(const std::string& model) const {
    WriteFileAtomically(folder_ / "saved_model.pb", model);
    return SavedModel(folder_.path()).Run({{"x", Tensor::Vector<float>({1, 2})}}, "f").at("y").ToVector<float>();
  }
  template <typename Error>
  static std::string WhyNot(const std::string& nodes, const std::string& functions, const std::string& y = "call:0") {
    return MessageOf<Error>([&] {
      Graph graph;
      ReadSavedModelGraph(SavedBytes(Input("x") + nodes, functions, y), "folder", {"serve"}, graph);
    });
  }

  const TempFolder folder_;
};

const std::string kDouble =
    FunctionText("double", {"t"}, {"r"},
                 InBody("two", "Const", {}, Float(2)) + InBody("product", "Mul", {"t", "two:output:0"}, kFloat) +
                     Ret("r", "product:z:0"));

const std::string kCase =
    StrCat(Attr("Tin", "list { type: DT_FLOAT }"), Attr("Tout", "list { type: DT_FLOAT }"),
           Attr("branches", "list { func { name: 'double' } func { name: 'minus' } func { name: 'same' } }"));

// ---- graphs that load ----------------------------------------------------------------------------------------------

TEST_F(GraphReaderTest, CallsAreReplacedByTheFunctions) {
  const std::string twice = FunctionText("twice", {"t"}, {"r", "s"},
                                         InBody("a", "PartitionedCall", {"t"}, Calls("double")) +
                                             InBody("b", "StatefulPartitionedCall", {"a:output:0"}, Calls("double")) +
                                             Ret("r", "b:output:0") + Ret("s", "t"));
  const std::string nodes = Input("x") + InGraph("call", "StatefulPartitionedCall", {"x"}, Calls("twice")) +
                            InGraph("again", "PartitionedCall", {"call"}, Calls("double")) +
                            InGraph("sum", "AddV2", {"again", "call:1"}, kFloat);
  const std::string model = SavedBytes(nodes, kDouble + twice, "sum:0");
  EXPECT_THAT(Run(model), ElementsAre(9, 18));
  Graph graph;
  const ReadGraph read = ReadSavedModelGraph(model, "folder", {"serve"}, graph);
  EXPECT_EQ(read.signatures.at("f").outputs.at("y").name(), "sum:0");
  EXPECT_NE(graph.FindNode("call/a/product"), nullptr);
  EXPECT_TRUE(graph.functions().empty());
  for (const Node* node : graph.nodes()) EXPECT_EQ(node->op_name().find("PartitionedCall"), std::string::npos);
}

TEST_F(GraphReaderTest, NamesThatAreTakenGetANumber) {
  const std::string nodes = Input("x") + InGraph("call/two", "Const", {}, Float(5)) +
                            InGraph("call", "PartitionedCall", {"x"}, Calls("double")) +
                            InGraph("sum", "AddV2", {"call", "call/two"}, kFloat);
  EXPECT_THAT(Run(SavedBytes(nodes, kDouble, "sum:0")), ElementsAre(7, 9));
}

// The init op sets v to 1, each run adds 2 and returns x * v. Nothing but the control outputs of the functions says
// that the updates are needed.
TEST_F(GraphReaderTest, EffectsHappenInOrder) {
  const std::string functions =
      FunctionText("init", {"*v"}, {},
                   InBody("one", "Const", {}, Float(1)) +
                       InBody("set", "AssignVariableOp", {"v", "one:output:0"}, kReads) + Effect("set")) +
      FunctionText("add", {"*v", "t"}, {"r"},
                   InBody("two", "Const", {}, Float(2)) +
                       InBody("step", "AssignAddVariableOp", {"v", "two:output:0"}, kReads) + Effect("step") +
                       Ret("r", "t")) +
      FunctionText("scale", {"t", "*v"}, {"r"},
                   InBody("read", "ReadVariableOp", {"v"}, kReads) +
                       InBody("product", "Mul", {"t", "read:value:0"}, kFloat) + Effect("read") +
                       Ret("r", "product:z:0")) +
      FunctionText("all", {"t", "*v"}, {"r"},
                   InBody("first", "StatefulPartitionedCall", {"t", "v"}, Calls("scale")) +
                       InBody("add", "StatefulPartitionedCall", {"v", "t", "^first"}, Calls("add")) +
                       InBody("second", "StatefulPartitionedCall", {"t", "v", "^add"}, Calls("scale")) +
                       InBody("both", "Sub", {"second:output:0", "first:output:0"}, kFloat) + Ret("r", "both:z:0") +
                       Effect("add"));
  const std::string nodes =
      Variable("v") + Input("x") + InGraph("call", "StatefulPartitionedCall", {"x", "v"}, Calls("all")) +
      InGraph("only_add", "StatefulPartitionedCall", {"v", "x"}, Calls("add")) +
      InGraph("start", "StatefulPartitionedCall", {"v"}, Calls("init")) + InGraph("init", "NoOp", {"^start"});
  const std::string init =
      "signature_def { key: '__saved_model_init_op' value { outputs { key: '__saved_model_init_op' value { name: "
      "'init' } "
      "} } } signature_def { key: 'read' value { inputs { key: 'x' value { name: 'x:0' } } outputs { key: 'y' value { "
      "name: "
      "'only_add:0' } } } }";
  WriteFileAtomically(folder_ / "saved_model.pb", SavedBytes(nodes, functions, "call:0", init));
  const SavedModel model(folder_.path());
  EXPECT_EQ(model.signatures().size(), 2U);
  const std::map<std::string, Tensor> x = {{"x", Tensor::Vector<float>({1, 2})}};
  EXPECT_THAT(model.Run(x, "f").at("y").ToVector<float>(), ElementsAre(2, 4));     // v is 1, then 3
  EXPECT_THAT(model.Run(x, "read").at("y").ToVector<float>(), ElementsAre(1, 2));  // v is 5
  EXPECT_THAT(model.Run(x, "f").at("y").ToVector<float>(), ElementsAre(2, 4));
  EXPECT_EQ(model.graph().FindNode("only_add")->op_name(), "NoOp");
}

// A function that only reads orders its result after its reads, and passes it on by Identity, as TensorFlow 2 does.
TEST_F(GraphReaderTest, OrderThatDoesNotMatterIsDropped) {
  const std::string layer = FunctionText(
      "layer", {"t", "*v"}, {"r"},
      InBody("read", "ReadVariableOp", {"v"}, kReads) + InBody("product", "Mul", {"t", "read:value:0"}, kFloat) +
          InBody("same", "Identity", {"product:z:0", "^all"}, kFloat) + InBody("all", "NoOp", {"^read"}) +
          Ret("r", "same:output:0") + Effect("read"));
  const std::string start =
      FunctionText("start", {"*v"}, {},
                   InBody("one", "Const", {}, Float(3)) +
                       InBody("set", "AssignVariableOp", {"v", "one:output:0"}, kReads) + Effect("set"));
  const std::string nodes =
      Input("x") + Variable("v") + InGraph("a", "StatefulPartitionedCall", {"x", "v"}, Calls("layer")) +
      InGraph("b", "StatefulPartitionedCall", {"a", "v", "^a"}, Calls("layer")) + InGraph("y", "Neg", {"b"}, kFloat) +
      InGraph("init", "StatefulPartitionedCall", {"v"}, Calls("start"));
  const std::string init =
      "signature_def { key: '__saved_model_init_op' value { outputs { key: '__saved_model_init_op' value { name: "
      "'init' } "
      "} } }";
  const std::string model = SavedBytes(nodes, layer + start, "y:0", init);
  EXPECT_THAT(Run(model), ElementsAre(-9, -18));
  Graph graph;
  const ReadGraph read = ReadSavedModelGraph(model, "folder", {"serve"}, graph);
  for (const Node* node : graph.nodes()) {
    EXPECT_NE(node->op_name(), "Identity");
    EXPECT_EQ(node->control_inputs().empty(), node->name() != "init") << node->name();
  }
  EXPECT_EQ(graph.FindNode("y")->input(0).node->op_name(), "Mul");
}

TEST_F(GraphReaderTest, FunctionsOfBranchesAreKeptWithoutCalls) {
  const std::string functions =
      kDouble +
      FunctionText("then", {"t"}, {"r"},
                   InBody("a", "PartitionedCall", {"t"}, Calls("double")) + Ret("r", "a:output:0")) +
      FunctionText("else", {"t"}, {"r"}, InBody("minus", "Neg", {"t"}, kFloat) + Ret("r", "minus:y:0")) +
      FunctionText(
          "body", {"t"}, {"r"},
          InBody("c", "Const", {}, Float(0)) +
              InBody("branch", "StatelessIf", {"c:output:0", "t"},
                     StrCat(Attr("Tcond", "type: DT_FLOAT"), Attr("Tin", "list { type: DT_FLOAT }"),
                            Attr("Tout", "list { type: DT_FLOAT }"), Attr("then_branch", "func { name: 'then' }"),
                            Attr("else_branch", "func { name: 'else' }"))) +
              Ret("r", "branch:output:0"));
  const std::string nodes = Input("x") + InGraph("call", "PartitionedCall", {"x"}, Calls("body"));
  const std::string model = SavedBytes(nodes, functions);
  EXPECT_THAT(Run(model), ElementsAre(-1, -2));
  Graph graph;
  ReadSavedModelGraph(model, "folder", {"serve"}, graph);
  ASSERT_EQ(graph.functions().size(), 2U);
  EXPECT_EQ(graph.functions()[1]->name(), "then");
  EXPECT_NE(graph.functions()[1]->graph().FindNode("a/product"), nullptr);
}

// x * 2 for 0, -x for 1, and x for all other numbers.
TEST_F(GraphReaderTest, ChoicesAmongSeveralFunctionsBecomeBranches) {
  const std::string others =
      FunctionText("minus", {"t"}, {"r"}, InBody("m", "Neg", {"t"}, kFloat) + Ret("r", "m:y:0")) +
      FunctionText("same", {"t"}, {"r"}, Ret("r", "t"));
  const std::string functions = kDouble + others;
  for (const auto& [number, y] :
       std::map<int, std::vector<float>>{{0, {2, 4}}, {1, {-1, -2}}, {2, {1, 2}}, {3, {1, 2}}, {-1, {1, 2}}}) {
    const std::string choice =
        StrCat(Attr("dtype", "type: DT_INT32"),
               Attr("value", StrCat("tensor { dtype: DT_INT32 tensor_shape { } int_val: ", number, " }")));
    const std::string nodes =
        Input("x") + InGraph("i", "Const", {}, choice) + InGraph("call", "StatelessCase", {"i", "x"}, kCase);
    EXPECT_THAT(Run(SavedBytes(nodes, functions)), ::testing::ElementsAreArray(y)) << number;
  }
  EXPECT_THAT(WhyNot<InvalidArgumentError>(InGraph("call", "Case", {"x", "x", "x"}, kCase), functions),
              HasSubstr("'call' (Case)"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(InGraph("call", "Case", {"x"}), functions), HasSubstr("0 branches"));
  EXPECT_THAT(WhyNot<NotFoundError>(InGraph("call", "Case", {"x", "x"}, kCase), kDouble),
              HasSubstr("which the library lacks"));
  const std::string again =
      FunctionText("double", {"t"}, {"r"}, InBody("c", "Case", {"t", "t"}, kCase) + Ret("r", "c:output:0"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(InGraph("call", "Case", {"x", "x"}, kCase), again + others),
              HasSubstr("calls itself"));
}

TEST_F(GraphReaderTest, WhatIsNotNeededMayBeUnknown) {
  const std::string nodes = Input("x") + InGraph("call", "PartitionedCall", {"x"}, Calls("f")) +
                            InGraph("save", "PartitionedCall", {"x"}, Calls("saves")) + InGraph("other", "Unheard", {});
  const std::string functions =
      kDouble +
      FunctionText("f", {"t"}, {"r"},
                   InBody("what", "Unheard", {"t"}) + InBody("a", "PartitionedCall", {"t"}, Calls("double")) +
                       Ret("r", "a:output:0")) +
      FunctionText("saves", {"t"}, {"r"}, InBody("strange", "Unheard", {"t"}) + Ret("r", "strange:z:0"));
  EXPECT_THAT(Run(SavedBytes(nodes, functions)), ElementsAre(2, 4));
}

TEST_F(GraphReaderTest, OpsOfTensorFlowBecomeOpsOfCohort) {
  const std::string nodes = Input("x") + InGraph("call", "PartitionedCall", {"x"}, Calls("f"));
  const std::string functions = FunctionText(
      "f", {"t"}, {"r"},
      InBody("sum", "Einsum", {"t", "t"}, StrCat(Attr("equation", "s: 'i,i->i'"), Attr("N", "i: 2"), kFloat)) +
          InBody("soft", "Softsign", {"sum:output:0"}, kFloat) + Ret("r", "soft:activations:0"));
  EXPECT_THAT(Run(SavedBytes(nodes, functions)), ElementsAre(0.5f, 0.8f));
}

TEST_F(GraphReaderTest, AssetsAreFiles) {
  CreateDirectories(folder_ / "assets");
  WriteFileAtomically(folder_ / "assets/text", "the text");
  const std::string text = Attr("dtype", "type: DT_STRING");
  const std::string nodes = Input("x") + InGraph("path", "Placeholder", {}, text) +
                            InGraph("file", "ReadFile", {"path"}) +
                            InGraph("call", "PartitionedCall", {"x"}, Calls("double"));
  const std::string more =
      "asset_file_def { filename: 'text' tensor_info { name: 'path:0' } } signature_def { key: 'file' value { outputs "
      "{ "
      "key: 'text' value { name: 'file:0' } } } }";
  WriteFileAtomically(folder_ / "saved_model.pb", SavedBytes(nodes, kDouble, "call:0", more));
  EXPECT_EQ(SavedModel(folder_.path()).Run({}, "file").at("text").scalar<std::string>(), "the text");
}

// ---- graphs that do not load ---------------------------------------------------------------------------------------

std::string Call(const std::string& function, const std::vector<std::string>& inputs = {"x"}) {
  return InGraph("call", "PartitionedCall", inputs, Calls(function));
}
// A function with one node "a", which is `node`.
std::string One(const std::string& name, const std::string& node, const std::string& ret = "a:output:0") {
  return FunctionText(name, {"t"}, {"r"}, node + Ret("r", ret));
}

TEST_F(GraphReaderTest, UnknownOpsAreNamed) {
  const std::string functions = One("f", InBody("a", "PartitionedCall", {"t"}, Calls("g"))) +
                                One("g", InBody("a", "Unheard", {"t"}) + InBody("b", "Strange", {"a:z:0"}), "b:z:0");
  EXPECT_THAT(WhyNot<NotFoundError>(Call("f"), functions),
              AllOf(HasSubstr("'Unheard' of node 'call/a/a' in the function 'g'"),
                    HasSubstr("'Strange' of node 'call/a/b' in the function 'g'")));
  EXPECT_THAT(WhyNot<NotFoundError>(InGraph("call", "Unheard", {"x"}), ""), HasSubstr("'Unheard' of node 'call'"));
  std::string many;
  for (int i = 0; i < 20; ++i) many += InGraph(StrCat("n", i), StrCat("Op", i), {i == 0 ? "x" : StrCat("n", i - 1)});
  EXPECT_THAT(WhyNot<NotFoundError>(many, "", "n19:0"), HasSubstr("and 10 more"));
}

TEST_F(GraphReaderTest, FunctionsThatCallThemselvesAreNamed) {
  const auto calling = [](const std::string& name, const std::string& other) {
    return One(name, InBody("a", "PartitionedCall", {"t"}, Calls(other)));
  };
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("f"), calling("f", "f")), HasSubstr("'f' calls itself"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("f"), calling("f", "g") + calling("g", "h") + calling("h", "g")),
              HasSubstr("'g' calls itself"));
  const std::string branches =
      StrCat(Attr("Tin", "list { type: DT_FLOAT }"), Attr("Tout", "list { type: DT_FLOAT }"),
             Attr("then_branch", "func { name: 'f' }"), Attr("else_branch", "func { name: 'f' }"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("f"), One("f", InBody("a", "StatelessIf", {"t", "t"}, branches))),
              HasSubstr("'f' calls itself"));
  std::string chain = One("f200", InBody("a", "Identity", {"t"}, kFloat));
  for (int i = 0; i < 200; ++i) chain += calling(StrCat("f", i), StrCat("f", i + 1));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("f0"), chain), HasSubstr("100 deep"));
  EXPECT_EQ(WhyNot<InvalidArgumentError>(Call("f0"), chain + kDouble).empty(), false);
}

// Each function calls the next one ten times.
TEST_F(GraphReaderTest, FunctionsThatWouldBeTooLargeAreRefused) {
  std::string functions = One("f20", InBody("a", "Identity", {"t"}, kFloat));
  for (int i = 0; i < 20; ++i) {
    std::string body;
    for (int k = 0; k < 10; ++k) {
      body += InBody(StrCat("a", k), "PartitionedCall", {k == 0 ? "t" : StrCat("a", k - 1, ":output:0")},
                     Calls(StrCat("f", i + 1)));
    }
    functions += One(StrCat("f", i), body, "a9:output:0");
  }
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("f0"), functions), HasSubstr("too large"));
}

// The name of one node of the caller would be in each node of the function.
TEST_F(GraphReaderTest, TextsThatWouldBeTooLargeAreRefused) {
  const std::string name(size_t{1} << 17, 'n');
  std::string body = InBody("a0", "Neg", {"t"}, kFloat);
  for (int i = 1; i < 2000; ++i) body += InBody(StrCat("a", i), "AddV2", {StrCat("a", i - 1, ":z:0"), "t"}, kFloat);
  const std::string graph =
      InGraph(name, "Neg", {"x"}, kFloat) + InGraph("call", "PartitionedCall", {name}, Calls("f"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(graph, One("f", body, "a1999:z:0")), HasSubstr("too large"));
}

TEST_F(GraphReaderTest, BadCallsAreNamed) {
  EXPECT_THAT(WhyNot<NotFoundError>(Call("f"), ""),
              AllOf(HasSubstr("'call'"), HasSubstr("'f', which the library lacks")));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("double", {"x", "x"}), kDouble),
              AllOf(HasSubstr("2 inputs"), HasSubstr("'double' has 1 arguments")));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(InGraph("call", "PartitionedCall", {"x"}), kDouble),
              HasSubstr("names no function"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(
                  InGraph("call", "PartitionedCall", {"x"},
                          Attr("f", "func { name: 'double' attr { key: 'T' value { type: DT_FLOAT } } }")),
                  kDouble),
              HasSubstr("attribute 'T'"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("double") + InGraph("y", "Neg", {"call:1"}, kFloat), kDouble, "y:0"),
              HasSubstr("'call:1' is no result"));
  EXPECT_THAT(WhyNot<NotFoundError>(Call("double"), kDouble, "nothing:0"), HasSubstr("nothing"));
  const std::string same = One("same", "", "t");
  EXPECT_THAT(WhyNot<InvalidArgumentError>(InGraph("call", "PartitionedCall", {"other"}, Calls("same")) +
                                               InGraph("other", "PartitionedCall", {"call"}, Calls("same")),
                                           same),
              HasSubstr("in a circle"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("double") + Call("double"), kDouble), HasSubstr("two nodes"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("double"), kDouble + kDouble), HasSubstr("two functions"));
}

TEST_F(GraphReaderTest, BadFunctionsAreNamed) {
  const auto why = [](const std::string& body, const std::string& ret) {
    return WhyNot<InvalidArgumentError>(Call("f"), One("f", body, ret));
  };
  const std::string good = InBody("a", "Identity", {"t"}, kFloat);
  EXPECT_THAT(why(good, "b:output:0"), HasSubstr("'b:output:0' means nothing in the function 'f'"));
  EXPECT_THAT(why(good, "a"), HasSubstr("'node:output:index' in the function 'f'"));
  for (const char* ret : {"a:output", "a:output:1", "a:wrong:0", "a:output:x", "a:output:-1", "a::", ":", "", "^a"}) {
    EXPECT_NE(why(good, ret), "") << ret;
  }
  EXPECT_THAT(why(InBody("a", "Identity", {"b:z:0"}, kFloat), "a:output:0"), HasSubstr("'b:z:0' means nothing"));
  EXPECT_THAT(why(good + good, "a:output:0"), HasSubstr("two nodes of the name 'a' in the function 'f'"));
  EXPECT_THAT(why(InBody("t", "Identity", {"t"}, kFloat), "t"), HasSubstr("stands for two things"));
  EXPECT_THAT(why(InBody("a", "Identity", {"b:output:0"}, kFloat) + InBody("b", "Identity", {"a:output:0"}, kFloat),
                  "a:output:0"),
              HasSubstr("cycle"));
  EXPECT_THAT(why(good + Effect("gone"), "a:output:0"), HasSubstr("no node 'gone'"));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(Call("f"), FunctionText("f", {"t"}, {"r"}, good)),
              HasSubstr("has no value"));
}

// A branch or a loop names functions that do not fit it. This is noticed when it runs.
TEST_F(GraphReaderTest, FunctionsThatDoNotFitFailTheRun) {
  const std::string floats = StrCat(Attr("Tin", "list { type: DT_FLOAT }"), Attr("Tout", "list { type: DT_FLOAT }"));
  const std::string branch =
      StrCat(floats, Attr("then_branch", "func { name: 'f' }"), Attr("else_branch", "func { name: 'f' }"));
  const std::string loop = StrCat(Attr("T", "list { type: DT_FLOAT }"), Attr("cond", "func { name: 'f' }"),
                                  Attr("body", "func { name: 'f' }"));
  const std::string integer = "function { signature { name: 'f' input_arg { name: 't' type: DT_INT32 } output_arg { ";
  const std::string to_int =
      InBody("a", "Cast", {"t"}, Attr("SrcT", "type: DT_FLOAT") + Attr("DstT", "type: DT_INT32"));
  const std::string functions[] = {
      FunctionText("f", {"t", "u"}, {"r"}, Ret("r", "t")),
      FunctionText("f", {}, {"r"}, InBody("c", "Const", {}, Float(1)) + Ret("r", "c:output:0")),
      FunctionText("f", {"t"}, {"r", "s"}, Ret("r", "t") + Ret("s", "t")),
      FunctionText("f", {"t"}, {}, ""),
      integer + "name: 'r' type: DT_INT32 } } ret { key: 'r' value: 't' } } ",
      integer + "name: 'r' type: DT_FLOAT } } " +
          InBody("a", "Cast", {"t"}, Attr("SrcT", "type: DT_INT32") + Attr("DstT", "type: DT_FLOAT")) +
          Ret("r", "a:y:0") + "} ",
      FunctionText("f", {"t"}, {"r"}, to_int + Ret("r", "a:y:0")),
      FunctionText("f", {"*t"}, {"r"}, InBody("a", "ReadVariableOp", {"t"}, kReads) + Ret("r", "a:value:0")),
  };
  for (const std::string& function : functions) {
    for (const bool loops : {false, true}) {
      const std::string nodes = Input("x") + (loops ? InGraph("call", "StatelessWhile", {"x"}, loop)
                                                    : InGraph("call", "StatelessIf", {"x", "x"}, branch));
      EXPECT_THROW(Run(SavedBytes(nodes, function)), Error) << function;
    }
  }
}

// No damage of a file ends the process: the model loads, or there is an Error.
TEST_F(GraphReaderTest, DamagedFilesGiveErrors) {
  const std::string functions =
      kDouble + One("then", InBody("a", "PartitionedCall", {"t"}, Calls("double"))) +
      One("f",
          InBody("branch", "StatelessIf", {"t", "t"},
                 StrCat(Attr("Tcond", "type: DT_FLOAT"), Attr("Tin", "list { type: DT_FLOAT }"),
                        Attr("Tout", "list { type: DT_FLOAT }"),
                        Attr("output_shapes", "list { shape { dim { size: -1 } } }"),
                        Attr("then_branch", "func { name: 'then' }"), Attr("else_branch", "func { name: 'double' }"))) +
              InBody("sum", "Einsum", {"branch:output:0", "t"},
                     StrCat(Attr("equation", "s: 'i,i->i'"), Attr("N", "i: 2"), kFloat)),
          "sum:output:0");
  const std::string good = SavedBytes(Input("x") + Call("f"), functions);
  EXPECT_THAT(Run(good), ElementsAre(2, 8));
  std::mt19937 random(1);
  int loaded = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good;
    const auto place = [&] { return static_cast<size_t>(random() % bytes.size()); };
    for (int k = 0; k <= static_cast<int>(random() % 3); ++k) {
      switch (random() % 4) {
        case 0: bytes[place()] = static_cast<char>(random()); break;
        case 1: bytes.insert(place(), 1, bytes[place()]); break;
        case 2: bytes.erase(place(), 1); break;
        default: std::swap(bytes[place()], bytes[place()]); break;
      }
    }
    try {
      Graph graph;
      ReadSavedModelGraph(bytes, "folder", {"serve"}, graph);
      ++loaded;
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
  EXPECT_GT(loaded, 0);
}

// An attribute that a later TensorFlow may have added changes nothing if it has a usual default.
TEST_F(GraphReaderTest, AnAttributeThatNobodyKnowsIsNotIgnored) {
  const auto softsign = [](const std::string& sharp) {
    return InGraph("call", "Softsign", {"x"}, StrCat(kFloat, Attr("sharp", sharp)));
  };
  EXPECT_THAT(Run(SavedBytes(Input("x") + softsign("b: false"), "")), ElementsAre(0.5f, 2.0f / 3.0f));
  EXPECT_THAT(WhyNot<InvalidArgumentError>(softsign("b: true"), ""),
              AllOf(HasSubstr("there is no attribute 'sharp' (given as true)"), HasSubstr("Softsign(")));
}

}  // namespace
}  // namespace cohort::saved_model
