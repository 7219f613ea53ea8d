// Which ops recorded steps have, and why a step is not recorded.
#include <string>

#include "cohort/backends/cuda/testing/recording_fixture.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/random.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/training.h"
#include "cohort/ops/variables.h"

namespace cohort::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Host values that follow from shapes or are fed.
TEST_F(RecordingTest, ValuesFromTheHostAreThoseOfTheStep) {
  std::vector<Tensor> results[2];
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Graph g;
    const DeviceScope scope(g, "/device:GPU:0");
    const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "x");
    const Output shape = ops::Placeholder(g, DType::kInt32, Shape{2}, "shape");
    const Output size = ops::Cast(ops::Size(x), DType::kFloat32);
    const Output y = ops::Reshape(x / size, shape);
    const Output of_rows = ops::Sum(y, {1});
    const Output shape_of_result = ops::ShapeOf(of_rows);
    Session session(g, "", Config());
    for (int i = 0; i < 12; ++i) {
      const int rows = 1 + i % 3;
      const FeedList feeds = {{x, SeededNoise(Shape{6}, i)}, {shape, Tensor::Vector<int32_t>({rows, 6 / rows})}};
      const RunResults values = session.Run(feeds, {of_rows, size, shape_of_result});
      results[recorded].insert(results[recorded].end(), values.begin(), values.end());
    }
  }
  ExpectSame(results[1], results[0]);
}

TEST_F(RecordingTest, AFetchedValueOfTheHostIsTheProgramsOwn) {
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1, -1}, "x");
  const std::vector<Output> fetches = {ops::ShapeOf(x), x * 2.0f};
  Session session(g, "", Config());
  for (int i = 0; i < 5; ++i) {
    const Asked asked = AskedBy([&] {
      Tensor shape = session.Run({{x, SeededNoise(Shape{2, 3}, i)}}, fetches)[0];
      EXPECT_THAT(shape.ToVector<int32_t>(), ::testing::ElementsAre(2, 3)) << i;
      shape.data<int32_t>()[0] = -1;
    });
    EXPECT_EQ(asked.graphs, i > 0 ? 1 : 0) << i;
  }
}

// The numbers of a step follow those of the step before, and are the same with and without a graph.
TEST_F(RecordingTest, RandomNumbersAreNewInEachStep) {
  std::vector<Tensor> results[2];
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Graph g;
    const DeviceScope scope(g, "/device:GPU:0");
    const Output shape = ops::Const(g, std::vector<int32_t>{5});
    const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "x");
    const std::vector<Output> fetches = {
        ops::RandomUniform(shape, DType::kFloat32, 7) * 2.0f,
        ops::RandomStandardNormal(shape, DType::kFloat32, 8) * 2.0f,
        ops::TruncatedNormal(shape, DType::kFloat32, 9) * 2.0f,
        ops::RandomUniformInt(shape, ops::Const(g, int64_t{3}), ops::Const(g, int64_t{50}), 10),
        ops::RandomShuffle(x, 11),
        ops::Dropout(x, 0.5, 12)};
    Session session(g, "", Config());
    for (int i = 0; i < 6; ++i) {
      const Asked asked = AskedBy([&] {
        const RunResults values = session.Run({{x, SeededNoise(Shape{9}, 1)}}, fetches);
        results[recorded].insert(results[recorded].end(), values.begin(), values.end());
      });
      EXPECT_EQ(asked.graphs, recorded && i > 0 ? 1 : 0) << i;
    }
  }
  ExpectSame(results[1], results[0]);
  const size_t n = 6;
  for (size_t i = 0; i < n; ++i) EXPECT_FALSE(SameBits(results[1][4 * n + i], results[1][5 * n + i])) << i;
}

// Seeds that the card computes, as for Keras's dropout.
TEST_F(RecordingTest, SeedsMayFollowFromAVariable) {
  std::vector<Tensor> results[3];
  for (int way = 0; way < 3; ++way) {  // on the CPU, launched, recorded
    config::EnableStepRecording(way == 2);
    Graph g;
    const DeviceScope scope(g, way == 0 ? "/device:CPU:0" : "/device:GPU:0");
    const ops::Variable count(g, Tensor::Scalar(int64_t{-3}), {.name = "count"});
    const Output number = ops::Cast(count.Read(), DType::kInt32);
    const Output seed = ops::Mul(number, ops::Const(g, std::vector<int32_t>{1, 5}));
    const Output shape = ops::Const(g, std::vector<int32_t>{3, 7});
    const std::vector<Output> fetches = {ops::StatelessRandomUniform(shape, seed) * 2.0f,
                                         ops::StatelessDropout(ops::Const(g, SeededNoise(Shape{40}, 2)), 0.3, seed)};
    const ControlDependencies after(g, {number.node});
    Node* const add = count.AssignAdd(ops::Const(g, int64_t{1}), "add");
    Session session(g, "", Config());
    session.Run(count.initializer());
    for (int i = 0; i < 6; ++i) {
      const Asked asked = AskedBy([&] {
        const RunResults values = session.Run({}, fetches, {add});
        results[way].insert(results[way].end(), values.begin(), values.end());
      });
      EXPECT_EQ(asked.graphs, way == 2 && i > 0 ? 1 : 0) << i;
    }
  }
  ExpectSame(results[1], results[0]);
  ExpectSame(results[2], results[0]);
  EXPECT_FALSE(SameBits(results[2][8], results[2][10]));
}

