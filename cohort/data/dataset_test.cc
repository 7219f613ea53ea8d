#include "cohort/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/mutex.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/testing/drain.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Rows = std::vector<std::vector<int64_t>>;

Tensor Iota(const Shape& shape) {
  Tensor tensor(DType::kInt64, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data<int64_t>()[i] = i;
  return tensor;
}

TEST(DatasetTest, Sources) {
  EXPECT_EQ(Drain(Dataset::FromTensorSlices({Iota({3, 2}), Iota({3})})), (Rows{{0, 1, 0}, {2, 3, 1}, {4, 5, 2}}));
  EXPECT_EQ(Drain(Dataset::FromTensors({Iota({3}), Iota({})})), (Rows{{0, 1, 2, 0}}));
  EXPECT_THAT(Scalars(Dataset::Range(2, 9, 3)), ElementsAre(2, 5, 8));
  EXPECT_THAT(Scalars(Dataset::Range(3, -3, -2)), ElementsAre(3, 1, -1));
  EXPECT_THAT(Scalars(Dataset::Range(3, -3)), IsEmpty());
  EXPECT_EQ(ToString(Dataset::FromTensorSlices({Iota({3, 2}), Iota({3})}).element_spec()), "(int64[2], int64[])");
}

TEST(DatasetTest, SourcesRefuseWhatMakesNoSense) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                Dataset::FromTensorSlices({Iota({3, 2}), Iota({4})});
              }),
              HasSubstr("(int64[3,2], int64[4])"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Dataset::FromTensorSlices({Iota({})}); }), HasSubstr("int64[]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Dataset::Range(0, 5, 0); }), HasSubstr("got 0"));
  EXPECT_THROW(Dataset::Range(INT64_MIN, INT64_MAX), InvalidArgumentError);
  EXPECT_THROW(Dataset::Range(0, INT64_MIN, -1),
               InvalidArgumentError);  // 2^63 numbers; the division would end the process
  EXPECT_THROW(Dataset::FromTensors({}), InvalidArgumentError);
  EXPECT_THROW(Dataset::Zip({}), InvalidArgumentError);
}

TEST(DatasetTest, StagesRefuseWhatMakesNoSense) {
  const Dataset range = Dataset::Range(4);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { range.Shuffle(0); }), HasSubstr("got 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { range.Batch(0); }), HasSubstr("got 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { range.Repeat(-2); }), HasSubstr("got -2"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { range.Take(-7); }), HasSubstr("got -7"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { range.Skip(-7); }), HasSubstr("got -7"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { range.Prefetch(-3); }), HasSubstr("got -3"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { range.Shard(3, 3); }), HasSubstr("from 0 to 2; got 3"));
  EXPECT_THROW(range.Shard(0, 0), InvalidArgumentError);
  EXPECT_THROW(range.Map(Times(1), kInt64Scalar, {.num_parallel_calls = 0}), InvalidArgumentError);
  EXPECT_THROW(range.Map(nullptr, kInt64Scalar), InvalidArgumentError);
  EXPECT_THROW(range.MakeIterator({.epoch = -1}), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { range.Concatenate(Dataset::FromTensorSlices({Tensor::Vector<float>({1})})); }),
              HasSubstr("(int64[]) and (float32[])"));
  EXPECT_THROW(range.Unbatch(), InvalidArgumentError);
}

TEST(DatasetTest, ZipEndsWithTheShortestAndConcatenateGoesOn) {
  for (const bool sequential : {false, true}) {
    const Dataset three = sequential ? Sequential(3) : Dataset::Range(3);
    EXPECT_EQ(Drain(Dataset::Zip({three, Dataset::Range(10, 15)})), (Rows{{0, 10}, {1, 11}, {2, 12}}));
    EXPECT_THAT(Scalars(three.Concatenate(Dataset::Range(7, 9))), ElementsAre(0, 1, 2, 7, 8));
  }
  const Dataset mixed = Dataset::FromTensors({Iota({2, 3})}).Concatenate(Dataset::FromTensors({Iota({2, 4})}));
  EXPECT_EQ(ToString(mixed.element_spec()), "(int64[2,?])");
}

