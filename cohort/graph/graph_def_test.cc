#include "cohort/graph/graph_def.h"

#include <gmock/gmock.h>

#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/testing/test_ops.h"
#include "cohort/proto/graph.pb.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Bytes(const proto::GraphDef& def) { return def.SerializeAsString(); }

proto::NodeDef* AddNode(proto::GraphDef& def, const std::string& name, const std::string& op,
                        const std::vector<std::string>& inputs = {}) {
  proto::NodeDef* node = def.add_node();
  node->set_name(name);
  node->set_op(op);
  for (const std::string& input : inputs) node->add_input(input);
  return node;
}

// A graph with every kind of attribute, colocation, devices, control inputs and a second output.
void Fill(Graph& graph) {
  const Output x = TestInput(graph, DType::kFloat32, Shape{-1, 3}, "x");
  const Output c = TestConst(graph, Tensor::FromValues<float>(std::vector<float>{1, -2.5f, 3e-30f}, Shape{3}), "c");
  const Output text = TestConst(graph, Tensor::Vector<std::string>({"a", std::string("\0\xff", 2)}), "text");
  DeviceScope device(graph, "/job:worker/task:1/gpu:0");
  const Output y = TestMul(x, c, "scope/y");
  Node* split = graph.Op("TestSplit").Input(y).Control(text.node).Finish();
  const Output handle = TestVariable(graph, Shape{3, 4}, "v");
  const Output read = TestRead(handle);
  graph.Op("TestMany")
      .Inputs({split->output(1), text, read})
      .Attr("axes", std::vector<int64_t>{})
      .Attr("names", std::vector<std::string>{"p", ""})
      .Attr("rate", std::numeric_limits<float>::denorm_min())
      .Attr("_i", int64_t{-1} << 62)
      .Attr("_b", true)
      .Attr("_s", std::string("\0\x80", 2))
      .Attr("_type", DType::kBfloat16)
      .Attr("_shape", Shape::UnknownRank())
      .Attr("_floats", std::vector<float>{0.1f, -0.0f})
      .Attr("_bools", std::vector<bool>{true, false})
      .Attr("_shapes", std::vector<Shape>{Shape{2, -1}, Shape()})
      .Attr("_class", std::vector<std::string>{"loc:@x", "other"})
      .Name("many")
      .Finish();
}

TEST(GraphDef, RoundTripsEverything) {
  Graph graph;
  Fill(graph);
  const std::string bytes = SerializeGraphDef(graph);
  EXPECT_EQ(bytes, SerializeGraphDef(graph));
  const std::unique_ptr<Graph> copy = ParseGraphDef(bytes);
  EXPECT_EQ(SerializeGraphDef(*copy), bytes);
  ASSERT_EQ(copy->num_nodes(), graph.num_nodes());
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& a = *graph.nodes()[static_cast<size_t>(i)];
    const Node& b = *copy->nodes()[static_cast<size_t>(i)];
    // The line of the program that made a node is not kept.
    EXPECT_EQ(a.Describe().substr(0, a.Describe().find(", made at ")), b.Describe());
    EXPECT_EQ(a.device(), b.device());
    EXPECT_EQ(a.colocate_with(), b.colocate_with());
    EXPECT_TRUE(a.attrs() == b.attrs()) << a.name();
    ASSERT_EQ(a.num_inputs(), b.num_inputs());
    for (int k = 0; k < a.num_inputs(); ++k) EXPECT_EQ(a.input(k).name(), b.input(k).name());
    ASSERT_EQ(a.control_inputs().size(), b.control_inputs().size());
    for (size_t k = 0; k < a.control_inputs().size(); ++k) {
      EXPECT_EQ(a.control_inputs()[k]->name(), b.control_inputs()[k]->name());
    }
  }
}

