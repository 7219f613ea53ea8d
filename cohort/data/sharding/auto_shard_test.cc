#include "cohort/data/sharding/auto_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/data/readers/idx.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/serialize.h"
#include "cohort/data/testing/drain.h"

namespace cohort::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Rows = std::vector<std::vector<int64_t>>;

// Five files; file i holds the lines "i0" and "i1".
class AutoShardTest : public ::testing::Test {
 protected:
  AutoShardTest() {
    for (int i = 0; i < 5; ++i) {
      files_.push_back(folder_ / StrCat(i));
      WriteFileAtomically(files_.back(), StrCat(i, "0\n", i, "1\n"));
    }
  }

  static std::vector<std::string> Lines(const Dataset& dataset) {
    std::vector<std::string> lines;
    const auto iterator = dataset.MakeIterator();
    Element element;
    while (iterator->Next(&element)) {
      for (const std::string& line : element[0].values<std::string>()) lines.push_back(line);
    }
    return lines;
  }
  const testing::TempFolder folder_;
  std::vector<std::string> files_;
};

TEST_F(AutoShardTest, FileGivesEachWorkerItsFiles) {
  const Dataset lines = TextLineDataset(files_).Batch(3).Prefetch(2);
  EXPECT_THAT(Lines(AutoShard(lines, 2, 0, AutoShardPolicy::kFile)), ElementsAre("00", "01", "20", "21", "40", "41"));
  EXPECT_THAT(Lines(AutoShard(lines, 2, 1)), ElementsAre("10", "11", "30", "31"));
  EXPECT_EQ(AutoShard(lines, 2, 1).ToString(),
            "FromTensorSlices(string[5]).Shard(2, 1).TextLine().Batch(3).Prefetch(2)");
}

TEST_F(AutoShardTest, FileGoesThroughPaddedBatches) {
  const Dataset part = AutoShard(TextLineDataset(files_).PaddedBatch(3), 2, 1, AutoShardPolicy::kFile);
  EXPECT_THAT(Lines(part), ElementsAre("10", "11", "30", "31"));
  EXPECT_EQ(part.ToString(), "FromTensorSlices(string[5]).Shard(2, 1).TextLine().PaddedBatch(3, shapes=([]))");
}

TEST_F(AutoShardTest, FileGoesThroughAllInputsAndMovesShufflesOfNames) {
  const Dataset names = FileNames(files_).Shuffle(5).Repeat(1);
  const Dataset both = TextLineDataset(names).Concatenate(TextLineDataset(files_));
  const Dataset part = AutoShard(both, 5, 2, AutoShardPolicy::kFile);
  EXPECT_THAT(Lines(part), ElementsAre("20", "21", "20", "21"));
  EXPECT_THAT(part.ToString(), HasSubstr("FromTensorSlices(string[5]).Repeat(1).Shard(5, 2).Shuffle(5).TextLine()"));
}

TEST_F(AutoShardTest, FileNeedsAFileForEachWorker) {
  const Dataset lines = TextLineDataset(files_);
  EXPECT_EQ(Lines(AutoShard(lines, 5, 4, AutoShardPolicy::kFile)).size(), 2u);
  try {
    Lines(AutoShard(lines, 7, 6, AutoShardPolicy::kFile));
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected at least 7 elements"));
    EXPECT_THAT(error.what(), HasSubstr("got 5, so that worker 6 has none"));
  }
}

TEST_F(AutoShardTest, FileRefusesSourcesThatAreNoFiles) {
  EXPECT_THROW(AutoShard(Dataset::Range(4), 2, 0, AutoShardPolicy::kFile), FailedPreconditionError);
  const Dataset mixed = Dataset::Zip({TextLineDataset(files_), Dataset::Range(4)});
  EXPECT_THROW(AutoShard(mixed, 2, 0, AutoShardPolicy::kFile), FailedPreconditionError);
}

const ElementSpec kLine{{DType::kString, Shape()}};
const InterleaveOptions kThree{.cycle_length = 3};

Dataset LinesOf(const Element& name) { return TextLineDataset({name.at(0).scalar<std::string>()}); }
Dataset Twice(const Element& element) { return Dataset::FromTensors(element).Repeat(2); }

TEST_F(AutoShardTest, FileShardsTheNamesThatAnInterleaveMakesReadersOf) {
  const Dataset lines = FileNames(files_).Interleave(LinesOf, kLine, kThree).Batch(4).Prefetch(1);
  ::testing::internal::CaptureStderr();
  const Dataset part = AutoShard(lines, 2, 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(part.ToString(), HasSubstr("string[5]).Shard(2, 1).Interleave(host function"));
  EXPECT_THAT(Lines(part), ElementsAre("10", "30", "11", "31"));
  EXPECT_THAT(Lines(AutoShard(lines, 2, 0, AutoShardPolicy::kFile)), ElementsAre("00", "20", "40", "01", "21", "41"));
  const Dataset shuffled = FileNames(files_).Shuffle(5).Repeat(1).Interleave(LinesOf, kLine);
  EXPECT_THAT(AutoShard(shuffled, 2, 1).ToString(),
              HasSubstr("string[5]).Repeat(1).Shard(2, 1).Shuffle(5).Interleave(host function"));
  try {
    Lines(AutoShard(lines, 7, 6));
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("got 5, so that worker 6 has none"));
  }
}