TEST(DatasetTest, TakeSkipAndShard) {
  for (const bool sequential : {false, true}) {
    const Dataset ten = sequential ? Sequential(10) : Dataset::Range(10);
    EXPECT_THAT(Scalars(ten.Take(3)), ElementsAre(0, 1, 2));
    EXPECT_EQ(Scalars(ten.Take(-1)).size(), 10u);
    EXPECT_EQ(Scalars(ten.Take(30)).size(), 10u);
    EXPECT_THAT(Scalars(ten.Take(0)), IsEmpty());
    EXPECT_THAT(Scalars(ten.Skip(7)), ElementsAre(7, 8, 9));
    EXPECT_THAT(Scalars(ten.Skip(10)), IsEmpty());
    EXPECT_THAT(Scalars(ten.Skip(-1)), IsEmpty());
    EXPECT_THAT(Scalars(ten.Shard(4, 1)), ElementsAre(1, 5, 9));
    EXPECT_THAT(Scalars(ten.Shard(4, 3)), ElementsAre(3, 7));
    EXPECT_THAT(Scalars(ten.Shard(20, 11)), IsEmpty());
    EXPECT_THAT(Scalars(ten.Skip(2).Take(5).Shard(2, 1)), ElementsAre(3, 5));
  }
}

TEST(DatasetTest, BatchKeepsTheRestUnlessToldOtherwise) {
  const Dataset slices = Dataset::FromTensorSlices({Iota({5, 2}), Iota({5})});
  const Dataset batches = slices.Batch(2);
  EXPECT_EQ(Drain(batches), (Rows{{0, 1, 2, 3, 0, 1}, {4, 5, 6, 7, 2, 3}, {8, 9, 4}}));
  EXPECT_EQ(ToString(batches.element_spec()), "(int64[?,2], int64[?])");
  const Dataset whole = slices.Batch(2, /*drop_remainder=*/true);
  EXPECT_EQ(Drain(whole).size(), 2u);
  EXPECT_EQ(ToString(whole.element_spec()), "(int64[2,2], int64[2])");
  EXPECT_EQ(Scalars(Dataset::Range(7).Batch(3).Unbatch()), Scalars(Dataset::Range(7)));
  const Dataset strings = Dataset::FromTensorSlices({Tensor::Vector<std::string>({"a", "bc"})}).Batch(5);
  EXPECT_EQ(strings.MakeIterator()->Next()[0].ToVector<std::string>(), (std::vector<std::string>{"a", "bc"}));
}

TEST(DatasetTest, EndIsAnErrorOfTheNextThatReturnsTheElement) {
  const auto iterator = Dataset::Range(1).MakeIterator();
  EXPECT_EQ(Values(iterator->Next()), std::vector<int64_t>{0});
  EXPECT_THROW(iterator->Next(), OutOfRangeError);
  EXPECT_THROW(iterator->Next(), OutOfRangeError);
}

