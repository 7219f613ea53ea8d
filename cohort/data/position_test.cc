// Positions: an iterator that is restored yields exactly what the saved one would have yielded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/data/dataset.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/testing/drain.h"

namespace cohort::data {
namespace {

using ::testing::HasSubstr;

struct Pipeline {
  const char* name;
  std::function<Dataset()> make;
  bool small = true;  // the position holds no elements
};
std::ostream& operator<<(std::ostream& out, const Pipeline& pipeline) { return out << pipeline.name; }

Dataset Blocks(int64_t n) {
  return Dataset::Range(n).Interleave(
      [](const Element& element) {
        const int64_t first = element[0].scalar<int64_t>() * 10;
        return Dataset::Range(first, first + 4).Shuffle(3, first);
      },
      kInt64Scalar, {.cycle_length = 2, .block_length = 3});
}

Dataset Even(const Dataset& dataset) {
  return dataset.Filter([](const Element& element) { return element[0].scalar<int64_t>() % 2 == 0; });
}

// Element n is a vector of n numbers n.
Dataset Repeated(int64_t count) {
  return Dataset::Range(count).Map(
      [](const Element& element) -> Element {
        const auto n = element[0].scalar<int64_t>();
        return {Tensor::Vector(std::vector<int64_t>(static_cast<size_t>(n), n))};
      },
      {{DType::kInt64, Shape{-1}}});
}

// The numbers 0 to end - 1, from a generator.
Dataset Counted(int64_t end) {
  return Dataset::FromGenerator(
      [end]() -> HostElementSource {
        return [n = int64_t{0}, end]() mutable {
          return n < end ? std::optional<Element>(Element{Tensor::Scalar(n++)}) : std::nullopt;
        };
      },
      kInt64Scalar);
}

std::vector<Pipeline> Pipelines() {
  using D = Dataset;
  return {
      {"range", [] { return D::Range(9); }},
      {"shuffle", [] { return D::Range(9).Shuffle(20, 5); }},
      {"shuffle_small_buffer", [] { return D::Range(9).Shuffle(4, 5).Repeat(2); }},
      {"shuffle_elements", [] { return Sequential(9).Shuffle(4, 5).Repeat(2); }, false},
      {"shuffle_repeated", [] { return D::Range(3).Repeat(4).Shuffle(4, 5); }, false},
      {"shuffle_unseeded", [] { return D::Range(9).Shuffle(9).Repeat(3); }},
      {"shuffle_unseeded_once", [] { return D::Range(9).Shuffle(9, std::nullopt, false).Repeat(3); }},
      {"training", [] { return D::Range(9).Shuffle(9).Repeat(3).Batch(4).Prefetch(2); }},
      {"prefetch_elements", [] { return Sequential(9).Shuffle(4).Batch(2).Prefetch(2); }, false},
      {"prefetch_all", [] { return D::Range(4).Prefetch(10).Prefetch(1); }},
      {"zip",
       [] {
         return D::Zip({Sequential(5), D::Range(7).Repeat(2)});
       }},
      {"concatenate", [] { return Sequential(4).Concatenate(D::Range(3).Repeat(2)); }},
      {"subsets", [] { return Sequential(20).Skip(3).Take(12).Shard(2, 1); }},
      {"padded_batch", [] { return Repeated(7).PaddedBatch(2); }},
      {"padded_batch_elements", [] { return Repeated(7).Shuffle(3, 1).PaddedBatch(2, {.drop_remainder = true}); },
       false},
      {"filter", [] { return Even(D::Range(12)).Batch(2, true); }},
      {"take_while",
       [] { return Sequential(9).TakeWhile([](const Element& e) { return e[0].scalar<int64_t>() < 6; }).Repeat(2); }},
      {"enumerate", [] { return Sequential(6).Enumerate(3).Batch(2); }},
      {"generator", [] { return Counted(5).Batch(2).Repeat(2); }},
      {"map", [] { return D::Range(7).Map(Times(3), kInt64Scalar, {.num_parallel_calls = 3}); }},
      {"short_calls", [] { return D::Range(400).Map(Times(3), kInt64Scalar, {.num_parallel_calls = 3}); }},
      {"short_calls_of_shuffled",
       [] { return Sequential(300).Shuffle(50, 1).Map(Times(3), kInt64Scalar, {.num_parallel_calls = 2}); }, false},
      {"map_elements",
       [] { return Sequential(9).Shuffle(3, 1).Map(Times(3), kInt64Scalar, {.num_parallel_calls = 3}); }, false},
      {"interleave", [] { return Blocks(5); }, false},
      {"interleave_prefetch", [] { return Blocks(5).Prefetch(3).Repeat(2); }, false},
      {"unbatch", [] { return Sequential(9).Batch(4).Unbatch(); }},
      {"unbatch_elements", [] { return Sequential(9).Shuffle(4, 1).Batch(4).Unbatch(); }, false},
      {"rebatch",
       [] {
         return Rebatch(D::Range(11).Batch(4), {3, 0, 1});
       },
       false},
      {"legacy_rebatch", [] { return LegacyRebatch(D::Range(11).Batch(4), 3); }},
      {"cache", [] { return D::Range(5).Shuffle(5).Cache().Repeat(3); }},
      {"cache_then_shuffle", [] { return D::Range(5).Cache().Shuffle(5).Repeat(2); }, false},
  };
}

class PositionTest : public ::testing::TestWithParam<Pipeline> {};

TEST_P(PositionTest, RestoredIteratorYieldsTheRest) {
  const Dataset dataset = GetParam().make();
  // Another description, as another process has it: other seeds are drawn, nothing is cached.
  const size_t count = Drain(dataset).size();
  ASSERT_GT(count, 2u);
  for (size_t at = 0; at <= count + 1; ++at) {
    const auto saved = GetParam().make().MakeIterator();
    Drain(*saved, static_cast<int>(at));
    if (at == count + 1) Drain(*saved);
    const std::string position = saved->Save();
    const auto restored = GetParam().make().MakeIterator();
    Drain(*restored, 1);  // wherever it was before
    restored->Restore(position);
    const auto rest = Drain(*restored);
    EXPECT_EQ(rest, Drain(*saved)) << "at " << at;
    EXPECT_EQ(rest.size(), count - std::min(at, count)) << "at " << at;
  }
}

// A restored iterator's own positions are as good.
TEST_P(PositionTest, RestoringTwiceIsTheSame) {
  const auto saved = GetParam().make().MakeIterator();
  Drain(*saved, 1);
  const auto second = GetParam().make().MakeIterator();
  second->Restore(saved->Save());
  EXPECT_EQ(Drain(*second, 1), Drain(*saved, 1));
  const auto third = GetParam().make().MakeIterator();
  third->Restore(second->Save());
  EXPECT_EQ(Drain(*third), Drain(*saved));
}

TEST_P(PositionTest, IsSmallWhereItCanBe) {
  const auto iterator = GetParam().make().MakeIterator();
  Drain(*iterator, 2);
  const size_t bytes = iterator->Save().size() - GetParam().make().ToString().size();
  if (GetParam().small) {
    EXPECT_LT(bytes, 40u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PositionTest, ::testing::ValuesIn(Pipelines()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PositionErrorTest, NamesBothPipelines) {
  const std::string position = Dataset::Range(9).Batch(2).MakeIterator()->Save();
  try {
    Dataset::Range(9).Batch(3).MakeIterator()->Restore(position);
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected a position of Range(0, 9, 1).Batch(3)"));
    EXPECT_THAT(error.what(), HasSubstr("got one of Range(0, 9, 1).Batch(2)"));
  }
}

TEST(PositionErrorTest, DamagedBytesAreRefusedAndTheIteratorStaysWhereItWas) {
  const Dataset dataset = Sequential(9).Shuffle(4, 5).Batch(2).Prefetch(2);
  const auto iterator = dataset.MakeIterator();
  Drain(*iterator, 1);
  const std::string position = iterator->Save();
  for (size_t size = 0; size < position.size(); ++size) {
    EXPECT_THROW(iterator->Restore(std::string_view(position).substr(0, size)), Error) << size;
  }
  EXPECT_THROW(iterator->Restore(position + "x"), DataLossError);
  const auto other = dataset.MakeIterator();
  Drain(*other, 1);
  EXPECT_EQ(Drain(*iterator), Drain(*other));
}

TEST(PositionTest, FileCacheCanBeLeftAndFoundAgain) {
  const testing::TempFolder folder;
  const auto make = [&](const std::string& file) { return Dataset::Range(6).Cache(folder / file).Repeat(2); };
  for (int at = 0; at <= 12; ++at) {
    const std::string file = std::to_string(at);
    std::string position;
    {
      const auto saved = make(file).MakeIterator();
      Drain(*saved, at);
      position = saved->Save();
    }
    const auto restored = make(file).MakeIterator();
    restored->Restore(position);
    EXPECT_EQ(Drain(*restored).size(), static_cast<size_t>(12 - at));
  }
}

}  // namespace
}  // namespace cohort::data