TEST_F(AutoShardTest, FileFindsReadersDeepInWhatAFunctionMakes) {
  const auto numbered = [](const Element& name) { return Dataset::Zip({Dataset::Range(9), LinesOf(name).Skip(1)}); };
  const Dataset zipped = FileNames(files_).Interleave(numbered, {{DType::kInt64, Shape()}, kLine[0]}, kThree);
  EXPECT_THAT(AutoShard(zipped, 2, 1, AutoShardPolicy::kFile).ToString(), HasSubstr(".Shard(2, 1).Interleave("));
  const auto nested = [](const Element& name) { return Dataset::FromTensors(name).Interleave(LinesOf, kLine); };
  EXPECT_THAT(Lines(AutoShard(FileNames(files_).Interleave(nested, kLine), 4, 3, AutoShardPolicy::kFile)),
              ElementsAre("30", "31"));
  const std::string idx = folder_ / "idx";
  WriteIdx(idx, Tensor::Zeros(DType::kUint8, Shape{3}));
  const Dataset images =
      FileNames({idx, idx})
          .Interleave([](const Element& name) { return IdxDataset({name.at(0).scalar<std::string>()}); },
                      {{DType::kUint8, Shape()}});
  const auto iterator = AutoShard(images, 2, 1, AutoShardPolicy::kFile).MakeIterator();
  Element element;
  int count = 0;
  while (iterator->Next(&element)) ++count;
  EXPECT_EQ(count, 3);
}

TEST_F(AutoShardTest, FileGoesOnThroughAnInterleaveWithoutReaders) {
  const Dataset doubled = TextLineDataset(FileNames(files_).Skip(1)).Interleave(Twice, kLine, {.cycle_length = 1});
  EXPECT_THAT(Lines(AutoShard(doubled, 3, 1, AutoShardPolicy::kFile)), ElementsAre("20", "20", "21", "21"));
  EXPECT_THAT(AutoShard(doubled, 3, 1).ToString(), HasSubstr(".Skip(1).Shard(3, 1).TextLine().Interleave("));
  const Dataset both = TextLineDataset(files_).Concatenate(TextLineDataset(files_));
  EXPECT_THAT(Lines(AutoShard(both.Interleave(Twice, kLine, {.cycle_length = 1}), 5, 2)),
              ElementsAre("20", "20", "21", "21", "20", "20", "21", "21"));
  const Dataset names = FileNames(files_).Interleave(Twice, kLine, {.cycle_length = 1});
  EXPECT_THROW(AutoShard(names, 2, 0, AutoShardPolicy::kFile), FailedPreconditionError);
  EXPECT_THAT(AutoShard(names, 2, 0).ToString(), ::testing::EndsWith("Interleave(host function, cycle=1, block=1)"
                                                                     ".Shard(2, 0)"));
}

// As TensorFlow does, whose readers of a list of files are flat maps over tensors.
TEST_F(AutoShardTest, FileShardsBetweenAFlatMapAndOneOverTensors) {
  const Dataset names = FileNames(files_).Interleave(Twice, kLine, {.cycle_length = 1});
  EXPECT_THAT(Lines(AutoShard(names.Skip(1).Interleave(LinesOf, kLine, {.cycle_length = 1}), 5, 3)),
              ElementsAre("40", "41"));  // the second of the elements 3 and 8
  const Dataset doubled = FileNames(files_)
                              .Interleave(LinesOf, kLine, {.cycle_length = 1})
                              .Shuffle(9, /*seed=*/3)
                              .Interleave(Twice, kLine, {.cycle_length = 1});
  EXPECT_THAT(AutoShard(doubled, 5, 3, AutoShardPolicy::kFile).ToString(),
              HasSubstr("string[5]).Interleave(host function, cycle=1, block=1).Shard(5, 3).Shuffle(9, seed=3)"));
  const Dataset of_lines = TextLineDataset(files_).Batch(1).Unbatch().Interleave(Twice, kLine, {.cycle_length = 1});
  EXPECT_THAT(Lines(AutoShard(of_lines, 5, 3)), ElementsAre("11", "11", "40", "40"));
  EXPECT_THAT(Lines(AutoShard(TextLineDataset(names.Skip(1)), 5, 3)), ElementsAre("40", "41"));
}