TEST(GraphDef, WritesTensorFlowsForm) {
  Graph graph;
  Fill(graph);
  proto::GraphDef def;
  ASSERT_TRUE(def.ParseFromString(SerializeGraphDef(graph)));
  EXPECT_EQ(def.versions().producer(), kGraphDefVersion);
  EXPECT_EQ(def.versions().min_consumer(), 0);
  std::map<std::string, const proto::NodeDef*> nodes;
  for (const auto& node : def.node()) nodes[node.name()] = &node;
  const proto::NodeDef& y = *nodes.at("scope/y");
  EXPECT_EQ(y.op(), "TestMul");
  EXPECT_THAT(y.input(), ElementsAre("x", "c"));
  EXPECT_EQ(y.device(), "/job:worker/task:1/device:GPU:0");
  EXPECT_EQ(y.attr().at("T").type(), proto::DT_FLOAT);
  EXPECT_EQ(y.attr().at("mode").s(), "fast");
  EXPECT_THAT(nodes.at("TestSplit")->input(), ElementsAre("scope/y", "^text"));
  EXPECT_THAT(nodes.at("many")->input(), ElementsAre("TestSplit:1", "text", "ReadVariableOp"));
  EXPECT_THAT(nodes.at("many")->attr().at("_class").list().s(), ElementsAre("other", "loc:@x"));
  EXPECT_THAT(nodes.at("ReadVariableOp")->attr().at("_class").list().s(), ElementsAre("loc:@v"));
  EXPECT_EQ(y.attr().count("_output_shapes"), 0u);

  GraphDefOptions options;
  options.output_shapes = true;
  ASSERT_TRUE(def.ParseFromString(SerializeGraphDef(graph, options)));
  EXPECT_EQ(def.node(0).attr().at("_output_shapes").list().shape(0).dim(0).size(), -1);
  EXPECT_THAT(GraphDefText(graph),
              AllOf(HasSubstr("name: \"scope/y\""), HasSubstr("op: \"TestMul\""), HasSubstr("DT_FLOAT")));
}

TEST(GraphDef, ImportsUnderAPrefix) {
  Graph graph;
  const Output x = TestInput(graph, DType::kFloat32, Shape(), "x");
  Graph source;
  Fill(source);
  const std::string bytes = SerializeGraphDef(source);
  {
    DeviceScope ignored(graph, "/cpu:0");
    ControlDependencies also(graph, {x.node});
    ImportGraphDef(graph, bytes, "copy");
  }
  const Node* y = graph.FindNode("copy/scope/y");
  ASSERT_NE(y, nullptr);
  EXPECT_EQ(y->input(0).name(), "copy/x:0");
  EXPECT_EQ(y->device(), "/job:worker/task:1/device:GPU:0");
  EXPECT_TRUE(y->control_inputs().empty());
  EXPECT_THAT(graph.FindNode("copy/ReadVariableOp")->colocate_with(), ElementsAre("copy/v"));
  const int before = graph.num_nodes();
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { ImportGraphDef(graph, bytes); }), HasSubstr("'x'"));
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { ImportGraphDef(graph, bytes, "copy"); }), HasSubstr("'copy/x'"));
  EXPECT_EQ(graph.num_nodes(), before);
}

TEST(GraphDef, OrderDoesNotMatter) {
  proto::GraphDef def;
  AddNode(def, "y", "TestMul", {"b", "a"});
  AddNode(def, "b", "Identity", {"a:0", "^c"});
  AddNode(def, "a", "TestInput");
  AddNode(def, "c", "TestInput");
  const auto graph = ParseGraphDef(Bytes(def));
  EXPECT_EQ(graph->num_nodes(), 4);
  EXPECT_EQ(graph->FindNode("y")->input(0).name(), "b:0");
  EXPECT_EQ(graph->FindNode("b")->control_inputs()[0]->name(), "c");
}

TEST(GraphDef, NamesTheNodesOfACycle) {
  proto::GraphDef def;
  AddNode(def, "outside", "TestInput");
  AddNode(def, "enter", "TestMul", {"outside", "p"});
  AddNode(def, "p", "Identity", {"q"});
  AddNode(def, "q", "Identity", {"r"});
  AddNode(def, "r", "TestMul", {"outside", "outside", "^p"});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseGraphDef(Bytes(def)); }),
              AllOf(HasSubstr("cycle: 'p' -> 'r' -> 'q' -> 'p'"), Not(HasSubstr("outside")), Not(HasSubstr("enter"))));
  proto::GraphDef self;
  AddNode(self, "s", "Identity", {"s"});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseGraphDef(Bytes(self)); }), HasSubstr("'s' -> 's'"));
}

