#include "cohort/graph/gradients.h"

#include <gmock/gmock.h>

#include <map>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/testing/test_ops.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Evaluates scalars through the few ops that the tests' gradients consist of.
float Eval(const Output& value, const std::map<const Node*, float>& feeds) {
  const Node& node = *value.node;
  if (const auto it = feeds.find(&node); it != feeds.end()) return it->second;
  const std::string& op = node.op_name();
  if (op == "OnesLike") return 1;
  if (op == "ZerosLike") return 0;
  if (op == "Identity" || op == "TestSplit") return Eval(node.input(0), feeds);
  if (op == "TestMul") return Eval(node.input(0), feeds) * Eval(node.input(1), feeds);
  EXPECT_EQ(op, "AddN");
  float sum = 0;
  for (const Output& input : node.inputs()) sum += Eval(input, feeds);
  return sum;
}

class GradientsTest : public ::testing::Test {
 protected:
  Output Scalar(const std::string& name) { return TestInput(graph_, DType::kFloat32, Shape(), name); }
  Output Op1(const char* op, Output x) { return graph_.Op(op).Input(x).Finish1(); }
  Output Gather(Output handle, int64_t rows) {
    const Output ids = TestInput(graph_, DType::kInt64, Shape{rows}, "ids");
    return graph_.Op("ResourceGather").Input(handle).Input(ids).Attr("dtype", DType::kFloat32).Finish1();
  }
  Output Gather32(Output handle, int64_t rows) {
    const Output ids = TestInput(graph_, DType::kInt32, Shape{rows}, "ids");
    return graph_.Op("ResourceGather").Input(handle).Input(ids).Attr("dtype", DType::kFloat32).Finish1();
  }

  Graph graph_;
  Output x_ = Scalar("x");
  Output z_ = Scalar("z");
  std::map<const Node*, float> feeds_ = {{x_.node, 3}, {z_.node, 5}};
};

TEST_F(GradientsTest, SumsOverAllPaths) {
  const Output a = TestMul(x_, z_);
  const Output b = TestMul(a, x_);
  const Output y = TestMul(b, a);  // (x z x)(x z) = x^3 z^2
  const std::vector<Gradient> grads = Gradients({y}, {x_, z_, a});
  EXPECT_FLOAT_EQ(Eval(grads[0].values, feeds_), 3 * 9 * 25);  // 3 x^2 z^2
  EXPECT_FLOAT_EQ(Eval(grads[1].values, feeds_), 2 * 27 * 5);  // 2 x^3 z
  EXPECT_FLOAT_EQ(Eval(grads[2].values, feeds_), 2 * 15 * 3);  // d(a^2 x)/da
}

TEST_F(GradientsTest, SecondDerivative) {
  const Output y = TestMul(TestMul(x_, x_), x_);
  const Output first = Gradients({y}, {x_})[0].values;
  EXPECT_FLOAT_EQ(Eval(Gradients({first}, {x_})[0].values, feeds_), 18);  // 6 x
}

TEST_F(GradientsTest, StartsFromGradYsAndSumsYs) {
  const Output square = TestMul(x_, x_);
  const Output product = TestMul(x_, z_);
  EXPECT_FLOAT_EQ(Eval(Gradients({square, product}, {x_})[0].values, feeds_), 6 + 5);
  EXPECT_FLOAT_EQ(Eval(Gradients({square, product}, {x_}, {z_, Output()})[0].values, feeds_), 5 * 6 + 5);
  EXPECT_FLOAT_EQ(Eval(Gradients({x_}, {x_})[0].values, feeds_), 1);
}

TEST_F(GradientsTest, OnlyWhatLiesBetweenIsDifferentiated) {
  const Output lonely = Scalar("lonely");
  const Output y = TestMul(x_, Op1("TestFloor", z_));
  const std::vector<Gradient> grads = Gradients({y}, {x_, z_, lonely});
  EXPECT_TRUE(grads[0].exists());
  EXPECT_FALSE(grads[1].exists());
  EXPECT_FALSE(grads[2].exists());
  const int before = graph_.num_nodes();
  EXPECT_FALSE(Gradients({y}, {lonely})[0].exists());
  EXPECT_EQ(graph_.num_nodes(), before + 1);  // the start of y alone
}

