#include "cohort/graph/graph.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/testing/test_ops.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Output Floats(Graph& graph, const Shape& shape = Shape{2, 3}) {
  return TestInput(graph, DType::kFloat32, shape, "floats");
}
Output Ints(Graph& graph) { return TestInput(graph, DType::kInt32, Shape{2, 3}, "ints"); }

TEST(Graph, InfersAttributesAndFillsDefaults) {
  Graph graph;
  const Output a = Floats(graph);
  const Output y = TestMul(a, a);
  EXPECT_EQ(y.node->attr<DType>("T"), DType::kFloat32);
  EXPECT_EQ(y.node->attr<std::string>("mode"), "fast");
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.name(), "TestMul:0");
  EXPECT_EQ(&y.graph(), &graph);
  EXPECT_EQ(y.node->input_arg(1).name, "b");
  EXPECT_EQ(y.node->output_arg(0).name, "product");

  const Node* pack = graph.Op("Pack").Inputs({a, a, a}).Finish();
  EXPECT_EQ(pack->attr<int64_t>("N"), 3);
  EXPECT_EQ(pack->input_arg(2).name, "values");
  EXPECT_EQ(pack->output_shape(0), (Shape{3, 2, 3}));

  const Node* many = graph.Op("TestMany").Inputs({a, Ints(graph)}).Attr("rate", 2).Finish();
  EXPECT_THAT(many->attr<std::vector<DType>>("Tin"), ElementsAre(DType::kFloat32, DType::kInt32));
  EXPECT_EQ(many->num_outputs(), 2);
  EXPECT_EQ(many->output_dtype(1), DType::kInt32);
  EXPECT_EQ(many->attr<float>("rate"), 2.0f);
  EXPECT_FALSE(many->output_shape(0).has_rank());
  EXPECT_EQ(graph.Op("TestMany").Inputs({}).Finish()->num_outputs(), 0);
}

TEST(Graph, RefusesInputsThatDoNotFit) {
  Graph graph;
  Graph other;
  const Output f = Floats(graph);
  const Output i = Ints(graph);
  const auto message = [](auto call) { return MessageOf<InvalidArgumentError>(call); };

  EXPECT_THAT(message([&] { TestMul(i, f, "dense/product"); }),
              AllOf(HasSubstr("TestMul node 'dense/product' (inputs: int32[2,3], float32[2,3])"),
                    HasSubstr("input 'b'"), HasSubstr("float32"), HasSubstr("'T' is int32 by input 'a'")));
  EXPECT_THAT(message([&] { graph.Op("TestMul").Input(f).Input(f).Attr("T", DType::kFloat64).Finish(); }),
              AllOf(HasSubstr("float64 by the caller"), HasSubstr("input 'a'")));
  EXPECT_THAT(message([&] { graph.Op("TestMul").Input(f).Finish(); }),
              AllOf(HasSubstr("expected 2"), HasSubstr("got 1")));
  EXPECT_THAT(message([&] { graph.Op("TestMul").Inputs({f}).Input(f).Finish(); }), HasSubstr("expects one value"));
  EXPECT_THAT(message([&] { graph.Op("AddN").Input(f).Finish(); }), HasSubstr("expects a list"));
  EXPECT_THAT(message([&] {
                graph.Op("AddN").Inputs({f, i}).Finish();
              }),
              AllOf(HasSubstr("int32"), HasSubstr("float32")));
  EXPECT_THAT(message([&] { graph.Op("AddN").Inputs({}).Attr("T", DType::kFloat32).Finish(); }),
              AllOf(HasSubstr("'N'"), HasSubstr("at least 1"), HasSubstr("got 0")));
  EXPECT_THAT(message([&] { graph.Op("TestBadGradient").Input(i).Finish(); }),
              AllOf(HasSubstr("must be float32"), HasSubstr("got int32"), HasSubstr("ints:0")));
  EXPECT_THAT(message([&] { TestMul(f, Floats(other)); }), HasSubstr("another graph"));
  EXPECT_THAT(message([&] { TestMul(f, Output()); }), HasSubstr("empty Output"));
  EXPECT_THAT(message([&] { TestMul(f, {f.node, 1}); }), HasSubstr("floats:1"));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { graph.Op("TestMull").Finish(); }), HasSubstr("TestMul"));
}

