// The samplers of classes, and what flows to tables. tests/interop/test_composite_ops.py compares the losses with
// TensorFlow.
#include "cohort/ops/sampled_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;

class SampledLossesTest : public ::testing::Test {
 protected:
  Output Labels(const std::vector<int64_t>& values) {
    return ops::Const(graph_, values, Shape{static_cast<int64_t>(values.size()), 1});
  }
  static std::vector<Tensor> Run(const ops::SampledCandidates& drawn) {
    return Interpreter().Run({drawn.sampled_candidates, drawn.true_expected_count, drawn.sampled_expected_count});
  }
  Graph graph_;
};

TEST_F(SampledLossesTest, UniqueClassesDiffer) {
  const auto drawn = Run(ops::LogUniformCandidateSampler(Labels({0, 49}), 1, 50, true, 50, 7));
  const std::vector<int64_t> classes = drawn[0].ToVector<int64_t>();
  EXPECT_EQ(std::set<int64_t>(classes.begin(), classes.end()).size(), 50u);
  for (const int64_t c : classes) EXPECT_TRUE(c >= 0 && c < 50) << c;
  // So many draws were needed that nearly every class was expected.
  for (const float count : drawn[2].ToVector<float>()) EXPECT_LE(count, 1.0f);
}

TEST_F(SampledLossesTest, RepeatedClassesAreExpectedAsOftenAsTheirProbabilitySays) {
  const auto drawn = Run(ops::LogUniformCandidateSampler(Labels({0, 9}), 1, 20'000, false, 1000, 7));
  const double log_range = std::log(1001.0);
  EXPECT_THAT(drawn[1].ToVector<float>(), ElementsAre(::testing::FloatNear(20'000 * std::log(2.0) / log_range, 0.01f),
                                                      ::testing::FloatNear(20'000 * std::log(1.1) / log_range, 0.01f)));
  int64_t zeros = 0, nines = 0;
  for (const int64_t c : drawn[0].ToVector<int64_t>()) {
    zeros += c == 0 ? 1 : 0;
    nines += c == 9 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(zeros), 20'000 * std::log(2.0) / log_range, 250);
  EXPECT_NEAR(static_cast<double>(nines), 20'000 * std::log(1.1) / log_range, 100);
}

TEST_F(SampledLossesTest, UniformClassesAreEquallyLikely) {
  const auto drawn = Run(ops::UniformCandidateSampler(Labels({3}), 1, 10'000, false, 4, 7));
  EXPECT_THAT(drawn[2].ToVector<float>(), Each(2500.0f));
  std::vector<int> counts(4);
  for (const int64_t c : drawn[0].ToVector<int64_t>()) ++counts[static_cast<size_t>(c)];
  for (const int count : counts) EXPECT_NEAR(count, 2500, 200);
}

TEST_F(SampledLossesTest, SeedsDecideTheClasses) {
  const auto draw = [&](int64_t seed) {
    return Run(ops::UniformCandidateSampler(Labels({3}), 1, 8, true, 1000, seed))[0].ToVector<int64_t>();
  };
  EXPECT_EQ(draw(5), draw(5));
  EXPECT_NE(draw(5), draw(6));
}

TEST_F(SampledLossesTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::UniformCandidateSampler(Labels({3}), 1, 5, true, 4); }),
              HasSubstr("cannot draw 5 different classes out of 4"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Run(ops::UniformCandidateSampler(Labels({1, 4}), 1, 2, true, 4));
              }),
              HasSubstr("true_classes[1][0] = 4 is not in [0, 4)"));
  const Output table = ops::Const(graph_, std::vector<float>(8), Shape{4, 2});
  const Output biases = ops::Const(graph_, std::vector<float>(4));
  const Output inputs = ops::Const(graph_, std::vector<float>(2), Shape{1, 2});
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { ops::NceLoss(table, biases, ops::Const(graph_, std::vector<int64_t>{1}), inputs, 2, 4); }),
              HasSubstr("expected labels of shape [batch,1]; got [1]"));
  const ops::SampledCandidates drawn = ops::UniformCandidateSampler(Labels({1}), 1, 2, true, 4);
  const auto message = [&](const ops::SampledCandidates& given) {
    return MessageOf<InvalidArgumentError>(
        [&] { ops::SampledSoftmaxLoss(table, biases, Labels({1}), inputs, 2, 4, {.sampled_values = given}); });
  };
  ops::SampledCandidates wrong = drawn;
  wrong.sampled_expected_count = ops::Const(graph_, std::vector<float>{1});
  EXPECT_THAT(message(wrong), HasSubstr("expected sampled_expected_count of shape [2]; got [1]"));
  wrong = drawn;
  wrong.true_expected_count = drawn.sampled_expected_count;
  EXPECT_THAT(message(wrong), HasSubstr("expected true_expected_count of the labels' shape [1,1]; got [2]"));
  wrong = drawn;
  wrong.sampled_candidates = Labels({1, 2});
  EXPECT_THAT(message(wrong), HasSubstr("expected sampled_candidates of shape [num_sampled]; got [2,1]"));
}

TEST_F(SampledLossesTest, UniqueClassesThatDifferAtOnceAreCountedAsRepeatedOnes) {
  // One draw never has to be repeated: num_sampled * p. All classes but one need more: 1 - (1 - p)^tries.
  EXPECT_THAT(Run(ops::UniformCandidateSampler(Labels({3}), 1, 1, true, 4, 7))[2].ToVector<float>(),
              ElementsAre(0.25f));
  const float count = Run(ops::UniformCandidateSampler(Labels({3}), 1, 50, true, 50, 7))[1].ToVector<float>()[0];
  EXPECT_GT(count, 0.9f);
  EXPECT_LT(count, 1.0f);
}

TEST_F(SampledLossesTest, ATableMayHaveParts) {
  const auto rows = [](int64_t first) {
    const auto x = static_cast<float>(first);
    return Tensor::FromValues<float>({x, -x, x + 1, 2}, Shape{2, 2});
  };
  std::vector<VariableInfo*> infos;
  for (const int64_t first : {0, 2}) {
    infos.push_back(ops::Variable(graph_, rows(first), {.name = first == 0 ? "part_0" : "part_1"}).info());
  }
  VariableRequest request;
  request.name = "table";
  request.shape = Shape{4, 2};
  const ops::Variable cut(ops::MakeVariableOfParts(graph_, request, infos));
  const std::vector<ops::Variable> parts = cut.parts();
  const Output whole = ops::Const(graph_, std::vector<float>{0, 0, 1, 2, 2, -2, 3, 2}, Shape{4, 2});
  const Output biases = ops::Const(graph_, std::vector<float>{0.5f, 0, 0.25f, 1});
  const Output inputs = ops::Const(graph_, std::vector<float>{1, 2, 0.5f, -1}, Shape{2, 2});
  const ops::SampledLossOptions options = {.sampled_values =
                                               ops::UniformCandidateSampler(Labels({3, 0}), 1, 2, true, 4, 5)};
  const Output of_parts = ops::SampledSoftmaxLoss(cut, biases, Labels({3, 0}), inputs, 2, 4, options);
  const Output of_whole = ops::SampledSoftmaxLoss(whole, biases, Labels({3, 0}), inputs, 2, 4, options);
  const std::vector<Gradient> gradients = Gradients({of_parts}, {parts[0].handle(), parts[1].handle()});
  EXPECT_TRUE(gradients[0].is_sparse());
  EXPECT_TRUE(gradients[1].is_sparse());
  Interpreter interpreter;
  for (const ops::Variable& part : parts) interpreter.RunNode(part.initializer());
  const std::vector<Tensor> losses = interpreter.Run({of_parts, of_whole});
  EXPECT_EQ(losses[0].ToVector<float>(), losses[1].ToVector<float>());
}

TEST_F(SampledLossesTest, TheGradientOfATableHasTheRowsThatWereLookedAt) {
  const ops::Variable weights(graph_, Tensor(DType::kFloat32, {100, 2}));
  const ops::Variable biases(graph_, Tensor(DType::kFloat32, {100}));
  const Output inputs = ops::Const(graph_, std::vector<float>{1, 2, 3, 4}, Shape{2, 2});
  const Output loss = ops::SampledSoftmaxLoss(weights, biases, Labels({17, 4}), inputs, 3, 100, {.seed = 3});
  const std::vector<Gradient> gradients = Gradients({loss}, {weights.handle(), biases.handle()});
  ASSERT_TRUE(gradients[0].is_sparse());
  ASSERT_TRUE(gradients[1].is_sparse());
  Interpreter interpreter;
  interpreter.RunNode(weights.initializer());
  interpreter.RunNode(biases.initializer());
  const std::vector<Tensor> rows = interpreter.Run({gradients[0].indices, gradients[0].values});
  const std::vector<int64_t> ids = rows[0].ToVector<int64_t>();
  ASSERT_EQ(ids.size(), 5u);
  EXPECT_EQ(ids[0], 17);
  EXPECT_EQ(ids[1], 4);
  EXPECT_EQ(rows[1].shape(), (Shape{5, 2}));
}

}  // namespace
}  // namespace cohort
