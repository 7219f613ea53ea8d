#include "cohort/backends/cuda/passes/sum_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/graph/rows_may_be_none.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/register.h"
#include "cohort/ops/select.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"

namespace cohort::cuda {
namespace {

using ::testing::ElementsAre;

class SumRowsTest : public ::testing::Test {
 protected:
  SumRowsTest() {
    RegisterOps();
    RegisterGpusForTests();
    ids_ = ops::Placeholder(g_, DType::kInt32, Shape{-1}, "ids");
    values_ = ops::Placeholder(g_, DType::kFloat32, Shape{-1, 3}, "values");
    rate_ = ops::Const(g_, 0.5f);
    unique_ = ops::Unique(ids_);
    sums_ = ops::UnsortedSegmentSum(values_, unique_.idx, ops::Size(unique_.y), "sums");
  }

  Node* Update(const Output& rows, const std::string& name = "table") {
    const Output table = ops::VarHandleOp(g_, DType::kFloat32, Shape{7, 3}, name, "", name);
    const Output slot = ops::VarHandleOp(g_, DType::kFloat32, Shape{7, 3}, name + "_slot", "", name + "_slot");
    return ops::ResourceSparseApplyMomentum(table, slot, rate_, rows, unique_.y, rate_, false, "update_" + name);
  }
  // Runs the pass. Returns whether it has replaced the Unique.
  bool Replaces() {
    result_ = SumRowsOnCard(std::move(graph_), CudaBackend::Get().type());
    const bool replaced = Count("_SumRepeatedRows") > 0;
    EXPECT_EQ(Count("Unique"), replaced ? 0 : 1);
    return replaced;
  }
  int64_t Count(const std::string& op) const {
    const auto& nodes = result_->nodes();
    return std::count_if(nodes.begin(), nodes.end(), [&](const Node* node) { return node->op_name() == op; });
  }

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  Graph& g_ = *graph_;
  Output ids_, values_, rate_, sums_;
  ops::UniqueResult unique_;
  std::unique_ptr<Graph> result_;
};

TEST_F(SumRowsTest, OneNodeTakesThePlaceOfThree) {
  Node* const before = g_.Op("NoOp").Name("before").Finish();
  unique_.y.node->AddControlInput(before);
  Update(sums_);
  g_.Op("NoOp").Name("behind").Control(sums_.node).Control(unique_.y.node).Finish();
  ASSERT_TRUE(Replaces());
  EXPECT_EQ(Count("Size") + Count("UnsortedSegmentSum"), 0);
  const Node* const sum = result_->FindNode("sums/on_card");
  ASSERT_NE(sum, nullptr);
  EXPECT_EQ(sum->input(0).node->name(), "ids");
  EXPECT_EQ(sum->input(1).node->name(), "values");
  EXPECT_THAT(sum->control_inputs(), ElementsAre(result_->FindNode("before")));
  const Node* const update = result_->FindNode("update_table");
  EXPECT_EQ(update->input(3), sum->output(1));
  EXPECT_EQ(update->input(4), sum->output(0));
  EXPECT_TRUE(update->attr<bool>(kRowsMayBeNone));
  EXPECT_THAT(result_->FindNode("behind")->control_inputs(), ElementsAre(sum));
}

TEST_F(SumRowsTest, BehindProductsLimitsAndBesideNorms) {
  const Output norm = ops::Sqrt(ops::Sum(ops::Square(sums_)));
  Update(ops::ClipByValue(ops::Mul(sums_, ops::Mul(norm, rate_)), ops::Neg(rate_), rate_));
  EXPECT_TRUE(Replaces());
}

TEST_F(SumRowsTest, ForSeveralVariables) {
  Update(sums_);
  const Output more = ops::UnsortedSegmentSum(ops::Neg(values_), unique_.idx, ops::Size(unique_.y));
  Update(ops::Mul(rate_, more), "other");
  EXPECT_TRUE(Replaces());
  EXPECT_EQ(Count("_SumRepeatedRows"), 2);
}

TEST_F(SumRowsTest, NotIfNothingIsUpdated) {
  ops::Mul(sums_, rate_);
  EXPECT_FALSE(Replaces());
}

TEST_F(SumRowsTest, NotIfSomebodyWantsTheDifferentIndices) {
  Update(sums_);
  ops::Identity(unique_.y);
  EXPECT_FALSE(Replaces());
}

TEST_F(SumRowsTest, NotIfSomebodyWantsToKnowHowManyThereAre) {
  Update(sums_);
  ops::Cast(ops::Size(unique_.y), DType::kFloat32);
  EXPECT_FALSE(Replaces());
}

TEST_F(SumRowsTest, NotIfRowsAreJoinedWithOthers) {
  Update(sums_);
  ops::Mul(sums_, sums_);
  EXPECT_FALSE(Replaces());
}

TEST_F(SumRowsTest, NotIfRowsAreSummedOneByOne) {
  Update(sums_);
  ops::Sum(sums_, {1});
  EXPECT_FALSE(Replaces());
}

// A limit above 0 makes rows of no index larger than 0.
TEST_F(SumRowsTest, NotIfANormComesBehindALimit) {
  const Output limited = ops::ClipByValue(sums_, rate_, ops::Const(g_, 1.0f));
  Update(limited);
  ops::Sum(ops::Square(limited));
  EXPECT_FALSE(Replaces());
}

TEST_F(SumRowsTest, NotIfTheValuesOfAnUpdateAreOthers) {
  Update(sums_);
  Update(ops::Placeholder(g_, DType::kFloat32, Shape{-1, 3}, "others"), "other");
  EXPECT_FALSE(Replaces());
}

}  // namespace
}  // namespace cohort::cuda