TEST(GraphDef, RefusesWhatDoesNotFit) {
  const auto failure = [](const char* op, const std::vector<std::string>& inputs, const char* attr = nullptr,
                          const std::function<void(proto::AttrValue&)>& set = nullptr) {
    proto::GraphDef def;
    AddNode(def, "a", "TestInput");
    proto::NodeDef* node = AddNode(def, "bad", op, inputs);
    if (attr != nullptr) set((*node->mutable_attr())[attr]);
    return MessageOf<InvalidArgumentError>([&] { ParseGraphDef(Bytes(def)); });
  };
  EXPECT_THAT(failure("Identity", {"none"}), AllOf(HasSubstr("'bad'"), HasSubstr("'none'")));
  EXPECT_THAT(failure("Identity", {"a:x"}), HasSubstr("'a:x'"));
  EXPECT_THAT(failure("Identity", {"a:-1"}), HasSubstr("'a:-1'"));
  EXPECT_THAT(failure("Identity", {"a:7"}), AllOf(HasSubstr("'bad'"), HasSubstr("a:7")));
  EXPECT_THAT(failure("Identity", {"^a", "a"}), HasSubstr("control inputs stand last"));
  EXPECT_THAT(failure("Identity", {}), AllOf(HasSubstr("'input'"), HasSubstr("needs 1")));
  EXPECT_THAT(failure("Identity", {"a", "a"}), AllOf(HasSubstr("expected 1"), HasSubstr("got 2")));
  EXPECT_THAT(failure("AddN", {"a", "a"}), AllOf(HasSubstr("'N'"), HasSubstr("missing")));
  EXPECT_THAT(failure("AddN", {"a", "a"}, "N", [](auto& v) { v.set_i(1LL << 60); }), HasSubstr("1152921504606846976"));
  EXPECT_THAT(failure("AddN", {"a", "a"}, "N", [](auto& v) { v.set_i(-1); }), HasSubstr("-1"));
  EXPECT_THAT(failure("Identity", {"a"}, "T", [](auto& v) { v.set_type(proto::DT_HALF); }),
              AllOf(HasSubstr("'T'"), HasSubstr("DT_HALF")));
  EXPECT_THAT(failure("Identity", {"a"}, "T", [](auto& v) { v.set_type(proto::DT_INT32); }),
              AllOf(HasSubstr("int32"), HasSubstr("float32")));
  EXPECT_THAT(failure("Identity", {"a"}, "f", [](auto& v) { v.mutable_func()->set_name("body"); }),
              HasSubstr("'body'"));
  EXPECT_THAT(failure("TestMul", {"a", "a"}, "mode", [](auto& v) { v.set_s("slow"); }), HasSubstr("'slow'"));
  EXPECT_THAT(failure("TestMul", {"a", "a"}, "new", [](auto& v) { v.set_i(4); }), HasSubstr("'new'"));
  EXPECT_THAT(failure("Identity", {"a"}, "_t",
                      [](auto& v) {
                        v.mutable_tensor()->set_dtype(proto::DT_FLOAT);
                        v.mutable_tensor()->set_tensor_content("123");
                      }),
              AllOf(HasSubstr("'_t'"), HasSubstr("'bad'")));

  proto::GraphDef def;
  AddNode(def, "a", "NoSuchOp");
  EXPECT_THAT(MessageOf<NotFoundError>([&] { ParseGraphDef(Bytes(def)); }),
              AllOf(HasSubstr("'a'"), HasSubstr("'NoSuchOp'")));
  def.mutable_node(0)->set_op("TestInput");
  def.mutable_node(0)->set_device("/cpu:x");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseGraphDef(Bytes(def)); }),
              AllOf(HasSubstr("'a'"), HasSubstr("'/cpu:x'")));
  def.mutable_node(0)->clear_device();
  AddNode(def, "a", "TestInput");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseGraphDef(Bytes(def)); }), HasSubstr("two nodes"));
  def.clear_node();
  def.mutable_versions()->set_min_consumer(999999);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseGraphDef(Bytes(def)); }), HasSubstr("999999"));
}

