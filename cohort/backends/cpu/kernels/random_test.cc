// Golden values come from TensorFlow 2.21's ops of the same name, seeds and shapes.
#include "cohort/ops/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;

Output ShapeVector(Graph& graph, std::vector<int32_t> dims) { return ops::Const(graph, dims); }
Output Seed(Graph& graph) { return ops::Const(graph, std::vector<int64_t>{5, -7}); }

std::vector<double> AsDoubles(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    values.push_back(tensor.dtype() == DType::kFloat32   ? static_cast<double>(tensor.data<float>()[i])
                     : tensor.dtype() == DType::kFloat64 ? tensor.data<double>()[i]
                                                         : static_cast<double>(float(tensor.data<bfloat16>()[i])));
  }
  return values;
}

// The first six of 1003 numbers, the last two, their sum.
struct Golden {
  std::string op;
  DType dtype;
  std::vector<double> first;
  std::vector<double> last;
  double sum;
  double tolerance;  // of an element: the C library's log, sin and cos may differ in the last digit
};

std::vector<Golden> UniformNumbers() {
  return {
      {"StatelessRandomUniform",
       DType::kFloat32,
       {0.5455765724182129, 0.19691693782806396, 0.2314612865447998, 0.44334709644317627, 0.20777475833892822,
        0.3836883306503296},
       {0.9068924188613892, 0.9686079025268555},
       495.7031488418579,
       0},
      {"StatelessRandomUniform",
       DType::kFloat64,
       {0.36461347005687084, 0.8516906247350333, 0.6621983878010667, 0.8380658777576167, 0.35022816897442977,
        0.45263589570984464},
       {0.6235299361101025, 0.42646076629006124},
       515.5594989223089,
       0},
      {"StatelessRandomUniform",
       DType::kBfloat16,
       {0.90625, 0.1484375, 0.046875, 0.1953125, 0.7265625, 0.3984375},
       {0.1015625, 0.6875},
       500.5625,
       0},
  };
}

std::vector<Golden> NormalNumbers() {
  return {
      {"StatelessRandomNormal",
       DType::kFloat32,
       {1.040164828300476, 0.36039069294929504, 0.5961830615997314, -1.603512167930603, 1.183251976966858,
        -1.320043921470642},
       {0.3714517652988434, -0.22946548461914062},
       28.935358849645127,
       1e-6},
      {"StatelessRandomNormal",
       DType::kFloat64,
       {-1.1402788707455378, 0.8471121780884222, -0.7724662697401937, 0.4771541041195787, 0.4247542076626247,
        -1.384891589317744},
       {-0.2840009683151146, -1.116942936536679},
       -38.4319152481586,
       1e-14},
      {"StatelessRandomNormal",
       DType::kBfloat16,
       {1.0390625, 0.361328125, 0.59765625, -1.6015625, 1.1796875, -1.3203125},
       {0.37109375, -0.2294921875},
       28.898502349853516,
       0},
  };
}

std::vector<Golden> TruncatedNumbers() {
  return {
      {"StatelessTruncatedNormal",
       DType::kFloat32,
       {1.040164828300476, 0.36039069294929504, 0.5961830615997314, -1.603512167930603, 0.600432813167572,
        -0.23023304343223572},
       {-0.6667643785476685, -0.6537147164344788},
       -2.5042230810504407,
       1e-6},
      {"StatelessTruncatedNormal",
       DType::kFloat64,
       {-1.1402788707455378, 0.8471121780884222, -0.9776330920775179, 0.6296017743337661, -0.7956929046290458,
        -0.8546977899634592},
       {-0.6964388204273556, 1.5597257316784716},
       2.3146684982647905,
       1e-14},
      {"StatelessTruncatedNormal",
       DType::kBfloat16,
       {1.0390625, 0.361328125, 0.59765625, -1.6015625, 0.6015625, -0.23046875},
       {-0.66796875, -0.65234375},
       -2.5217361450195312,
       0},
  };
}

void ExpectNumbers(const std::vector<Golden>& all) {
  for (const Golden& golden : all) {
    SCOPED_TRACE(golden.op + " " + std::string(DTypeName(golden.dtype)));
    Graph graph;
    const Output out =
        graph.Op(golden.op).Input(ShapeVector(graph, {1003})).Input(Seed(graph)).Attr("dtype", golden.dtype).Finish1();
    const std::vector<double> values = AsDoubles(Interpreter().Run1(out));
    ASSERT_EQ(values.size(), 1003u);
    double sum = 0;
    for (const double value : values) sum += value;
    EXPECT_NEAR(sum, golden.sum, 1e-9 + 1003 * golden.tolerance);
    for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(values[i], golden.first[i], golden.tolerance) << i;
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(values[1001 + i], golden.last[i], golden.tolerance) << i;
  }
}