TEST_F(GradientsTest, StopCutsPaths) {
  const Output a = TestMul(x_, x_);
  const Output y = TestMul(a, x_);
  EXPECT_FLOAT_EQ(Eval(Gradients({y}, {x_}, {}, {a})[0].values, feeds_), 9);
  const std::vector<Gradient> grads = Gradients({y}, {a, x_}, {}, {a});
  EXPECT_FLOAT_EQ(Eval(grads[0].values, feeds_), 3);
  EXPECT_FLOAT_EQ(Eval(grads[1].values, feeds_), 9);
}

TEST_F(GradientsTest, OutputsWithoutGradientCountAsZeros) {
  const Node* split = graph_.Op("TestSplit").Input(x_).Finish();
  EXPECT_FLOAT_EQ(Eval(Gradients({split->output(0)}, {x_})[0].values, feeds_),
                  0);  // its gradient is a product
  EXPECT_FLOAT_EQ(Eval(Gradients({split->output(0), split->output(1)}, {x_})[0].values, feeds_), 1);
}

TEST_F(GradientsTest, NodesStandBesideTheirForwardNode) {
  Output h;
  Output y;
  {
    NameScope scope(graph_, "dense");
    DeviceScope device(graph_, "/job:worker/task:1");
    h = TestMul(x_, x_);
  }
  {
    DeviceScope device(graph_, "/job:worker/task:2");
    y = TestMul(h, z_);
  }
  DeviceScope device(graph_, "/job:ps/task:9");
  ControlDependencies controls(graph_, {z_.node});
  const Output grad_h = Gradients({y}, {h})[0].values;
  EXPECT_EQ(grad_h.node->name(), "gradients/TestMul_grad/TestMul");
  EXPECT_EQ(grad_h.node->device(), "/job:worker/task:2");
  const Output grad_x = Gradients({y}, {x_})[0].values;
  EXPECT_EQ(grad_x.node->op_name(), "AddN");
  for (const Output& part : grad_x.node->inputs()) {
    EXPECT_THAT(part.node->name(), StartsWith("gradients_1/dense/TestMul_grad/TestMul"));
    EXPECT_EQ(part.node->device(), "/job:worker/task:1");
    EXPECT_THAT(part.node->control_inputs(), IsEmpty());
  }
  EXPECT_EQ(grad_x.node->device(), "/job:worker/task:1");
}

TEST_F(GradientsTest, ColocatedForwardNodesColocateTheirGradients) {
  Output y;
  {
    ColocateWith colocate(graph_, *z_.node);
    y = TestMul(x_, z_);
  }
  EXPECT_THAT(Gradients({y}, {x_})[0].values.node->colocate_with(), ElementsAre("z"));
}

TEST_F(GradientsTest, SumsAddOnEachDeviceFirst) {
  std::vector<Output> ys;
  for (const char* device : {"/task:0", "/task:1", "/task:0", "/task:1"}) {
    DeviceScope scope(graph_, device);
    ys.push_back(TestMul(x_, z_));
  }
  const Output grad = Gradients(ys, {x_})[0].values;
  EXPECT_FLOAT_EQ(Eval(grad, feeds_), 20);
  ASSERT_EQ(grad.node->num_inputs(), 2);
  for (const Output& part : grad.node->inputs()) {
    EXPECT_EQ(part.node->op_name(), "AddN");
    for (const Output& term : part.node->inputs()) EXPECT_EQ(term.node->device(), part.node->device());
  }
  EXPECT_NE(grad.node->input(0).node->device(), grad.node->input(1).node->device());
}

TEST_F(GradientsTest, HandlesCollectReads) {
  const Output handle = TestVariable(graph_, Shape());
  const Output y = TestMul(TestRead(handle), TestRead(Op1("Identity", handle)));
  const Gradient grad = Gradients({y}, {handle})[0];
  EXPECT_FALSE(grad.is_sparse());
  ASSERT_EQ(grad.values.node->op_name(), "AddN");
  EXPECT_EQ(grad.values.node->num_inputs(), 2);
}

