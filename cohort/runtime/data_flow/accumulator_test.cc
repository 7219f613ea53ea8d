// Accumulators in sessions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/bfloat16.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/accumulators.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/testing/device_kinds.h"
#include "cohort/runtime/testing/waiting_runs.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::WaitingRun;

const bool kAccumulatorsRegistered = testing::RegisterForDeviceKinds();

class AccumulatorTest : public ::testing::Test {
 protected:
  AccumulatorTest()
      : gradient_(ops::Placeholder(g_, DType::kFloat32, Shape::UnknownRank(), "gradient")),
        step_(ops::Placeholder(g_, DType::kInt64, Shape(), "step")),
        required_(ops::Placeholder(g_, DType::kInt32, Shape(), "required")) {}

  struct Nodes {
    Node* apply;
    Output take;
    Output count;
    Output stale;
    Node* set_step;
  };
  Nodes MakeDense(const Shape& shape = Shape{2}, const std::string& reduction = "MEAN") {
    const ops::ConditionalAccumulator a(g_, DType::kFloat32, shape,
                                        {.reduction_type = reduction, .name = NodeName("a")});
    return {a.ApplyGrad(gradient_, step_), a.TakeGrad(required_), a.NumAccumulated(), a.NumStale(),
            a.SetGlobalStep(step_)};
  }
  void Apply(Session& session, const Nodes& nodes, const Tensor& gradient, int64_t step = 0) {
    session.Run({{gradient_, gradient}, {step_, Tensor::Scalar(step)}}, {}, {nodes.apply});
  }
  void Apply(Session& session, const Nodes& nodes, const std::vector<float>& gradient, int64_t step = 0) {
    Apply(session, nodes, Tensor::Vector(gradient), step);
  }
  std::unique_ptr<WaitingRun> TakeLater(Session& session, const Nodes& nodes, int32_t required) {
    return WaitingRun::Start(session, {{{required_, Tensor::Scalar(required)}}, {nodes.take}, {}, {}});
  }
  std::vector<float> Take(Session& session, const Nodes& nodes, int32_t required) {
    return TakeLater(session, nodes, required)->Wait()[0].ToVector<float>();
  }

  Graph g_;
  Output gradient_;
  Output step_;
  Output required_;
};

TEST_F(AccumulatorTest, GivesTheMeanOfAllGradientsThatHaveCome) {
  const Nodes a = MakeDense();
  Session session(g_);
  Apply(session, a, {1, 10});
  Apply(session, a, {2, 20});
  Apply(session, a, {6, 30});
  EXPECT_EQ(session.Run(a.count).scalar<int32_t>(), 3);
  EXPECT_THAT(Take(session, a, 2), ElementsAre(3.0f, 20.0f)) << "the sum is divided by 3, not by 2";
  EXPECT_EQ(session.Run(a.count).scalar<int32_t>(), 0);
}

TEST_F(AccumulatorTest, GivesTheSumIfAsked) {
  const Nodes a = MakeDense(Shape{2}, "SUM");
  Session session(g_);
  Apply(session, a, {1, 10});
  Apply(session, a, {2, 20});
  EXPECT_THAT(Take(session, a, 1), ElementsAre(3.0f, 30.0f));
}

TEST_F(AccumulatorTest, ATakeWaitsForItsGradients) {
  const Nodes a = MakeDense();
  Session session(g_);
  const auto first = TakeLater(session, a, 2);
  const auto second = TakeLater(session, a, 1);
  Apply(session, a, {1, 1});
  EXPECT_FALSE(first->ended());
  Apply(session, a, {3, 5});
  EXPECT_THAT(first->Wait()[0].ToVector<float>(), ElementsAre(2.0f, 3.0f));
  EXPECT_FALSE(second->ended()) << "the takes are served in their order, and the first has taken all";
  Apply(session, a, {7, 7}, 1);
  EXPECT_THAT(second->Wait()[0].ToVector<float>(), ElementsAre(7.0f, 7.0f));
}

TEST_F(AccumulatorTest, DropsAndCountsStaleGradients) {
  const Nodes a = MakeDense();
  Session session(g_);
  session.Run({{step_, Tensor::Scalar(int64_t{5})}}, {}, {a.set_step});
  Apply(session, a, {100, 100}, 4);
  Apply(session, a, {1, 2}, 5);
  Apply(session, a, {3, 4}, 6);
  EXPECT_THAT(Take(session, a, 1), ElementsAre(2.0f, 3.0f));
  Apply(session, a, {100, 100}, 5);  // the take has made it step 6
  EXPECT_EQ(session.Run(a.count).scalar<int32_t>(), 0);
  EXPECT_EQ(session.Run(a.stale).scalar<int64_t>(), 2);
}

TEST_F(AccumulatorTest, ChecksShapes) {
  const Nodes a = MakeDense(Shape{-1});
  Session session(g_);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Apply(session, a, Tensor::Scalar(1.0f)); }),
              HasSubstr("Shape mismatch: ConditionalAccumulator 'a' expected a gradient of float32[?], got"));
  Apply(session, a, {1, 2});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Apply(session, a, {1, 2, 3});
              }),
              HasSubstr("float32[2], got float32[3]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Take(session, a, 0); }), HasSubstr("must be positive, but was 0"));
  EXPECT_THAT(Take(session, a, 1), ElementsAre(1.0f, 2.0f)) << "a gradient that does not fit changes nothing";
}

