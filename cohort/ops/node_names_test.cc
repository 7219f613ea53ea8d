// Every function of ops/ that adds a node gives it the name that its caller asks for, and the line of the call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/clip.h"
#include "cohort/ops/collective.h"
#include "cohort/ops/control.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/decode.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/gather_nd.h"
#include "cohort/ops/image_files.h"
#include "cohort/ops/initializers.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/local_response.h"
#include "cohort/ops/math.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/pooling.h"
#include "cohort/ops/random.h"
#include "cohort/ops/register.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/softmax.h"
#include "cohort/ops/state.h"
#include "cohort/ops/summary.h"
#include "cohort/ops/tensor_list.h"
#include "cohort/ops/training.h"
#include "cohort/ops/variables.h"

namespace cohort::ops {
namespace {

// The node that a function has added, whatever the function returns.
const Node* NodeOf(const Output& output) { return output.node; }
const Node* NodeOf(const Node* node) { return node; }
const Node* NodeOf(const std::vector<Output>& outputs) { return outputs.at(0).node; }
const Node* NodeOf(const UniqueResult& result) { return result.y.node; }
const Node* NodeOf(const UniqueCountsResult& result) { return result.y.node; }
const Node* NodeOf(const BatchNorm& result) { return result.y.node; }
const Node* NodeOf(const PoppedTensor& result) { return result.list.node; }
const Node* NodeOf(const ClippedGradients& result) { return result.gradients.at(0).values.node; }

// What the functions work on.
struct Inputs {
  Inputs() {
    keys.members = {"/job:worker/task:0/device:CPU:0"};
    adam = {s, s, s, s, s, s};
    rms = {s, s, s, s};
    ftrl = {s, s, s, s};
  }
  Output Of(DType dtype, const Shape& shape) { return Placeholder(g, dtype, shape); }
  Variable OfParts(const std::vector<Variable>& variables) {
    VariableRequest request;
    request.name = "parts";
    request.shape = Shape{4, 6};
    std::vector<VariableInfo*> infos;
    for (const Variable& variable : variables) infos.push_back(variable.info());
    return Variable(MakeVariableOfParts(g, request, infos));
  }