TEST(DatasetTest, RepeatCountsAndEnds) {
  EXPECT_THAT(Scalars(Dataset::Range(2).Repeat(3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(Scalars(Dataset::Range(2).Repeat(0)), IsEmpty());
  EXPECT_THAT(Scalars(Dataset::Range(2).Repeat(), 5), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(Scalars(Dataset::Range(0).Repeat()), IsEmpty());
  EXPECT_THAT(Scalars(Dataset::Range(0).Repeat(3)), IsEmpty());
  // Full batches with repeats, as in the guides: shuffle(10).repeat().batch(64) over three elements.
  const Rows batches = Drain(Dataset::Range(3).Shuffle(10).Repeat().Batch(64), 3);
  for (const std::vector<int64_t>& batch : batches) EXPECT_EQ(batch.size(), 64u);
}

// The orders of TensorFlow 2.21 for Dataset.range(10).shuffle(4, seed=7), three passes.
TEST(ShuffleTest, OrderIsTensorFlows) {
  for (const bool sequential : {false, true}) {
    const Dataset ten = sequential ? Sequential(10) : Dataset::Range(10);
    const Dataset shuffled = ten.Shuffle(4, 7);
    EXPECT_THAT(Scalars(shuffled), ElementsAre(0, 4, 2, 3, 5, 6, 1, 8, 7, 9));
    EXPECT_THAT(Scalars(shuffled, 100, {.epoch = 1}), ElementsAre(1, 3, 0, 4, 6, 5, 7, 8, 9, 2));
    EXPECT_THAT(Scalars(shuffled, 100, {.epoch = 2}), ElementsAre(3, 2, 4, 6, 1, 8, 5, 7, 0, 9));
    EXPECT_THAT(Scalars(ten.Shuffle(4, 7, /*reshuffle_each_iteration=*/false).Repeat(2)),
                ElementsAre(3, 4, 0, 5, 1, 8, 2, 7, 6, 9, 3, 4, 0, 5, 1, 8, 2, 7, 6, 9));
    EXPECT_THAT(Scalars(ten.Shuffle(100, 7).Repeat(2)),
                ElementsAre(2, 8, 6, 5, 9, 1, 0, 3, 7, 4, 9, 1, 3, 0, 6, 4, 7, 8, 2, 5));
  }
}

TEST(ShuffleTest, AnElementComesAtMostABufferEarly) {
  const std::vector<int64_t> order = Scalars(Dataset::Range(500).Shuffle(8, 3));
  EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 500u);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_LT(order[i], static_cast<int64_t>(i) + 8);
  EXPECT_EQ(Scalars(Dataset::Range(20).Shuffle(1, 3)), Scalars(Dataset::Range(20)));
}

TEST(ShuffleTest, EveryPermutationIsAboutAsLikely) {
  std::map<std::vector<int64_t>, int> counts;
  constexpr int kDraws = 6000;
  for (int epoch = 0; epoch < kDraws; ++epoch) ++counts[Scalars(Dataset::Range(3).Shuffle(3, 1), 9, {.epoch = epoch})];
  ASSERT_EQ(counts.size(), 6u);
  double chi_squared = 0;
  for (const auto& [order, count] : counts) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_squared, 20.5);  // 0.1% with 5 degrees of freedom
}

TEST(ShuffleTest, WithoutASeedDescriptionsDifferAndIteratorsOfOneDoNot) {
  const Dataset shuffled = Dataset::Range(50).Shuffle(50);
  EXPECT_EQ(Scalars(shuffled), Scalars(shuffled));
  EXPECT_NE(Scalars(shuffled), Scalars(shuffled, 100, {.epoch = 1}));
  EXPECT_NE(Scalars(shuffled), Scalars(Dataset::Range(50).Shuffle(50)));
}

TEST(DatasetTest, Cardinality) {
  const Dataset seven = Dataset::Range(7);
  EXPECT_EQ(seven.Batch(2).Cardinality(), 4);
  EXPECT_EQ(seven.Batch(2, true).Cardinality(), 3);
  EXPECT_EQ(seven.Repeat(3).Cardinality(), 21);
  EXPECT_EQ(seven.Repeat().Cardinality(), kInfiniteCardinality);
  EXPECT_EQ(seven.Repeat().Take(9).Cardinality(), 9);
  EXPECT_EQ(seven.Repeat().Skip(9).Cardinality(), kInfiniteCardinality);
  EXPECT_EQ(seven.Repeat(0).Repeat().Cardinality(), 0);
  EXPECT_EQ(seven.Skip(5).Cardinality(), 2);
  EXPECT_EQ(seven.Shard(3, 1).Cardinality(), 2);
  const Dataset filtered = seven.Filter([](const Element&) { return true; });
  EXPECT_EQ(filtered.Cardinality(), kUnknownCardinality);
  EXPECT_EQ(Dataset::Zip({filtered, seven.Repeat()}).Cardinality(), kUnknownCardinality);
  EXPECT_EQ(Dataset::Zip({seven, seven.Repeat()}).Cardinality(), 7);
  EXPECT_EQ(filtered.Concatenate(seven.Repeat()).Cardinality(), kInfiniteCardinality);
  EXPECT_EQ(seven.Batch(2, true).Unbatch().Cardinality(), 6);
  EXPECT_EQ(seven.Map(Times(2), kInt64Scalar).Cache().Prefetch(1).Shuffle(3).Cardinality(), 7);
}

TEST(MapTest, KeepsTheOrderWithParallelCalls) {
  for (const int parallel : {1, 2, 7}) {
    const auto slow_start = [](const Element& element) -> Element {
      const int64_t value = element[0].scalar<int64_t>();
      int64_t sum = 0;  // the first of each group takes longest
      for (int64_t i = 0; i < (value % 4 == 0 ? 200000 : 10); ++i) sum += i % (value + 2);
      return {Tensor::Scalar(value * 3 + (sum < 0 ? 1 : 0))};
    };
    EXPECT_EQ(Scalars(Dataset::Range(40).Map(slow_start, kInt64Scalar, {.num_parallel_calls = parallel})),
              Scalars(Dataset::Range(0, 120, 3)));
  }
}

TEST(MapTest, CallsAreUnderWayAtOnce) {
  Mutex mu;
  CondVar both;
  int inside = 0;
  bool met = false;
  const auto meet = [&](const Element& element) -> Element {
    MutexLock lock(mu);
    met = met || ++inside == 2;
    both.NotifyAll();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!met && both.WaitUntil(mu, deadline)) {
    }
    return element;
  };
  EXPECT_EQ(Scalars(Dataset::Range(2).Map(meet, kInt64Scalar, {.num_parallel_calls = 2})).size(), 2u);
  EXPECT_TRUE(met);
}

TEST(MapTest, FilterKeepsWhatHolds) {
  const Dataset even = Dataset::Range(7).Filter([](const Element& e) { return e[0].scalar<int64_t>() % 2 == 0; });
  EXPECT_THAT(Scalars(even), ElementsAre(0, 2, 4, 6));
}

TEST(MapTest, TakeWhileEndsAtTheFirstThatDoesNotHold) {
  const auto small = [](const Element& e) { return e[0].scalar<int64_t>() % 5 != 3; };
  EXPECT_THAT(Scalars(Dataset::Range(10).TakeWhile(small)), ElementsAre(0, 1, 2));
  EXPECT_THAT(Scalars(Dataset::Range(3).TakeWhile(small).Repeat(2)), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(Scalars(Dataset::Range(3, 10).TakeWhile(small)), IsEmpty());
  const auto iterator = Dataset::Range(10).TakeWhile(small).MakeIterator();
  Drain(*iterator);
  Element element;
  EXPECT_FALSE(iterator->Next(&element)) << "the end stays, although 4 is small";
  EXPECT_EQ(Dataset::Range(10).TakeWhile(small).Cardinality(), kUnknownCardinality);
  EXPECT_THROW(Dataset::Range(10).TakeWhile(HostPredicate()), InvalidArgumentError);
}

TEST(EnumerateTest, NumbersComeFirst) {
  const Dataset numbered = Dataset::Range(10, 13).Enumerate();
  EXPECT_THAT(Drain(numbered), ElementsAre(ElementsAre(0, 10), ElementsAre(1, 11), ElementsAre(2, 12)));
  EXPECT_EQ(numbered.Cardinality(), 3);
  EXPECT_THAT(Drain(Dataset::Range(2).Enumerate(-1)), ElementsAre(ElementsAre(-1, 0), ElementsAre(0, 1)));
  EXPECT_EQ(Dataset::Range(3).Repeat().Enumerate().Cardinality(), kInfiniteCardinality);
  EXPECT_THAT(Drain(Dataset::Range(2).Repeat().Enumerate(5), 3),
              ElementsAre(ElementsAre(5, 0), ElementsAre(6, 1), ElementsAre(7, 0)));
}

// A pass yields the numbers 0 to end - 1, but the call for 4 fails. Each pass adds 1 to *passes.
Dataset WithoutFour(int64_t end, int* passes) {
  return Dataset::FromGenerator(
      [end, passes]() -> HostElementSource {
        ++*passes;
        return [n = int64_t{-1}, end]() mutable -> std::optional<Element> {
          if (++n == 4) throw UnavailableError("4 is not there");
          return n < end ? std::optional<Element>(Element{Tensor::Scalar(n)}) : std::nullopt;
        };
      },
      kInt64Scalar);
}

TEST(FromGeneratorTest, EachPassBeginsAnew) {
  int passes = 0;
  const Dataset dataset = WithoutFour(3, &passes);
  EXPECT_EQ(passes, 0);
  EXPECT_THAT(Scalars(dataset.Repeat(2)), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_EQ(passes, 2);
  EXPECT_EQ(dataset.ToString(), "FromGenerator((int64[]))");
  EXPECT_EQ(dataset.Cardinality(), kUnknownCardinality);
  EXPECT_THAT(Drain(dataset.Batch(2)), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(FromGeneratorTest, TheNextCallGoesOnAfterAnElementThatFailed) {
  int passes = 0;
  const Dataset dataset = WithoutFour(7, &passes);
  const auto iterator = dataset.MakeIterator();
  EXPECT_EQ(Drain(*iterator, 4).size(), 4u);
  EXPECT_THAT(MessageOf<UnavailableError>([&] { iterator->Next(); }),
              AllOf(HasSubstr("4 is not there"), HasSubstr("from stage FromGenerator")));
  EXPECT_EQ(iterator->Next()[0].scalar<int64_t>(), 5);
  const auto restored = dataset.MakeIterator();
  restored->Restore(iterator->Save());
  EXPECT_THAT(Drain(*restored), ElementsAre(ElementsAre(6)));
  const auto at_end = dataset.MakeIterator();
  at_end->Restore(restored->Save());
  EXPECT_THAT(Drain(*at_end), IsEmpty());
}

// A restore makes the elements before the position again, which may take long.
TEST(FromGeneratorTest, ARestoreCanBeStopped) {
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  int64_t calls = 0;
  const Dataset dataset = Dataset::FromGenerator(
      [&]() -> HostElementSource {
        return [&]() -> std::optional<Element> {
          if (++calls == 13) *stop = true;  // the third call of the restore
          return Element{Tensor::Scalar(calls)};
        };
      },
      kInt64Scalar);
  const auto saved = dataset.MakeIterator();
  Drain(*saved, 10);
  EXPECT_THROW(dataset.MakeIterator({.stop = stop})->Restore(saved->Save()), CancelledError);
  EXPECT_EQ(calls, 13);
}

TEST(FromGeneratorTest, BadGeneratorsAndElementsAreNamed) {
  EXPECT_THROW(Dataset::FromGenerator({}, kInt64Scalar), InvalidArgumentError);
  EXPECT_THROW(Dataset::FromGenerator([] { return HostElementSource(); }, {}), InvalidArgumentError);
  const Dataset empty = Dataset::FromGenerator([] { return HostElementSource(); }, kInt64Scalar);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { empty.MakeIterator()->Next(); }), HasSubstr("got an empty one"));
  const auto floats = [] { return [] { return std::optional<Element>(Element{Tensor::Scalar(1.0f)}); }; };
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { Dataset::FromGenerator(floats, kInt64Scalar).MakeIterator()->Next(); }),
      AllOf(HasSubstr("int64"), HasSubstr("float32")));
}

// The orders of TensorFlow's InterleaveDataset; tests/interop compares more of them.
TEST(InterleaveTest, TakesBlocksInTurn) {
  const auto inner = [](const Element& element) {
    return Dataset::FromTensors({element[0]}).Repeat(element[0].scalar<int64_t>() + 1);
  };
  const auto run = [&](int cycle, int block) {
    return Scalars(Dataset::Range(4).Interleave(inner, kInt64Scalar, {.cycle_length = cycle, .block_length = block}));
  };
  EXPECT_THAT(run(1, 1), ElementsAre(0, 1, 1, 2, 2, 2, 3, 3, 3, 3));
  EXPECT_THAT(run(2, 1), ElementsAre(0, 1, 1, 2, 2, 3, 2, 3, 3, 3));
  EXPECT_THAT(run(2, 2), ElementsAre(0, 1, 1, 2, 2, 2, 3, 3, 3, 3));
  EXPECT_EQ(run(10, 1).size(), 10u);
  EXPECT_EQ(Scalars(Dataset::Range(4).FlatMap(inner, kInt64Scalar)), run(1, 1));
}

// The element that is ready is the next one, in the same memory. Looking at it does not change the position.
TEST(PrefetchTest, ShowsWhatIsReady) {
  const Dataset dataset = Dataset::Range(5).Batch(2);
  const auto plain = dataset.MakeIterator();
  std::vector<Tensor> seen;
  EXPECT_FALSE(plain->PeekReady(&seen));
  const auto iterator = dataset.Prefetch(2).MakeIterator();
  EXPECT_FALSE(iterator->PeekReady(&seen));  // its thread begins with the first Next
  std::vector<Tensor> element = iterator->Next();
  for (int batch = 1; batch < 3; ++batch) {
    const std::string position = iterator->Save();
    while (!iterator->PeekReady(&seen)) std::this_thread::yield();
    EXPECT_EQ(iterator->Save(), position);
    element = iterator->Next();
    EXPECT_EQ(element.at(0).raw_data(), seen.at(0).raw_data());
  }
  EXPECT_FALSE(iterator->Next(&element));
  EXPECT_FALSE(iterator->PeekReady(&seen));
}

// An error of the input is no element, and Next throws it.
TEST(PrefetchTest, ShowsNoError) {
  std::atomic<int> begun{0};
  const auto fail_second = [&begun](const std::vector<Tensor>& element) {
    if (++begun == 2) throw InvalidArgumentError("the second");
    return element;
  };
  const Dataset numbers = Dataset::Range(4);
  const auto iterator = numbers.Map(fail_second, numbers.element_spec()).Prefetch(2).MakeIterator();
  std::vector<Tensor> element = iterator->Next();
  while (begun < 3) std::this_thread::yield();  // so the error is in the queue
  EXPECT_FALSE(iterator->PeekReady(&element));
  EXPECT_THROW(iterator->Next(), InvalidArgumentError);
  while (!iterator->PeekReady(&element)) std::this_thread::yield();
  EXPECT_EQ(element.at(0).scalar<int64_t>(), 2);
}

TEST(PrefetchTest, YieldsTheSame) {
  for (const int64_t size : {-1, 0, 1, 3, 100}) {
    EXPECT_EQ(Drain(Dataset::Range(20).Shuffle(5, 1).Batch(3).Prefetch(size).Repeat(2)),
              Drain(Dataset::Range(20).Shuffle(5, 1).Batch(3).Repeat(2)));
  }
}

TEST(PrefetchTest, RunsAheadByItsBufferAndEndsWithItsIterator) {
  Mutex mu;
  CondVar changed;
  int calls = 0;
  const auto count = [&](const Element& element) -> Element {
    MutexLock lock(mu);
    ++calls;
    changed.NotifyAll();
    return element;
  };
  {
    const auto iterator = Dataset::Range(100).Map(count, kInt64Scalar).Prefetch(4).MakeIterator();
    Element element;
    ASSERT_TRUE(iterator->Next(&element));
    MutexLock lock(mu);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (calls < 5 && changed.WaitUntil(mu, deadline)) {
    }
    EXPECT_EQ(calls, 5);
  }
  EXPECT_EQ(calls, 5);  // the thread has ended: nobody else touches it
}

class CacheTest : public ::testing::Test {
 protected:
  Dataset Counted(int64_t n) {
    const auto count = [this](const Element& element) -> Element {
      ++calls_;
      return element;
    };
    return Dataset::Range(n).Map(count, kInt64Scalar);
  }
  const testing::TempFolder folder_;
  std::atomic<int> calls_ = 0;
};

TEST_F(CacheTest, MemoryServesLaterPassesAndIterators) {
  const Dataset cached = Counted(5).Cache();
  EXPECT_EQ(Scalars(cached.Repeat(3)).size(), 15u);
  EXPECT_EQ(calls_, 5);
  EXPECT_THAT(Scalars(cached), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(calls_, 5);
}

TEST_F(CacheTest, APassThatIsNotFinishedIsNotKept) {
  const Dataset cached = Counted(5).Cache();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Scalars(cached.Take(2)).size(), 2u);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("left after 2 elements"));
  EXPECT_EQ(Scalars(cached).size(), 5u);
  EXPECT_EQ(calls_, 7);
}