// A look at the first element, by which a function of the host tells whether it makes readers, leaves nothing behind.
TEST_F(AutoShardTest, OneElementTells) {
  std::vector<std::string> seen;
  const auto lines_of = [&](const Element& name) {
    seen.push_back(name.at(0).scalar<std::string>());
    return LinesOf(name);
  };
  const Dataset names = FileNames(files_).Cache(folder_ / "names").Cache().Prefetch(4).Shuffle(5);
  const Dataset lines = names.Interleave(lines_of, kLine);
  for (const AutoShardPolicy policy : {AutoShardPolicy::kOff, AutoShardPolicy::kData, AutoShardPolicy::kHint}) {
    AutoShard(lines, 2, 1, policy);
  }
  AutoShard(lines, 1, 0);
  EXPECT_THAT(seen, ElementsAre());
  const auto files_before = std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  ::testing::internal::CaptureStderr();
  AutoShard(lines, 2, 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(seen, ElementsAre(files_.front()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), files_before);
}

TEST_F(AutoShardTest, WithoutAnElementNothingTells) {
  const Dataset lines = FileNames(files_).Take(0).Interleave(LinesOf, kLine);
  try {
    AutoShard(lines, 2, 0, AutoShardPolicy::kFile);
    FAIL();
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("whether the function of Interleave(host function, cycle=4, block=1) reads "
                                        "files; got none from FromTensorSlices(string[5]).Take(0)"));
  }
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(AutoShard(lines, 2, 0).ToString(), ::testing::EndsWith("block=1).Shard(2, 0)"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("expected an element"));
}

// Were it taken for a function without readers, a worker where it fails would choose otherwise than the others.
TEST_F(AutoShardTest, WhatTheFunctionThrowsIsThrown) {
  const Dataset images =
      FileNames({folder_ / "missing"})
          .Interleave([](const Element& name) { return IdxDataset({name[0].scalar<std::string>()}); },
                      {{DType::kUint8, Shape()}});
  try {
    AutoShard(images, 2, 0);
    FAIL();
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder_ / "missing"));
    EXPECT_THAT(error.what(), HasSubstr("(from stage Interleave(host function"));
  }
}

TEST_F(AutoShardTest, AutoTakesDataWithAWarning) {
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(Scalars(AutoShard(Dataset::Range(7), 3, 1)), ElementsAre(1, 4));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("AUTO sharding policy will apply DATA sharding policy as it failed to apply FILE sharding "
                             "policy because of the following reason: "));
  EXPECT_THAT(log, HasSubstr("Found an unshardable source dataset: Range(0, 7, 1)"));
}

TEST_F(AutoShardTest, OtherPolicies) {
  const Dataset batches = Dataset::Range(7).Batch(2);
  EXPECT_EQ(Drain(AutoShard(batches, 2, 1, AutoShardPolicy::kOff)).size(), 4u);
  EXPECT_EQ(Drain(AutoShard(batches, 2, 1, AutoShardPolicy::kData)), (Rows{{2, 3}, {6}}));
  EXPECT_EQ(Drain(AutoShard(batches, 1, 0, AutoShardPolicy::kData)).size(), 4u);
  const Dataset hinted = Dataset::Range(9).Shard(kShardHint, kShardHint).Batch(2);
  EXPECT_EQ(Drain(AutoShard(hinted, 3, 2, AutoShardPolicy::kHint)), (Rows{{2, 5}, {8}}));
  EXPECT_EQ(Drain(AutoShard(hinted, 1, 0, AutoShardPolicy::kHint)).size(), 5u);
  EXPECT_EQ(AutoShard(batches, 3, 2, AutoShardPolicy::kHint).ToString(), batches.ToString());
  const Dataset few = AutoShard(hinted, 10, 9, AutoShardPolicy::kHint);
  EXPECT_THROW(few.MakeIterator()->Next(), InvalidArgumentError);
  const Dataset none = Dataset::Range(0).Shard(kShardHint, kShardHint);
  EXPECT_EQ(Drain(AutoShard(none, 1, 0, AutoShardPolicy::kHint)).size(), 0u);
  EXPECT_THROW(hinted.MakeIterator(), FailedPreconditionError);
  EXPECT_EQ(Deserialize(Serialize(hinted)).ToString(), hinted.ToString());
  EXPECT_THROW(AutoShard(batches, 0, 0), InvalidArgumentError);
  EXPECT_THROW(AutoShard(batches, 2, 2), InvalidArgumentError);
}