TEST(RandomTest, StatelessNumbersAreTensorFlows) {
  ExpectNumbers(UniformNumbers());
  ExpectNumbers(NormalNumbers());
  ExpectNumbers(TruncatedNumbers());
}

template <typename T>
std::vector<T> StatelessInts(T low, T high, int count) {
  Graph graph;
  const Output seed = ops::Const(graph, std::vector<int32_t>{5, -7});
  const Output out =
      ops::StatelessRandomUniformInt(ShapeVector(graph, {count}), seed, ops::Const(graph, Tensor::Scalar(low)),
                                     ops::Const(graph, Tensor::Scalar(high)));
  return Interpreter().Run1(out).ToVector<T>();
}

TEST(RandomTest, StatelessIntegersAreTensorFlows) {
  EXPECT_THAT(StatelessInts<int32_t>(-3, 1000, 7), ElementsAre(312, 256, 470, 44, 681, 985, 415));
  EXPECT_THAT(StatelessInts<int64_t>(-3, 1000, 7), ElementsAre(10, 330, 683, 10, 567, 813, 32));
  Graph graph;
  const Output shape = ShapeVector(graph, {5});
  const Output full32 = ops::StatelessRandomUniformFullInt(shape, Seed(graph), DType::kInt32);
  const Output full64 = ops::StatelessRandomUniformFullInt(shape, Seed(graph), DType::kInt64);
  Interpreter run;
  EXPECT_THAT(run.Run1(full32).ToVector<int32_t>(),
              ElementsAre(-263858828, -283560813, -2061655930, 1496891289, 941267037));
  EXPECT_THAT(run.Run1(full64).ToVector<int64_t>(),
              ElementsAre(-1217884414231063180, 6429099134155595910, 6210776917186615389, -4319571297749342025,
                          -2720700472858666360));
}

Node* Stateful(Graph& graph, const std::string& op, DType dtype) {
  return graph.Op(op).Input(ShapeVector(graph, {5})).Attr("dtype", dtype).Attr("seed", 11).Attr("seed2", 22).Finish();
}

TEST(RandomTest, StatefulNumbersAreTensorFlowsInEveryRun) {
  const std::vector<Golden> two_runs = {
      {"RandomUniform",
       DType::kFloat32,
       {0.12248075008392334, 0.993476390838623, 0.5753567218780518, 0.3502579927444458, 0.8236185312271118},
       {0.29779303073883057, 0.8336230516433716, 0.3900117874145508, 0.9489850997924805, 0.8055928945541382},
       0,
       0},
      {"RandomStandardNormal",
       DType::kFloat32,
       {-0.0839754194021225, 2.047571897506714, 0.8496314883232117, -0.6194000244140625, 0.11621642857789993},
       {-1.346555233001709, 0.780705988407135, -0.43237200379371643, 1.30238676071167, -0.6151050329208374},
       0,
       1e-6},
      {"TruncatedNormal",
       DType::kFloat32,
       {-0.0839754194021225, 0.8496314883232117, -0.6194000244140625, 0.11621642857789993, -1.4444817304611206},
       {-1.346555233001709, 0.780705988407135, -0.43237200379371643, 1.30238676071167, -0.6600343585014343},
       0,
       1e-6},
      {"RandomUniform",
       DType::kFloat64,
       {0.9798463974026523, 0.6028539917436577, 0.5889484630341353, 0.08693854364297149, 0.5047025613675449},
       {0.38234424746338846, 0.12009466988776829, 0.44474334212487854, 0.6127418545799361, 0.21046129112682577},
       0,
       0},
  };
  for (const Golden& golden : two_runs) {
    SCOPED_TRACE(golden.op);
    Graph graph;
    const Output out = Stateful(graph, golden.op, golden.dtype)->output(0);
    Interpreter run;
    const std::vector<double> first = AsDoubles(run.Run1(out));
    const std::vector<double> second = AsDoubles(run.Run1(out));
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(first[i], golden.first[i], golden.tolerance) << i;
      EXPECT_NEAR(second[i], golden.last[i], golden.tolerance) << i;
    }
  }
}