TEST_F(GradientsTest, GathersStaySparseAndConcatenate) {
  const Output handle = TestVariable(graph_, Shape{100, 4});
  const Output one = Gather(handle, 3);
  const Gradient single = Gradients({one}, {handle})[0];
  ASSERT_TRUE(single.is_sparse());
  EXPECT_EQ(single.indices, one.node->input(1));

  const Output two = Gather(Op1("Identity", handle), 5);
  const Gradient both = Gradients({one, two}, {handle})[0];
  ASSERT_TRUE(both.is_sparse());
  EXPECT_EQ(both.values.node->op_name(), "ConcatV2");
  EXPECT_EQ(both.indices.node->op_name(), "ConcatV2");
  EXPECT_EQ(both.indices.dtype(), DType::kInt64);

  const Output narrow = Gather32(handle, 2);
  const Gradient mixed = Gradients({one, narrow}, {handle})[0];
  EXPECT_EQ(mixed.indices.dtype(), DType::kInt64);
  int casts = 0;
  for (const Output& part : mixed.indices.node->inputs()) casts += part.node->op_name() == "Cast" ? 1 : 0;
  EXPECT_EQ(casts, 1);
}

TEST_F(GradientsTest, SparseAndDenseAddUpDense) {
  const Output handle = TestVariable(graph_, Shape{100, 4});
  const Output rows = Gather(handle, 3);
  const Output all = TestRead(handle);
  const Gradient grad = Gradients({rows, all}, {handle})[0];
  EXPECT_FALSE(grad.is_sparse());
  ASSERT_EQ(grad.values.node->op_name(), "AddN");
  int sums = 0;
  for (const Output& part : grad.values.node->inputs()) sums += part.node->op_name() == "UnsortedSegmentSum" ? 1 : 0;
  EXPECT_EQ(sums, 1);
}

TEST_F(GradientsTest, ToDenseTakesTheRowCountFromTheShape) {
  const Output values = TestInput(graph_, DType::kFloat32, Shape{3, 4});
  const Output ids = TestInput(graph_, DType::kInt64, Shape{3});
  EXPECT_EQ(ToDense(Gradient(values)), values);
  const Output fixed = TestConst(graph_, Tensor::Vector<int64_t>({100, 4}));
  const Output dense = ToDense({values, ids, fixed});
  EXPECT_EQ(dense.node->op_name(), "UnsortedSegmentSum");
  EXPECT_EQ(dense.node->input(2).node->attr<Tensor>("value").scalar<int64_t>(), 100);
  const Output open = TestInput(graph_, DType::kInt32, Shape{2});
  const Output slice = ToDense({values, ids, open}).node->input(2);
  EXPECT_EQ(slice.node->op_name(), "StridedSlice");
  EXPECT_EQ(slice.shape(), Shape());
}

TEST_F(GradientsTest, Errors) {
  const Output i = TestInput(graph_, DType::kInt32, Shape{2}, "counts");
  Graph other;
  const Output foreign = TestInput(other, DType::kFloat32, Shape());
  const auto message = [](auto call) { return MessageOf<InvalidArgumentError>(call); };
  EXPECT_THAT(message([&] { Gradients({i}, {x_}); }), AllOf(HasSubstr("int32[2]"), HasSubstr("'counts'")));
  EXPECT_THAT(message([&] { Gradients({}, {x_}); }), HasSubstr("at least one y"));
  EXPECT_THAT(message([&] { Gradients({x_}, {Output()}); }), HasSubstr("xs[0]"));
  EXPECT_THAT(message([&] { Gradients({x_}, {foreign}); }), HasSubstr("another graph"));
  EXPECT_THAT(message([&] { Gradients({x_}, {x_}, {x_, x_}); }), AllOf(HasSubstr("1 ys"), HasSubstr("got 2")));
  const Output wide = TestInput(graph_, DType::kFloat32, Shape{9});
  EXPECT_THAT(message([&] { Gradients({x_}, {x_}, {wide}); }), AllOf(HasSubstr("grad_ys[0]"), HasSubstr("[9]")));
  const Output m = TestInput(graph_, DType::kFloat32, Shape{2, 2});
  const Output y = graph_.Op("TestMatMul").Input(m).Input(m).Name("product").Finish1();
  EXPECT_THAT(message([&] { Gradients({y}, {m}); }), AllOf(HasSubstr("TestMatMul"), HasSubstr("'product'")));
  const Output bad = Op1("TestBadGradient", wide);
  EXPECT_THAT(MessageOf<InternalError>([&] { Gradients({bad}, {wide}); }),
              AllOf(HasSubstr("TestBadGradient"), HasSubstr("float32[7]"), HasSubstr("float32[9]")));
}

TEST_F(GradientsTest, DeepGraphsNeedNoStack) {
  Output y = x_;
  for (int i = 0; i < 50000; ++i) y = Op1("Identity", y);
  EXPECT_TRUE(Gradients({y}, {x_})[0].exists());
}

}  // namespace
}  // namespace cohort