TEST_F(AccumulatorTest, DoesNotChangeTheTensorsThatItWasGiven) {
  const Nodes a = MakeDense();
  Session session(g_);
  const Tensor fed = Tensor::Vector<float>({1, 2});
  Apply(session, a, fed);
  Apply(session, a, fed);
  Apply(session, a, {7, 8});
  EXPECT_THAT(Take(session, a, 3), ElementsAre(3.0f, 4.0f));
  EXPECT_THAT(fed.ToVector<float>(), ElementsAre(1.0f, 2.0f));
}

TEST_F(AccumulatorTest, SumsOfBfloat16AreKeptInFloat32) {
  const ops::ConditionalAccumulator a(g_, DType::kBfloat16, Shape{}, {});
  const Output value = ops::Placeholder(g_, DType::kBfloat16, Shape(), "value");
  Node* apply = a.ApplyGrad(value);
  const Output mean = a.TakeGrad(257);
  Session session(g_);
  session.Run({{value, Tensor::Scalar(bfloat16(257.0f * 2))}}, {}, {apply});
  for (int i = 0; i < 256; ++i) session.Run({{value, Tensor::Scalar(bfloat16(1.0f))}}, {}, {apply});
  const float expected = (static_cast<float>(bfloat16(514.0f)) + 256.0f) / 257.0f;
  EXPECT_EQ(session.Run(mean).scalar<bfloat16>(), bfloat16(expected));  // a sum in bfloat16 would stay at 514
}

TEST_F(AccumulatorTest, TheEndOfTheSessionEndsTheWait) {
  const Nodes a = MakeDense();
  Session session(g_);
  const auto take = TakeLater(session, a, 1);
  session.Close();
  EXPECT_THAT(MessageOf<CancelledError>([&] { take->Wait(); }), HasSubstr("closed"));
}

class SparseAccumulatorTest : public AccumulatorTest {
 protected:
  SparseAccumulatorTest()
      : indices_(ops::Placeholder(g_, DType::kInt32, Shape::UnknownDims(1), "indices")),
        values_(ops::Placeholder(g_, DType::kFloat32, Shape::UnknownRank(), "values")),
        accumulator_(g_, DType::kFloat32, Shape{6, 2}, {.name = NodeName("s")}),
        apply_(accumulator_.ApplyIndexedSlicesGrad(
            Gradient(values_, indices_, ops::Const(g_, std::vector<int32_t>{6, 2})), step_)),
        mean_(accumulator_.TakeIndexedSlicesGrad(required_)) {}

  void ApplyRows(Session& session, const std::vector<int32_t>& indices, const Tensor& values, int64_t step = 0) {
    session.Run({{indices_, Tensor::Vector(indices)}, {values_, values}, {step_, Tensor::Scalar(step)}}, {}, {apply_});
  }
  static Tensor Rows(const std::vector<float>& values) {
    return Tensor::FromValues(values, Shape{static_cast<int64_t>(values.size()) / 2, 2});
  }

  Output indices_;
  Output values_;
  ops::SparseConditionalAccumulator accumulator_;
  Node* apply_;
  Gradient mean_;
};

TEST_F(SparseAccumulatorTest, DividesEachRowByTheGradientsThatHeldIt) {
  Session session(g_);
  ApplyRows(session, {4, 1}, Rows({1, 2, 10, 20}));
  ApplyRows(session, {1, 5}, Rows({30, 40, 7, 8}));
  ApplyRows(session, {1, 1}, Rows({2, 3, 3, 6}));  // repeated rows of one gradient are added, and count once
  const RunResults taken =
      session.Run({{required_, Tensor::Scalar(3)}}, {mean_.indices, mean_.values, mean_.dense_shape});
  EXPECT_THAT(taken[0].ToVector<int64_t>(), ElementsAre(1, 4, 5));
  EXPECT_THAT(taken[1].ToVector<float>(), ElementsAre(15.0f, 23.0f, 1.0f, 2.0f, 7.0f, 8.0f));
  EXPECT_EQ(taken[1].shape(), (Shape{3, 2}));
  EXPECT_THAT(taken[2].ToVector<int64_t>(), ElementsAre(6, 2));
}

TEST_F(SparseAccumulatorTest, BeginsAgainAfterATake) {
  Session session(g_);
  ApplyRows(session, {4}, Rows({1, 2}));
  session.Run({{required_, Tensor::Scalar(1)}}, {mean_.values});
  ApplyRows(session, {4}, Rows({100, 100}), 0);  // stale
  ApplyRows(session, {3}, Rows({5, 6}), 1);
  const RunResults taken = session.Run({{required_, Tensor::Scalar(1)}}, {mean_.indices, mean_.values});
  EXPECT_THAT(taken[0].ToVector<int64_t>(), ElementsAre(3));
  EXPECT_THAT(taken[1].ToVector<float>(), ElementsAre(5.0f, 6.0f));
}

TEST_F(SparseAccumulatorTest, ChecksGradients) {
  Session session(g_);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ApplyRows(session, {1, 6}, Rows({1, 2, 3, 4}));
              }),
              HasSubstr("expected indices in [0, 6); got 6"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ApplyRows(session, {1}, Rows({1, 2, 3, 4}));
              }),
              HasSubstr("expected values with 1 rows, one for each index; got the shape [2,2]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ApplyRows(session, {1}, Tensor::Zeros(DType::kFloat32, Shape{1, 3}));
              }),
              HasSubstr("expected rows of the shape [2]; got the shape [3]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { accumulator_.ApplyIndexedSlicesGrad(Gradient(values_)); }),
              HasSubstr("expected a sparse gradient"));
}

}  // namespace
}  // namespace cohort