TEST_F(CacheTest, WhatIsShuffledBeforeItStaysInOrderForEver) {
  const Dataset cached = Dataset::Range(10).Shuffle(10, 1).Cache();
  EXPECT_EQ(Scalars(cached), Scalars(cached, 100, {.epoch = 3}));
}

TEST_F(CacheTest, FileServesOtherDescriptions) {
  const std::string file = folder_ / "numbers";
  EXPECT_EQ(Scalars(Counted(5).Cache(file).Repeat(2)).size(), 10u);
  EXPECT_EQ(calls_, 5);
  EXPECT_TRUE(FileExists(file + ".cache"));
  EXPECT_THAT(Scalars(Counted(5).Cache(file)), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(calls_, 5);
  EXPECT_THROW(Scalars(Counted(6).Cache(file)), FailedPreconditionError);
}

TEST_F(CacheTest, FileOfAnUnfinishedPassIsRemoved) {
  EXPECT_EQ(Scalars(Counted(5).Cache(folder_ / "part").Take(2)).size(), 2u);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(CacheTest, DamagedFilesAreTold) {
  const std::string file = folder_ / "numbers";
  Scalars(Dataset::Range(5).Cache(file));
  const std::string bytes = ReadFile(file + ".cache");
  for (size_t size = 0; size < bytes.size(); size += 3) {
    WriteFileAtomically(file + ".cache", bytes.substr(0, size));
    EXPECT_THROW(Scalars(Dataset::Range(5).Cache(file)), DataLossError) << size;
  }
}

}  // namespace
}  // namespace cohort::data