TEST(RandomTest, StatefulIntegersAndShufflesAreTensorFlows) {
  Graph graph;
  const auto ints = [&](const Tensor& low, const Tensor& high) {
    return graph.Op("RandomUniformInt")
        .Input(ShapeVector(graph, {6}))
        .Input(ops::Const(graph, low))
        .Input(ops::Const(graph, high))
        .Attr("seed", 11)
        .Attr("seed2", 22)
        .Finish1();
  };
  const Output ints32 = ints(Tensor::Scalar(10), Tensor::Scalar(20));
  const Output ints64 = ints(Tensor::Scalar(int64_t{10}), Tensor::Scalar(int64_t{20}));
  const Output shuffled = graph.Op("RandomShuffle")
                              .Input(ops::Const(graph, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}))
                              .Attr("seed", 11)
                              .Attr("seed2", 22)
                              .Finish1();
  Interpreter run;
  EXPECT_THAT(run.Run1(ints32).ToVector<int32_t>(), ElementsAre(19, 10, 18, 15, 15, 16));
  EXPECT_THAT(run.Run1(ints32).ToVector<int32_t>(), ElementsAre(13, 17, 18, 13, 14, 19));
  EXPECT_THAT(run.Run1(ints64).ToVector<int64_t>(), ElementsAre(19, 18, 11, 19, 16, 16));
  EXPECT_THAT(run.Run1(ints64).ToVector<int64_t>(), ElementsAre(15, 16, 18, 18, 15, 14));
  EXPECT_THAT(run.Run1(shuffled).ToVector<int32_t>(), ElementsAre(9, 0, 4, 1, 5, 6, 7, 3, 8, 2));
  EXPECT_THAT(run.Run1(shuffled).ToVector<int32_t>(), ElementsAre(8, 4, 5, 1, 9, 0, 3, 6, 7, 2));
}

TEST(RandomTest, ThreadsDoNotChangeTheNumbers) {
  for (const char* op : {"StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"}) {
    Graph graph;
    const Output out =
        graph.Op(op).Input(ShapeVector(graph, {99991})).Input(Seed(graph)).Attr("dtype", DType::kFloat32).Finish1();
    const std::vector<float> one = Interpreter(1).Run1(out).ToVector<float>();
    EXPECT_EQ(one, Interpreter(2).Run1(out).ToVector<float>()) << op;
    EXPECT_EQ(one, Interpreter(3).Run1(out).ToVector<float>()) << op;
  }
}

TEST(RandomTest, RowsAreShuffledWhole) {
  Graph graph;
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("r" + std::to_string(i / 2) + "c" + std::to_string(i % 2));
  const Output value = ops::Const(graph, names, Shape{10, 2});
  const std::vector<std::string> out = Interpreter().Run1(ops::RandomShuffle(value, 3)).ToVector<std::string>();
  std::vector<std::string> seen;
  for (size_t r = 0; r < 10; ++r) {
    EXPECT_EQ(out[2 * r].substr(0, out[2 * r].size() - 2), out[2 * r + 1].substr(0, out[2 * r + 1].size() - 2));
    seen.push_back(out[2 * r]);
    seen.push_back(out[2 * r + 1]);
  }
  EXPECT_NE(out, names);
  std::sort(seen.begin(), seen.end());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(seen, names);
}

TEST(RandomTest, UnseededKernelsDiffer) {
  Graph graph;
  const Output a = ops::RandomUniform(ShapeVector(graph, {4}));
  const Output b = ops::RandomUniform(ShapeVector(graph, {4}));
  const std::vector<Tensor> values = Interpreter().Run({a, b});
  EXPECT_NE(values[0].ToVector<float>(), values[1].ToVector<float>());
}

TEST(RandomTest, SeedsFollowTensorFlowsRules) {
  Graph graph;
  EXPECT_EQ(ops::SeedPair(graph, 0), (std::pair<int64_t, int64_t>(0, 0)));
  EXPECT_EQ(ops::SeedPair(graph, 5), (std::pair<int64_t, int64_t>(87654321, 5)));
  graph.set_seed(42);
  EXPECT_EQ(ops::SeedPair(graph, 5), (std::pair<int64_t, int64_t>(42, 5)));
  ShapeVector(graph, {1});
  EXPECT_EQ(ops::SeedPair(graph, 0), (std::pair<int64_t, int64_t>(42, 1)));  // one node so far
  graph.set_seed(0x7fffffff);
  EXPECT_EQ(ops::SeedPair(graph, 0x7fffffff), (std::pair<int64_t, int64_t>(0, 0x7fffffff)));
}

TEST(RandomTest, RefusesWhatMakesNoSense) {
  Graph graph;
  const Output shape = ShapeVector(graph, {2});
  const Output empty = ops::RandomUniformInt(shape, ops::Const(graph, 7), ops::Const(graph, 7));
  try {
    Interpreter().Run1(empty);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Need minval < maxval, got 7 >= 7"));
  }
  EXPECT_THROW(ops::StatelessRandomUniform(shape, ops::Const(graph, std::vector<int32_t>{1, 2, 3})),
               InvalidArgumentError);
  EXPECT_THROW(ops::RandomUniform(ops::Const(graph, 3)), InvalidArgumentError);  // a scalar is no shape
  EXPECT_EQ(Interpreter().Run1(ops::RandomUniform(ShapeVector(graph, {3, 0}))).shape(), (Shape{3, 0}));
}

}  // namespace
}  // namespace cohort