  Graph g;
  Output x = Of(DType::kFloat32, Shape{4, 6});
  Output y = Of(DType::kFloat32, Shape{4, 6});
  Output z = Of(DType::kFloat32, Shape{6, 4});
  Output s = Of(DType::kFloat32, Shape{});
  Output v = Of(DType::kFloat32, Shape{6});
  Output i = Of(DType::kInt32, Shape{4});
  Output n = Of(DType::kInt32, Shape{});
  Output b = Of(DType::kBool, Shape{4, 6});
  Output yes = Of(DType::kBool, Shape{});
  Output text = Of(DType::kString, Shape{});
  Output pixels = Of(DType::kUint8, Shape{4, 5, 3});
  Output image = Of(DType::kFloat32, Shape{2, 8, 8, 6});
  Output filter = Of(DType::kFloat32, Shape{3, 3, 6, 2});
  Output seed = Of(DType::kInt32, Shape{2});
  Output shape = Of(DType::kInt32, Shape{2});
  Variable w{g, Tensor::Zeros(DType::kFloat32, Shape{4, 6}), {.name = "w"}};
  Variable w1{g, Tensor::Zeros(DType::kFloat32, Shape{4, 6}), {.name = "w1"}};
  Variable w2{g, Tensor::Zeros(DType::kFloat32, Shape{4, 6}), {.name = "w2"}};
  Variable w3{g, Tensor::Zeros(DType::kFloat32, Shape{4, 6}), {.name = "w3"}};
  // Consists of two parts of two rows.
  Variable parts = OfParts({Variable(g, Tensor::Zeros(DType::kFloat32, Shape{2, 6}), {.name = "part_0"}),
                            Variable(g, Tensor::Zeros(DType::kFloat32, Shape{2, 6}), {.name = "part_1"})});
  Output h = w.handle(), h1 = w1.handle(), h2 = w2.handle(), h3 = w3.handle();
  Output list = EmptyTensorList(g, DType::kFloat32, Shape{});
  CollectiveKeys keys;
  AdamScalars adam;
  RMSPropScalars rms;
  FtrlScalars ftrl;
};

struct Case {
  const char* call;
  std::function<const Node*(Inputs&, const NodeName&)> make;
};

std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.call; }

// The call as it stands in the source; `name` is its last argument.
#define CASE(...)                                                                       \
  Case {                                                                                \
#__VA_ARGS__, [](Inputs & in, const NodeName& name) { return NodeOf(__VA_ARGS__); } \
  }

std::vector<Case> ElementCases() {
  return {
      CASE(Add(in.x, 1, name)),
      CASE(Sub(1, in.x, name)),
      CASE(Mul(in.x, in.y, name)),
      CASE(Div(in.x, in.y, name)),
      CASE(Div(in.i, in.i, name)),
      CASE(FloorDiv(in.x, in.y, name)),
      CASE(FloorMod(in.x, in.y, name)),
      CASE(Maximum(in.x, 0, name)),
      CASE(Minimum(in.x, 0, name)),
      CASE(Pow(in.x, 2, name)),
      CASE(SquaredDifference(in.x, in.y, name)),
      CASE(AddN({in.x, in.y}, name)),
      CASE(Equal(in.x, in.y, name)),
      CASE(NotEqual(in.x, in.y, name)),
      CASE(Less(in.x, in.y, name)),
      CASE(LessEqual(in.x, in.y, name)),
      CASE(Greater(in.x, in.y, name)),
      CASE(GreaterEqual(in.x, in.y, name)),
      CASE(LogicalAnd(in.b, in.b, name)),
      CASE(LogicalOr(in.b, in.b, name)),
      CASE(LogicalNot(in.b, name)),
      CASE(Neg(in.x, name)),
      CASE(Abs(in.x, name)),
      CASE(Sign(in.x, name)),
      CASE(Exp(in.x, name)),
      CASE(Expm1(in.x, name)),
      CASE(Log(in.x, name)),
      CASE(Log1p(in.x, name)),
      CASE(Sqrt(in.x, name)),
      CASE(Rsqrt(in.x, name)),
      CASE(Square(in.x, name)),
      CASE(Reciprocal(in.x, name)),
      CASE(Sin(in.x, name)),
      CASE(Cos(in.x, name)),
      CASE(Tan(in.x, name)),
      CASE(Erf(in.x, name)),
      CASE(Floor(in.x, name)),
      CASE(Ceil(in.x, name)),
      CASE(Round(in.x, name)),
      CASE(IsNan(in.x, name)),
      CASE(IsInf(in.x, name)),
      CASE(IsFinite(in.x, name)),
      CASE(SelectV2(in.b, in.x, in.y, name)),
      CASE(Select(in.b, in.x, in.y, name)),
      CASE(ClipByValue(in.x, 0, 1, name)),
      CASE(ClipByNorm(in.x, 1, name)),
      CASE(GlobalNorm({Gradient{in.x}, Gradient{in.y}}, name)),
      CASE(ClipByGlobalNorm({Gradient{in.x}}, 1, name)),
  };
}

std::vector<Case> ShapeCases() {
  return {
      CASE(Identity(in.x, name)),
      CASE(IdentityN({in.x, in.y}, name)),
      CASE(StopGradient(in.x, name)),
      CASE(ShapeOf(in.x, DType::kInt32, name)),
      CASE(Size(in.x, DType::kInt32, name)),
      CASE(Rank(in.x, name)),
      CASE(Reshape(in.x, {-1}, name)),
      CASE(ExpandDims(in.x, 0, name)),
      CASE(Squeeze(in.x, {}, name)),
      CASE(Cast(in.x, DType::kInt32, name)),
      CASE(BroadcastTo(in.x, {2, 4, 6}, name)),
      CASE(Concat({in.x, in.y}, 0, name)),
      CASE(Split(in.x, 0, 2, name)),
      CASE(SplitV(in.x, {1, 3}, 0, name)),
      CASE(Pack({in.x, in.y}, 0, name)),
      CASE(Unpack(in.x, 4, 0, name)),
      CASE(Tile(in.x, {1, 2}, name)),
      CASE(Transpose(in.x, {1, 0}, name)),
      CASE(InvertPermutation(in.i, name)),
      CASE(Reverse(in.x, 0, name)),
      CASE(Slice(in.x, {0, 0}, {1, 1}, name)),
      CASE(StridedSlice(in.x, {0, 0}, {1, 1}, {1, 1}, {}, name)),
      CASE(Pad(in.x, {{1, 1}, {0, 0}}, name)),
      CASE(Pad(in.x, {{1, 1}, {0, 0}}, 3, name)),
      CASE(Sum(in.x, name)),
      CASE(Sum(in.x, 0, false, name)),
      CASE(Mean(in.x, name)),
      CASE(Mean(in.x, {0, 1}, true, name)),
      CASE(Max(in.x, name)),
      CASE(Max(in.x, 0, false, name)),
      CASE(Min(in.x, name)),
      CASE(Min(in.x, 0, false, name)),
      CASE(Prod(in.x, name)),
      CASE(Prod(in.x, 0, false, name)),
      CASE(All(in.b, name)),
      CASE(All(in.b, 0, false, name)),
      CASE(Any(in.b, name)),
      CASE(Any(in.b, 0, false, name)),
      CASE(ArgMax(in.x, 0, DType::kInt64, name)),
      CASE(ArgMin(in.x, 0, DType::kInt64, name)),
      CASE(Cumsum(in.x, 0, false, false, name)),
      CASE(Cumprod(in.x, 0, false, false, name)),
      CASE(Gather(in.x, in.i, 0, 0, name)),
      CASE(OneHot(in.i, 3, 1.0f, in.s, -1, name)),
      CASE(OneHot(in.i, 3, DType::kFloat32, name)),
      CASE(Unique(in.i, DType::kInt32, name)),
      CASE(UniqueWithCounts(in.i, DType::kInt32, name)),
      CASE(Where(in.b, name)),
      CASE(UnsortedSegmentSum(in.x, in.i, in.n, name)),
      CASE(SegmentSum(in.x, in.i, name)),
      CASE(SegmentMean(in.x, in.i, name)),
      CASE(SparseToDense(in.i, {9}, in.i, -1, true, name)),
      CASE(DynamicPartition(in.x, in.i, 2, name)),
      CASE(DynamicStitch({in.i}, {in.x}, name)),
      CASE(MatMul(in.x, in.z, false, false, name)),
      CASE(BatchMatMul(in.x, in.z, false, false, name)),
  };
}

std::vector<Case> SourceCases() {
  return {
      CASE(Const(in.g, Tensor::Scalar(1.0f), name)),
      CASE(Const(in.g, 2, name)),
      CASE(Const(in.g, "text", name)),
      CASE(Const(in.g, std::vector<float>{1, 2}, name)),
      CASE(Const(in.g, std::vector<float>{1, 2}, Shape{2, 1}, name)),
      CASE(ScalarLike(in.x, 2, name)),
      CASE(IntVector(in.g, {1, 2}, name)),
      CASE(ShapeConst(in.g, Shape{1, 2}, name)),
      CASE(Placeholder(in.g, DType::kFloat32, Shape{}, name)),
      CASE(PlaceholderWithDefault(in.x, Shape{4, 6}, name)),
      CASE(Fill(in.shape, 1.0f, name)),
      CASE(Range(0, in.n, 1, name)),
      CASE(ZerosLike(in.x, name)),
      CASE(OnesLike(in.x, name)),
      CASE(RandomUniform(in.shape, DType::kFloat32, 0, name)),
      CASE(RandomStandardNormal(in.shape, DType::kFloat32, 0, name)),
      CASE(TruncatedNormal(in.shape, DType::kFloat32, 0, name)),
      CASE(RandomUniformInt(in.shape, 0, in.n, 0, name)),
      CASE(Multinomial(in.x, 3, 0, DType::kInt64, name)),
      CASE(RandomShuffle(in.x, 0, name)),
      CASE(StatelessRandomUniform(in.shape, in.seed, DType::kFloat32, name)),
      CASE(StatelessRandomNormal(in.shape, in.seed, DType::kFloat32, name)),
      CASE(StatelessTruncatedNormal(in.shape, in.seed, DType::kFloat32, name)),
      CASE(StatelessRandomUniformInt(in.shape, in.seed, 0, in.n, name)),
      CASE(StatelessRandomUniformFullInt(in.shape, in.seed, DType::kInt32, name)),
      CASE(EmptyTensorList(in.g, DType::kFloat32, Shape{}, name)),
      CASE(TensorListPushBack(in.list, in.s, name)),
      CASE(TensorListPopBack(in.list, DType::kFloat32, Shape{}, name)),
  };
}

std::vector<Case> NetworkCases() {
  return {
      CASE(Relu(in.x, name)),
      CASE(Relu6(in.x, name)),
      CASE(LeakyRelu(in.x, 0.1f, name)),
      CASE(Elu(in.x, name)),
      CASE(Selu(in.x, name)),
      CASE(Sigmoid(in.x, name)),
      CASE(Tanh(in.x, name)),
      CASE(Softplus(in.x, name)),
      CASE(Swish(in.x, name)),
      CASE(Conv2D(in.image, in.filter, {}, name)),
      CASE(DepthwiseConv2dNative(in.image, in.filter, {}, name)),
      CASE(MaxPool(in.image, {}, name)),
      CASE(AvgPool(in.image, {}, name)),
      CASE(FusedBatchNorm(in.image, in.v, in.v, in.v, in.v, {}, name)),
      CASE(BiasAdd(in.x, in.v, "NHWC", name)),
      CASE(LRN(in.image, {}, name)),
      CASE(L2Loss(in.x, name)),
      CASE(InTopK(in.x, in.i, 2, name)),
      CASE(Softmax(in.x, name)),
      CASE(LogSoftmax(in.x, name)),
      CASE(SoftmaxCrossEntropyWithLogits({.labels = in.y, .logits = in.x}, name)),
      CASE(SparseSoftmaxCrossEntropyWithLogits({.labels = in.i, .logits = in.x}, name)),
      CASE(ScalarSummary("tag", in.s, name)),
      CASE(HistogramSummary("tag", in.x, name)),
      CASE(ImageSummary("tag", in.image, 3, name)),
      CASE(MergeSummary({in.text}, name)),
      CASE(ReadFile(in.text, name)),
      CASE(DecodeRaw(in.text, DType::kUint8, true, name)),
      CASE(DecodeCSV(in.text, {Tensor::Scalar(1.0f)}, {}, name)),
      CASE(DecodeImage(in.text, 0, name)),
      CASE(DecodePng(in.text, 0, name)),
      CASE(DecodeJpeg(in.text, {}, name)),
      CASE(EncodeJpeg(in.pixels, {}, name)),
      CASE(EncodePng(in.pixels, -1, name)),
      CASE(CollectiveReduce(in.x, in.keys, "Add", "Id", name)),
      CASE(CollectiveGather(in.x, in.keys, name)),
      CASE(CollectiveReduceScatter(in.x, in.keys, "Add", "Id", name)),
      CASE(CollectiveBcastSend(in.x, in.keys, name)),
      CASE(CollectiveBcastRecv(in.g, DType::kFloat32, Shape{2}, in.keys, name)),
      CASE(CollectiveBarrier(in.g, in.keys, name)),
      CASE(NoOp(in.g, name)),
      CASE(Group(in.g, {in.x.node}, name)),
      CASE(Assert(in.yes, {in.x}, 3, name)),
      CASE(Print(in.x, {in.y}, "", -1, 3, name)),
      CASE(PrintV2(in.text, "stderr", "\n", name)),
  };
}

std::vector<Case> StateCases() {
  return {
      CASE(VarHandleOp(in.g, DType::kFloat32, Shape{}, "", "", name)),
      CASE(ReadVariableOp(in.h, name)),
      CASE(AssignVariableOp(in.h, in.x, name)),
      CASE(AssignAddVariableOp(in.h, in.x, name)),
      CASE(AssignSubVariableOp(in.h, in.x, name)),
      CASE(VarIsInitializedOp(in.h, name)),
      CASE(VariableShape(in.h, DType::kInt32, name)),
      CASE(ResourceGather(in.h, in.i, name)),
      CASE(ResourceScatterAdd(in.h, in.i, 1, name)),
      CASE(ResourceScatterSub(in.h, in.i, 1, name)),
      CASE(ResourceScatterUpdate(in.h, in.i, 1, name)),
      CASE(in.w.Read(name)),
      CASE(in.w.Gather(in.i, name)),
      CASE(in.w.Assign(in.x, name)),
      CASE(in.w.AssignAdd(in.x, name)),
      CASE(in.w.AssignSub(in.x, name)),
      CASE(in.parts.Read(name)),
      CASE(in.parts.Gather(in.i, name)),
      CASE(in.parts.Assign(in.x, name)),
      CASE(in.parts.AssignAdd(in.x, name)),
      CASE(in.parts.AssignSub(in.x, name)),
      CASE(ResourceApplyGradientDescent(in.h, in.s, in.x, name)),
      CASE(ResourceApplyMomentum(in.h, in.h1, in.s, in.x, in.s, false, name)),
      CASE(ResourceApplyKerasMomentum(in.h, in.h1, in.s, in.x, in.s, false, name)),
      CASE(ResourceApplyAdagrad(in.h, in.h1, in.s, in.x, name)),
      CASE(ResourceApplyAdagradV2(in.h, in.h1, in.s, in.s, in.x, name)),
      CASE(ResourceApplyKerasAdagrad(in.h, in.h1, in.s, in.s, in.x, name)),
      CASE(ResourceApplyAdam(in.h, in.h1, in.h2, in.adam, in.x, false, name)),
      CASE(ResourceApplyAdamWithAmsgrad(in.h, in.h1, in.h2, in.h3, in.adam, in.x, name)),
      CASE(ResourceApplyRMSProp(in.h, in.h1, in.h2, in.rms, in.x, name)),
      CASE(ResourceApplyCenteredRMSProp(in.h, in.h1, in.h2, in.h3, in.rms, in.x, name)),
      CASE(ResourceApplyFtrl(in.h, in.h1, in.h2, in.x, in.ftrl, name)),
      CASE(ResourceApplyFtrlV2(in.h, in.h1, in.h2, in.x, in.ftrl, in.s, name)),
      CASE(ResourceApplyWeightDecay(in.h, in.s, name)),
      CASE(ResourceSparseApplyMomentum(in.h, in.h1, in.s, in.x, in.i, in.s, false, name)),
      CASE(ResourceSparseApplyKerasMomentum(in.h, in.h1, in.s, in.x, in.i, in.s, false, name)),
      CASE(ResourceSparseApplyAdagrad(in.h, in.h1, in.s, in.x, in.i, name)),
      CASE(ResourceSparseApplyAdagradV2(in.h, in.h1, in.s, in.s, in.x, in.i, name)),
      CASE(ResourceSparseApplyAdam(in.h, in.h1, in.h2, in.adam, in.x, in.i, false, name)),
      CASE(ResourceSparseApplyKerasAdagrad(in.h, in.h1, in.s, in.s, in.x, in.i, name)),
      CASE(ResourceSparseApplyRMSProp(in.h, in.h1, in.h2, in.rms, in.x, in.i, name)),
      CASE(ResourceSparseApplyCenteredRMSProp(in.h, in.h1, in.h2, in.h3, in.rms, in.x, in.i, name)),
      CASE(ResourceSparseApplyFtrl(in.h, in.h1, in.h2, in.x, in.i, in.ftrl, name)),
      CASE(ResourceSparseApplyFtrlV2(in.h, in.h1, in.h2, in.x, in.i, in.ftrl, in.s, name)),
      CASE(GlobalVariablesInitializer(in.g, name)),
      CASE(LocalVariablesInitializer(in.g, name)),
  };
}

std::vector<Case> FunctionCases() {
  return {
      CASE(Call(
          in.g, {in.x}, [](Graph&, const std::vector<Output>& args) { return args; }, name)),
      CASE(If(
          in.n, {in.x}, [](Graph&, const std::vector<Output>& args) { return args; },
          [](Graph&, const std::vector<Output>& args) { return args; }, name)),
  };
}

class NodeNamesTest : public ::testing::TestWithParam<Case> {
 protected:
  NodeNamesTest() { RegisterOps(); }
};

TEST_P(NodeNamesTest, TheCallerNamesTheNode) {
  Inputs in;
  const NodeName name = "mine";
  const int line = __LINE__ - 1;
  const Node* first = GetParam().make(in, name);
  EXPECT_EQ(first->name(), "mine") << GetParam().call;
  EXPECT_EQ(first->site().line, line) << GetParam().call;
  EXPECT_EQ(GetParam().make(in, name)->name(), "mine_1") << GetParam().call;
}

INSTANTIATE_TEST_SUITE_P(Elements, NodeNamesTest, ::testing::ValuesIn(ElementCases()));
INSTANTIATE_TEST_SUITE_P(Shapes, NodeNamesTest, ::testing::ValuesIn(ShapeCases()));
INSTANTIATE_TEST_SUITE_P(Sources, NodeNamesTest, ::testing::ValuesIn(SourceCases()));
INSTANTIATE_TEST_SUITE_P(Networks, NodeNamesTest, ::testing::ValuesIn(NetworkCases()));
INSTANTIATE_TEST_SUITE_P(States, NodeNamesTest, ::testing::ValuesIn(StateCases()));
INSTANTIATE_TEST_SUITE_P(Functions, NodeNamesTest, ::testing::ValuesIn(FunctionCases()));

// Functions that add several nodes put them under the name.
TEST(CompositeNamesTest, TheNameIsThePrefix) {
  RegisterOps();
  Inputs in;
  EXPECT_EQ(Dropout(in.x, 0.5, 0, "mine").node->name().rfind("mine/", 0), 0u);
  EXPECT_EQ(StatelessDropout(in.x, 0.5, in.seed, "ours").node->name().rfind("ours/", 0), 0u);
  EXPECT_EQ(SigmoidCrossEntropyWithLogits({.labels = in.y, .logits = in.x}, "loss").node->name().rfind("loss", 0), 0u);
  EXPECT_EQ(ReportUninitializedVariables(in.g, "report").node->name().rfind("report/", 0), 0u);
  const Output last = Dropout(in.x, 0.5);
  EXPECT_EQ(last.node->site().line, __LINE__ - 1);
}

// A variable of parts adds many nodes for one call. All have the line of the call.
TEST(CompositeNamesTest, EveryNodeForAVariableOfPartsHasTheLine) {
  RegisterOps();
  Inputs in;
  const auto check = [&in](size_t before, int line) {
    const std::vector<Node*> nodes = in.g.nodes();
    EXPECT_GT(nodes.size(), before + 2);
    for (size_t i = before; i < nodes.size(); ++i) EXPECT_EQ(nodes[i]->site().line, line) << nodes[i]->Describe();
  };
  size_t before = in.g.nodes().size();
  in.parts.AssignAdd(in.x);
  check(before, __LINE__ - 1);
  before = in.g.nodes().size();
  in.parts.Read();
  check(before, __LINE__ - 1);
  before = in.g.nodes().size();
  in.parts.Gather(in.i);
  check(before, __LINE__ - 1);
}

}  // namespace
}  // namespace cohort::ops