TEST(Graph, RefusesAttributesThatDoNotFit) {
  Graph graph;
  const Output f = Floats(graph);
  const auto message = [&](const char* name, AttrValue value) {
    return MessageOf<InvalidArgumentError>([&] { graph.Op("TestMul").Input(f).Input(f).Attr(name, value).Finish(); });
  };
  EXPECT_THAT(message("speed", 3), AllOf(HasSubstr("'speed'"), HasSubstr("3"), HasSubstr("T, mode")));
  EXPECT_THAT(message("mode", "slow"), AllOf(HasSubstr("'mode'"), HasSubstr("'slow'"), HasSubstr("{'fast', 'exact'}")));
  EXPECT_THAT(message("mode", 7), AllOf(HasSubstr("'mode'"), HasSubstr("string"), HasSubstr("7 (int)")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                graph.Op("OnesLike").Input(TestRead(TestVariable(graph, Shape{2}))).Attr("T", DType::kBool).Finish();
              }),
              HasSubstr("bool"));
  const Output text = TestInput(graph, DType::kString, Shape());
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { TestMul(text, text); }),
              AllOf(HasSubstr("'T' is string"), HasSubstr("{float32, float64, int32}")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { graph.Op("Const").Finish(); }),
              HasSubstr("'dtype: type' is missing"));

  const Node* node = graph.Op("TestMul").Input(f).Input(f).Attr("_note", "kept").Finish();
  EXPECT_EQ(node->attr<std::string>("_note"), "kept");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { node->attr<int64_t>("_note"); }),
              AllOf(HasSubstr("_note"), HasSubstr("'kept'")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { node->attr<int64_t>("none"); }), HasSubstr("'none'"));
}

TEST(Graph, ShapeErrorsNameTheNode) {
  Graph graph;
  const Output a = Floats(graph, Shape{2, 3});
  const Output b = Floats(graph, Shape{4});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { TestMul(a, b, "x"); }),
              AllOf(HasSubstr("TestMul node 'x' (inputs: float32[2,3], float32[4])"), HasSubstr("[2,3] vs. [4]")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { graph.Op("TestMatMul").Input(a).Input(b).Finish(); }),
              AllOf(HasSubstr("TestMatMul"), HasSubstr("rank 2 but is rank 1")));
  EXPECT_EQ(graph.num_nodes(), 2);
}

TEST(Graph, NamesAreUnique) {
  Graph graph;
  const Output a = Floats(graph);
  EXPECT_EQ(TestMul(a, a).node->name(), "TestMul");
  EXPECT_EQ(TestMul(a, a).node->name(), "TestMul_1");
  EXPECT_EQ(TestMul(a, a).node->name(), "TestMul_2");
  EXPECT_EQ(TestMul(a, a, "x_1").node->name(), "x_1");
  EXPECT_EQ(TestMul(a, a, "x").node->name(), "x");
  EXPECT_EQ(TestMul(a, a, "x").node->name(), "x_2");
  EXPECT_EQ(graph.UniqueName("x"), "x_3");
  EXPECT_EQ(graph.Op("TestMul").Input(a).Input(a).ExactName("exact").Finish()->name(), "exact");
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { graph.Op("TestMul").Input(a).Input(a).ExactName("exact").Finish(); }),
              HasSubstr("'exact'"));
  for (const char* bad : {"a b", "_a", "a:0", "^a", "ü", "-a"}) {
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { TestMul(a, a, bad); }), HasSubstr(bad)) << bad;
  }
}

TEST(Graph, ANameSetAsideGoesToTheNodeThatTakesIt) {
  Graph graph;
  const Output a = Floats(graph);
  const auto take = [&](const std::string& name) {
    return graph.Op("TestMul").Input(a).Input(a).ExactName(name).Finish()->name();
  };
  EXPECT_EQ(graph.UniqueName("v"), "v");
  EXPECT_EQ(graph.UniqueName("v"), "v_1");
  EXPECT_EQ(take("v"), "v");
  EXPECT_EQ(take("v_1"), "v_1");
  EXPECT_THROW(take("v_1"), AlreadyExistsError);
  EXPECT_EQ(graph.UniqueName("v_1"), "v_1_1");
  EXPECT_EQ(graph.UniqueName("v"), "v_2");
}

