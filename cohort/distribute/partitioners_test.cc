#include "cohort/distribute/partitioners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Parts = std::vector<int64_t>;

struct Row {
  const char* what;
  Partitioner partitioner;
  Shape shape;
  Parts expected;
  DType dtype = DType::kFloat32;
};

TEST(PartitionersTest, NumbersOfPartsAreThoseOfTensorFlow) {
  const std::vector<Row> rows = {
      {"fixed", FixedShardsPartitioner(2), {13, 5}, {2, 1}},
      {"fixed, fewer rows", FixedShardsPartitioner(5), {3}, {3}},
      {"fixed, no rows", FixedShardsPartitioner(5), {0, 4}, {1, 1}},
      {"min, default", MinSizePartitioner(), {1024, 1024}, {1, 1}},
      {"min, 4 MiB in 256 KiB", MinSizePartitioner({.max_shards = 16}), {1024, 1024}, {16, 1}},
      {"min, fewer", MinSizePartitioner({.max_shards = 100}), {1024, 1024}, {16, 1}},
      {"min, rounds up", MinSizePartitioner({.max_shards = 100}), {1025, 1024}, {17, 1}},
      {"min, as many as rows", MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 10}), {6, 1}, {6, 1}},
      {"min, at most max_shards", MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 2}), {6, 1}, {2, 1}},
      {"min, small", MinSizePartitioner({.min_shard_bytes = 100, .max_shards = 10}), {6, 1}, {1, 1}},
      {"min, strings", MinSizePartitioner({.min_shard_bytes = 32, .max_shards = 10}), {8}, {4}, DType::kString},
      {"max, one row each", MaxSizePartitioner(4), {6, 1}, {6, 1}},
      {"max, rows larger than a part", MaxSizePartitioner(1), {6, 3}, {6, 1}},
      {"max, two rows each", MaxSizePartitioner(8), {6, 1}, {3, 1}},
      {"max, rest", MaxSizePartitioner(16), {6, 1}, {2, 1}},
      {"max, max_shards", MaxSizePartitioner(4, {.max_shards = 2}), {6, 1}, {2, 1}},
      {"max, whole", MaxSizePartitioner(1024), {6, 1}, {1, 1}},
      {"max, strings", MaxSizePartitioner(32, {.bytes_per_string = 8}), {8}, {2}, DType::kString},
      {"max, no rows", MaxSizePartitioner(32), {0, 4}, {1, 1}},
      {"max, rows without bytes", MaxSizePartitioner(32), {4, 0}, {1, 1}},
      {"TF1 fixed", FixedSizePartitioner(4, 1), {3, 8}, {1, 4}},
      {"TF1 min", MinMaxVariablePartitioner(10, 1, 4), {1, 6}, {1, 6}},
      {"TF1 max", VariableAxisSizePartitioner(8, 1), {1, 6}, {1, 3}},
      {"TF1 max, max_shards", VariableAxisSizePartitioner(8, 0, 16, 2), {6, 1}, {2, 1}},
  };
  for (const Row& row : rows) EXPECT_EQ(row.partitioner(row.shape, row.dtype), row.expected) << row.what;
}

TEST(PartitionersTest, WrongArgumentsAreNamed) {
  const auto message = [](const std::function<void()>& call) { return MessageOf<InvalidArgumentError>(call); };
  EXPECT_THAT(message([] { FixedShardsPartitioner(0); }), AllOf(HasSubstr("num_shards"), HasSubstr("got 0")));
  EXPECT_THAT(message([] { MinSizePartitioner({.min_shard_bytes = -1}); }), HasSubstr("got -1"));
  EXPECT_THAT(message([] { MinSizePartitioner({.max_shards = 0}); }), HasSubstr("maximum of parts"));
  EXPECT_THAT(message([] { MinSizePartitioner({.bytes_per_string = 0}); }), HasSubstr("string"));
  EXPECT_THAT(message([] { MaxSizePartitioner(0); }), HasSubstr("maximum of bytes"));
  EXPECT_THAT(message([] { MaxSizePartitioner(1, {.max_shards = 0}); }), HasSubstr("maximum of parts"));
  EXPECT_THAT(message([] { FixedSizePartitioner(2, -1); }), HasSubstr("axis"));
  EXPECT_THAT(message([] { FixedShardsPartitioner(2)(Shape(), DType::kFloat32); }), HasSubstr("axis 0"));
  EXPECT_THAT(message([] { FixedSizePartitioner(2, 1)(Shape{4}, DType::kFloat32); }),
              AllOf(HasSubstr("axis 1"), HasSubstr("[4]")));
  EXPECT_THAT(message([] { MaxSizePartitioner(2)(Shape{-1, 2}, DType::kFloat32); }), HasSubstr("known shape"));
}

TEST(PartitionersTest, PartsAreAsEqualAsPossible) {
  EXPECT_EQ(PartSizes(13, 5), (Parts{3, 3, 3, 2, 2}));
  EXPECT_EQ(PartSizes(10, 5), (Parts{2, 2, 2, 2, 2}));
  EXPECT_EQ(PartSizes(2, 1), Parts{2});
  EXPECT_EQ(PartSizes(0, 1), Parts{0});
}

}  // namespace
}  // namespace cohort::distribute