// A part of what has random access has it too, so that a shuffle behind it need not save its buffer.
TEST_F(AutoShardTest, PartsHaveSmallPositions) {
  const Dataset hinted = Dataset::Range(1000).Shard(kShardHint, kShardHint).Shuffle(100, /*seed=*/3);
  const Dataset part = AutoShard(hinted, 2, 1, AutoShardPolicy::kHint);
  const auto iterator = part.MakeIterator();
  Drain(*iterator, 50);
  const std::string position = iterator->Save();
  EXPECT_LT(position.size(), part.ToString().size() + 50);
  const auto restored = part.MakeIterator();
  restored->Restore(position);
  EXPECT_EQ(Drain(*restored), Drain(*iterator));
}

// Every element goes to exactly one worker.
TEST_F(AutoShardTest, WorkersShareOutEverything) {
  const Dataset shuffled = Dataset::Range(23).Shuffle(23);
  for (int64_t workers = 1; workers <= 6; ++workers) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < workers; ++i) {
      const std::vector<int64_t> part = Scalars(AutoShard(shuffled, workers, i, AutoShardPolicy::kData));
      all.insert(all.end(), part.begin(), part.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, Scalars(Dataset::Range(23)));
  }
}

TEST(RebatchTest, SizesAreRotatedByWorker) {
  EXPECT_THAT(RebatchSizes(7, 2, 2, 0), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(RebatchSizes(7, 2, 2, 1), ElementsAre(2, 1, 2, 2));
  EXPECT_THAT(RebatchSizes(4, 1, 3, 0), ElementsAre(2, 1, 1));
  EXPECT_THAT(RebatchSizes(1, 3, 1, 1), ElementsAre(0, 0, 1));
  EXPECT_THROW(RebatchSizes(0, 1, 1, 0), InvalidArgumentError);
  EXPECT_THROW(RebatchSizes(4, 2, 1, 2), InvalidArgumentError);
}

TEST(RebatchTest, EachStepTakesTheGlobalBatchOnce) {
  for (int64_t batch = 1; batch <= 9; ++batch) {
    for (int64_t workers = 1; workers <= 3; ++workers) {
      for (int64_t replicas = 1; replicas <= 3; ++replicas) {
        for (int64_t step = 0; step < workers; ++step) {
          int64_t rows = 0;
          for (int64_t worker = 0; worker < workers; ++worker) {
            const std::vector<int64_t> sizes = RebatchSizes(batch, workers, replicas, worker);
            for (int64_t r = 0; r < replicas; ++r) rows += sizes[static_cast<size_t>(step * replicas + r)];
          }
          EXPECT_EQ(rows, batch);
        }
      }
    }
  }
}

TEST(RebatchTest, CutsAcrossBatches) {
  const Dataset batches = Dataset::Range(10).Batch(4);
  EXPECT_EQ(Drain(Rebatch(batches, {3, 1})), (Rows{{0, 1, 2}, {3}, {4, 5, 6}, {7}, {8, 9}}));
  EXPECT_EQ(Drain(Rebatch(batches, {7})), (Rows{{0, 1, 2, 3, 4, 5, 6}, {7, 8, 9}}));
  EXPECT_EQ(Drain(Rebatch(Dataset::Range(2).Batch(1), {1, 0})), (Rows{{0}, {}, {1}, {}}));
  EXPECT_EQ(ToString(Rebatch(batches, {3, 1}).element_spec()), "(int64[?])");
  EXPECT_THROW(Rebatch(batches, {}), InvalidArgumentError);
  EXPECT_THROW(Rebatch(batches, {0}), InvalidArgumentError);
  EXPECT_THROW(Rebatch(batches, {2, -1}), InvalidArgumentError);
  EXPECT_THROW(Rebatch(Dataset::Range(4), {2}), InvalidArgumentError);
}

TEST(RebatchTest, LegacyCutsEachBatch) {
  EXPECT_EQ(Drain(LegacyRebatch(Dataset::Range(7).Batch(4), 3)), (Rows{{0, 1}, {2, 3}, {}, {4}, {5}, {6}}));
  EXPECT_EQ(LegacyRebatch(Dataset::Range(7).Batch(4), 3).Cardinality(), 6);
  EXPECT_THROW(LegacyRebatch(Dataset::Range(7).Batch(4), 0), InvalidArgumentError);
}

TEST(RebatchTest, StaticBatchSize) {
  EXPECT_EQ(StaticBatchSize(Dataset::Range(7).Batch(4).Prefetch(1).Repeat()), 4);
  EXPECT_EQ(StaticBatchSize(Dataset::Range(7).Batch(3, true)), 3);
  EXPECT_EQ(StaticBatchSize(Dataset::Range(7)), -1);
  EXPECT_EQ(StaticBatchSize(Dataset::Range(7).Batch(4).Map(Times(1), {{DType::kInt64, Shape{-1}}})), -1);
  EXPECT_EQ(StaticBatchSize(Dataset::Range(8).Batch(4).Shard(kShardHint, kShardHint).Prefetch(1)), 4);
}

}  // namespace
}  // namespace cohort::data