TEST(GraphDef, LeavesOutWhatItsReaderLacks) {
  Graph graph;
  const Output x = TestInput(graph, DType::kFloat32, Shape{2}, "x");
  const Output lacking = TestMul(x, x, "lacking");
  const Output user = graph.Op("Identity").Name("user").Input(lacking).Finish1();
  graph.Op("Identity").Name("user_of_user").Input(user).Finish();
  graph.Op("Identity").Name("after").Input(x).Control(user.node).Colocate("lacking").Finish();
  proto::GraphDef def;
  ASSERT_TRUE(def.ParseFromString(SerializeGraphDef(graph, {.has_op = [](auto op) { return op != "TestMul"; }})));
  ASSERT_EQ(def.node_size(), 2);
  EXPECT_EQ(def.node(0).name(), "x");
  EXPECT_EQ(def.node(1).name(), "after");
  EXPECT_THAT(def.node(1).input(), ElementsAre("x"));
  EXPECT_EQ(def.node(1).attr().count("_class"), 0u);
  EXPECT_EQ(ParseGraphDef(def.SerializeAsString())->nodes().size(), 2u);
}

// Later versions of TensorFlow add attributes to ops, with defaults that keep the meaning.
TEST(GraphDef, DefaultsOfLaterAttributesAreDropped) {
  proto::GraphDef def;
  auto& attrs = *AddNode(def, "a", "TestInput")->mutable_attr();
  attrs["grad_a"].set_b(false);
  attrs["count"].set_i(0);
  attrs["rate"].set_f(0);
  attrs["label"].set_s("");
  attrs["allowed_devices"].mutable_list();
  attrs["_kept"].set_b(false);
  const std::unique_ptr<Graph> graph = ParseGraphDef(Bytes(def));
  for (const char* dropped : {"grad_a", "count", "rate", "label", "allowed_devices"}) {
    EXPECT_EQ(graph->FindNode("a")->attrs().count(dropped), 0u) << dropped;
  }
  EXPECT_EQ(graph->FindNode("a")->attrs().count("_kept"), 1u);
  attrs["grad_a"].set_b(true);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseGraphDef(Bytes(def)); }), HasSubstr("'grad_a'"));
}

// A few bytes ask for very much: the importer refuses it before it takes the memory.
TEST(GraphDef, SizesAreBounded) {
  proto::GraphDef def;
  for (int i = 0; i < 3; ++i) {
    proto::NodeDef* node = AddNode(def, "c" + std::to_string(i), "Const");
    (*node->mutable_attr())["dtype"].set_type(proto::DT_FLOAT);
    proto::TensorProto& tensor = *(*node->mutable_attr())["value"].mutable_tensor();
    tensor.set_dtype(proto::DT_FLOAT);
    tensor.add_float_val(0.5f);
    tensor.mutable_tensor_shape()->add_dim()->set_size(25 << 20);  // 100 MiB
  }
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseGraphDef(Bytes(def)); }),
              AllOf(HasSubstr("'c2'"), HasSubstr("float32[26214400]")));
  def.mutable_node()->RemoveLast();
  EXPECT_EQ(ParseGraphDef(Bytes(def))->num_nodes(), 2);

  proto::GraphDef large;
  proto::AttrValue& shape = (*AddNode(large, "x", "TestInput")->mutable_attr())["shape"];
  shape.mutable_shape()->add_dim()->set_size((int64_t{1} << 40) + 1);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseGraphDef(Bytes(large)); }),
              AllOf(HasSubstr("'x'"), HasSubstr("at most 2^40"), HasSubstr("1099511627777")));
}

TEST(GraphDef, GarbageIsRefusedByName) {
  EXPECT_EQ(ParseGraphDef("")->num_nodes(), 0);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ParseGraphDef("this is no graph"); }), HasSubstr("16 bytes"));
  Graph graph;
  Fill(graph);
  const std::string bytes = SerializeGraphDef(graph);
  int refused = 0;
  for (size_t length = 1; length < bytes.size(); ++length) {
    try {
      ParseGraphDef(std::string_view(bytes).substr(0, length));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) * 9 / 10);
  uint32_t random = 12345;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k) {
      random = random * 1664525u + 1013904223u;
      damaged[(random >> 8) % damaged.size()] = static_cast<char>(random >> 24);
    }
    try {
      ParseGraphDef(damaged);
    } catch (const Error&) {  // an Error of any kind is right, a crash is not
    }
  }
}

}  // namespace
}  // namespace cohort