// As optimizers sum repeated rows of a table; how many rows there are then need not come to the host.
TEST_F(RecordingTest, UpdatesByTheSumsOfRepeatedRows) {
  std::vector<Tensor> results[3];
  for (int way = 0; way < 3; ++way) {  // on the CPU, launched, recorded
    config::EnableStepRecording(way == 2);
    Graph g;
    const DeviceScope scope(g, way == 0 ? "/device:CPU:0" : "/device:GPU:0");
    const ops::Variable table(g, SeededNoise(Shape{9, 2}, 1), {.name = "table"});
    const ops::Variable slot(g, Tensor::Vector<float>(std::vector<float>(18, 0.5f)).Reshaped(Shape{9, 2}),
                             {.name = "slot"});
    const Output ids = ops::Placeholder(g, DType::kInt32, Shape{-1}, "ids");
    const Output values = ops::Placeholder(g, DType::kFloat32, Shape{-1, 2}, "values");
    const ops::UniqueResult unique = ops::Unique(ids);
    const Output sums = ops::UnsortedSegmentSum(values, unique.idx, ops::Size(unique.y));
    Node* const update =
        ops::ResourceSparseApplyAdagrad(table.handle(), slot.handle(), ops::Const(g, 0.1f), sums, unique.y);
    Session session(g, "", Config());
    session.Run({}, {}, {table.initializer(), slot.initializer()});
    for (int i = 0; i < 6; ++i) {
      const FeedList feeds = {{ids, Tensor::Vector<int32_t>({i, 8, i, 3, 8, i / 2})},
                              {values, SeededNoise(Shape{6, 2}, 10 + i)}};
      const Asked asked = AskedBy([&] { session.Run(feeds, {}, {update}); });
      EXPECT_EQ(asked.graphs, way == 2 && i > 0 ? 1 : 0) << i;
      results[way].push_back(session.Run(table.Read()));
    }
  }
  ExpectSame(results[2], results[1]);
  for (size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_THAT(results[1][i].ToVector<float>(), Pointwise(FloatNear(1e-5f), results[0][i].ToVector<float>())) << i;
  }
}

// A slice of rows begins where its row does, and cuDNN takes only addresses that are multiples of 16. Here a row of x
// has 300 bytes, and the gradient of a part of `joined` begins behind 72 bytes.
TEST_F(RecordingTest, SlicesOfRowsAreConvolvedAndMultiplied) {
  std::vector<Tensor> results[3];
  for (int way = 0; way < 3; ++way) {  // on the CPU, launched, recorded
    config::EnableStepRecording(way == 2);
    Graph g;
    const DeviceScope scope(g, way == 0 ? "/device:CPU:0" : "/device:GPU:0");
    const Output x = ops::Placeholder(g, DType::kFloat32, Shape{4, 5, 5, 3}, "x");
    const Output filter = ops::Placeholder(g, DType::kFloat32, Shape{3, 3, 3, 2}, "filter");
    const Output rest = ops::Slice(x, {1, 0, 0, 0}, {3, 5, 5, 3});
    const Output first = ops::Slice(x, {0, 0, 0, 0}, {1, 5, 5, 3});
    const Output joined = ops::Concat({ops::Conv2D(first, filter), ops::Conv2D(rest, filter)}, 0);
    const Output matrix = ops::Reshape(ops::Slice(filter, {1, 0, 0, 0}, {1, 3, 3, 2}), {3, 6});
    const Output product = ops::MatMul(ops::Reshape(rest, {-1, 3}), matrix);
    const Output loss = ops::Sum(ops::Square(joined), {0, 1, 2, 3}) + ops::Sum(ops::Square(product), {0, 1});
    std::vector<Output> fetches = {joined, product};
    for (const Gradient& gradient : Gradients({loss}, {x, filter})) fetches.push_back(ToDense(gradient));
    Session session(g, "", Config());
    for (int i = 0; i < 3; ++i) {
      const FeedList feeds = {{x, SeededNoise(x.shape(), i)}, {filter, SeededNoise(filter.shape(), 10 + i)}};
      const Asked asked = AskedBy([&] {
        const RunResults values = session.Run(feeds, fetches);
        results[way].insert(results[way].end(), values.begin(), values.end());
      });
      EXPECT_EQ(asked.graphs, way == 2 && i > 0 ? 1 : 0) << i;
    }
  }
  ExpectSame(results[2], results[1]);
  for (size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_THAT(results[1][i].ToVector<float>(), Pointwise(FloatNear(1e-3f), results[0][i].ToVector<float>())) << i;
  }
}