TEST(Graph, AFailedNodeLeavesNothingBehind) {
  Graph graph;
  const Output a = Floats(graph);
  EXPECT_THROW(graph.Op("TestMul").Input(a).Input(Ints(graph)).ExactName("y").Finish(), InvalidArgumentError);
  EXPECT_EQ(graph.FindNode("y"), nullptr);
  EXPECT_EQ(graph.Op("TestMul").Input(a).Input(a).ExactName("y").Finish()->name(), "y");
}

TEST(Graph, FindsNodesAndOutputs) {
  Graph graph;
  const Output a = Floats(graph);
  EXPECT_EQ(graph.FindNode("floats"), a.node);
  EXPECT_EQ(graph.FindNode("none"), nullptr);
  EXPECT_EQ(graph.FindOutput("floats"), a);
  EXPECT_EQ(graph.FindOutput("floats:0"), a);
  EXPECT_THAT(MessageOf<NotFoundError>([&] { graph.FindOutput("none:0"); }), HasSubstr("'none'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { graph.FindOutput("floats:1"); }), HasSubstr("floats:1"));
  EXPECT_THROW(graph.FindOutput("floats:x"), InvalidArgumentError);
  EXPECT_THROW(graph.FindOutput("floats:"), InvalidArgumentError);
  EXPECT_THROW(graph.FindOutput("floats:-1"), InvalidArgumentError);
  EXPECT_THAT(graph.nodes(), ElementsAre(a.node));
  EXPECT_EQ(graph.version(), 1);
}

TEST(Graph, FinalizedGraphsRefuseNodes) {
  Graph graph;
  const Output a = Floats(graph);
  graph.Finalize();
  EXPECT_TRUE(graph.finalized());
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { TestMul(a, a, "late"); }), HasSubstr("'late'"));
  EXPECT_EQ(graph.num_nodes(), 1);
}

TEST(Graph, Rewiring) {
  Graph graph;
  const Output a = Floats(graph);
  const Output b = Floats(graph);
  const Output y = TestMul(a, a);
  y.node->ReplaceInput(1, b);
  EXPECT_THAT(y.node->inputs(), ElementsAre(a, b));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { y.node->ReplaceInput(0, Ints(graph)); }),
              AllOf(HasSubstr("float32"), HasSubstr("int32")));
  EXPECT_THROW(y.node->ReplaceInput(2, a), InvalidArgumentError);
  EXPECT_THROW(y.node->ReplaceInput(0, Output()), InvalidArgumentError);
  y.node->AddControlInput(b.node);
  y.node->AddControlInput(b.node);
  EXPECT_THAT(y.node->control_inputs(), ElementsAre(b.node));
  EXPECT_THROW(y.node->AddControlInput(nullptr), InvalidArgumentError);
  EXPECT_THROW(y.node->AddControlInput(y.node), InvalidArgumentError);
}

TEST(Graph, Collections) {
  Graph graph;
  const Output a = Floats(graph);
  EXPECT_THAT(graph.collection("losses"), IsEmpty());
  graph.AddToCollection("losses", a);
  EXPECT_THAT(graph.collection("losses"), ElementsAre(a));
}

TEST(Graph, ThreadsAddNodesAndKeepTheirOwnScopes) {
  constexpr int kThreads = 8;
  constexpr int kNodes = 100;
  Graph graph;
  const Output a = Floats(graph);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string device = StrCat("/task:", t);
      DeviceScope on(graph, device);
      for (int i = 0; i < kNodes; ++i) {
        NameScope scope(graph, "block");
        const Output y = TestMul(a, a, "shared");
        EXPECT_EQ(y.node->device(), device);
        EXPECT_EQ(y.node->name(), scope.prefix() + "/shared");
        EXPECT_EQ(graph.FindNode(y.node->name()), y.node);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> names;
  const std::vector<Node*> nodes = graph.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i]->id(), static_cast<int>(i));
    names.insert(nodes[i]->name());
  }
  EXPECT_EQ(names.size(), 1u + kThreads * kNodes);
  EXPECT_EQ(TestMul(a, a).node->device(), "");
}

}  // namespace
}  // namespace cohort
