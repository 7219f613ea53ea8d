#include "cohort/distribute/input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing/throws.h"
#include "cohort/distribute/strategies.h"
#include "cohort/registration.h"

namespace cohort::distribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Steps = std::vector<std::vector<std::vector<int64_t>>>;

// Of each step the numbers that each replica gets.
Steps All(const DistributedDataset& dataset) {
  Steps steps;
  const auto iterator = dataset.MakeIterator();
  for (PerReplica<std::vector<Tensor>> values; iterator->Next(&values);) {
    steps.emplace_back();
    for (const std::vector<Tensor>& element : values) steps.back().push_back(element.at(0).ToVector<int64_t>());
  }
  return steps;
}

class InputTest : public ::testing::Test {
 protected:
  InputTest() { RegisterAll(); }
};

TEST_F(InputTest, GlobalBatchesAreDividedAmongReplicas) {
  const auto numbers = [](int64_t n, int64_t batch) { return data::Dataset::Range(n).Batch(batch); };
  EXPECT_THAT(All(DistributeDataset(Default(), numbers(3, 2))),
              ElementsAre(ElementsAre(ElementsAre(0, 1)), ElementsAre(ElementsAre(2))));
  // The first replicas get more.
  EXPECT_EQ(All(DistributeDataset(MirroredOnCpus(3), numbers(10, 5))),
            (Steps{{{0, 1}, {2, 3}, {4}}, {{5, 6}, {7, 8}, {9}}}));
  // A replica without data takes part.
  EXPECT_EQ(All(DistributeDataset(MirroredOnCpus(2), numbers(6, 4))), (Steps{{{0, 1}, {2, 3}}, {{4, 5}, {}}}));
  EXPECT_EQ(All(DistributeDataset(MirroredOnCpus(3), numbers(2, 2))), (Steps{{{0}, {1}, {}}}));
}

TEST_F(InputTest, FunctionsMakeTheirOwnBatches) {
  const auto make = [](const InputContext& context) {
    EXPECT_EQ(context.num_input_pipelines, 1);
    EXPECT_EQ(context.input_pipeline_id, 0);
    return data::Dataset::Range(5).Batch(context.GetPerReplicaBatchSize(4));
  };
  EXPECT_EQ(All(DistributeDatasetsFromFunction(MirroredOnCpus(2), make)), (Steps{{{0, 1}, {2, 3}}, {{4}, {}}}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { DistributeDatasetsFromFunction(MirroredOnCpus(3), make); }),
              HasSubstr("3 replicas"));
}

TEST_F(InputTest, HintsAreReplacedWhereThereIsOneProcess) {
  const data::Dataset hinted = data::Dataset::Range(5).Shard(data::kShardHint, data::kShardHint).Batch(4);
  constexpr auto kHint = data::AutoShardPolicy::kHint;
  EXPECT_EQ(All(DistributeDataset(Default(), hinted, kHint)), (Steps{{{0, 1, 2, 3}}, {{4}}}));
  EXPECT_EQ(All(DistributeDataset(MirroredOnCpus(2), hinted, kHint)), (Steps{{{0, 1}, {2, 3}}, {{4}, {}}}));
  const data::Dataset of_batches = data::Dataset::Range(8).Batch(4).Shard(data::kShardHint, data::kShardHint);
  EXPECT_EQ(All(DistributeDataset(MirroredOnCpus(2), of_batches, kHint)), (Steps{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}}));
}

TEST_F(InputTest, RowsOfBatches) {
  using Rows = std::pair<int64_t, int64_t>;
  for (int n = 1; n < 6; ++n) {
    for (int64_t rows = 0; rows < 12; ++rows) {
      int64_t next = 0;
      for (int r = 0; r < n; ++r) {
        const Rows of_replica = Strategy::RowsOf(rows, r, n);
        EXPECT_EQ(of_replica.first, next);
        EXPECT_EQ(of_replica.second - of_replica.first, rows / n + (r < rows % n ? 1 : 0));
        next = of_replica.second;
      }
      EXPECT_EQ(next, rows);
    }
  }
}

}  // namespace
}  // namespace cohort::distribute