// Returns what the log says while a graph's target runs four times, and how many graphs were launched.
struct Reason {
  std::string log;
  int64_t graphs = 0;
};

class RefusedSteps : public RecordingTest {
 protected:
  template <typename Make>
  Reason Run(const Make& make, std::vector<Tensor>* values = nullptr) {
    Graph g;
    const DeviceScope scope(g, "/device:GPU:0");
    const Output fetch = make(g);
    Session session(g, "", Config());
    ::testing::internal::CaptureStderr();
    const Asked asked = AskedBy([&] {
      for (int i = 0; i < 4; ++i) {
        Tensor value = session.Run(fetch);
        if (values != nullptr) values->push_back(std::move(value));
      }
    });
    return {::testing::internal::GetCapturedStderr(), asked.graphs};
  }
  static void ExpectOnce(const Reason& reason, const std::string& text) {
    EXPECT_EQ(reason.graphs, 0);
    const size_t first = reason.log.find("are not recorded, because");
    ASSERT_NE(first, std::string::npos) << reason.log;
    EXPECT_EQ(reason.log.find("are not recorded, because", first + 1), std::string::npos) << reason.log;
    EXPECT_THAT(reason.log, HasSubstr(text));
  }
};

TEST_F(RefusedSteps, ShapesThatDependOnTheData) {
  ExpectOnce(Run([](Graph& g) {
               return ops::Where(ops::Identity(ops::Const(g, std::vector<float>{0, 1, 2})));
             }),
             "Where");
  ExpectOnce(Run([](Graph& g) {
               return ops::Unique(ops::Identity(ops::Const(g, std::vector<float>{1, 1, 2}))).y;
             }),
             "Unique");
}

TEST_F(RefusedSteps, PrintAndAssert) {
  ExpectOnce(Run([](Graph& g) {
               const Output x = ops::Identity(ops::Const(g, 1.0f));
               return ops::Print(x, {x}, "printed");
             }),
             "done on the host");
  ExpectOnce(Run([](Graph& g) {
               const Output x = ops::Identity(ops::Const(g, 1.0f));
               const ControlDependencies behind(g, {ops::Assert(x > 0.0f, {x})});
               return x * 2.0f;
             }),
             "Assert");
}

// A graph updates a value in place, so nobody may want the old one afterwards.
TEST_F(RefusedSteps, AValueThatIsWantedAfterItsUpdate) {
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const ops::Variable v(g, Tensor::Vector<float>({1, 2}), {.name = "v"});
  const Output old = v.Read();
  Output sum;
  {
    const ControlDependencies before(g, {old.node});
    Node* const add = v.AssignAdd(ops::Const(g, std::vector<float>{1, 1}), "add");
    const ControlDependencies after(g, {add});
    sum = old + ops::Identity(ops::Const(g, 0.0f));
  }
  Session session(g, "", Config());
  session.Run(v.initializer());
  ::testing::internal::CaptureStderr();
  const Asked asked = AskedBy([&] {
    for (int i = 0; i < 6; ++i) {
      const auto first = static_cast<float>(1 + i);
      EXPECT_THAT(session.Run(sum).ToVector<float>(), ElementsAre(first, first + 1));
    }
  });
  ExpectOnce({::testing::internal::GetCapturedStderr(), asked.graphs}, "variable 'v'");
}

TEST_F(RefusedSteps, FunctionsAndStrings) {
  ExpectOnce(Run([](Graph& g) {
               const Output x = ops::Identity(ops::Const(g, 3.0f));
               return ops::Call(g, {x}, [](Graph&, const std::vector<Output>& args) {
                 return std::vector<Output>{args[0] * 2.0f};
               })[0];
             }),
             "PartitionedCall");
  ExpectOnce(Run([](Graph& g) {
               const Output text = ops::Const(g, Tensor::Vector<std::string>({"a", "b"}));
               return ops::Cast(ops::Equal(ops::Identity(text), text), DType::kFloat32);
             }),
             "objects in host memory");
}

}  // namespace
}  // namespace cohort::cuda
