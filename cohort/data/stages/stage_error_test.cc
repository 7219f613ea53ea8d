// What goes wrong in a stage is told with the stage, once, and the elements behind it still come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/data/dataset.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/testing/drain.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

Element FailAtTwo(const Element& element) {
  if (element[0].scalar<int64_t>() == 2) throw OutOfRangeError("two is too much");
  return element;
}

// Elements, and -1 for each error of class E.
template <typename E>
std::vector<int64_t> DrainThroughErrors(const Dataset& dataset, std::string* message) {
  const auto iterator = dataset.MakeIterator();
  std::vector<int64_t> all;
  Element element;
  for (int calls = 0; calls < 100; ++calls) {
    try {
      if (!iterator->Next(&element)) return all;
      all.push_back(element[0].scalar<int64_t>());
    } catch (const E& error) {
      *message = error.what();
      all.push_back(-1);
    }
  }
  return all;
}

TEST(StageErrorTest, NamesTheStageAndGoesOn) {
  const Dataset plain = Dataset::Range(5).Map(FailAtTwo, kInt64Scalar);
  const Dataset parallel = Dataset::Range(5).Map(FailAtTwo, kInt64Scalar, {.num_parallel_calls = 3});
  for (const Dataset& dataset : {plain, parallel, plain.Prefetch(3), parallel.Prefetch(1).Prefetch(9)}) {
    std::string message;
    EXPECT_THAT(DrainThroughErrors<OutOfRangeError>(dataset, &message), ElementsAre(0, 1, -1, 3, 4));
    EXPECT_THAT(message, AllOf(HasSubstr("two is too much (from stage Map(host function"),
                               HasSubstr(" for the element (int64[] [2]) of "),
                               HasSubstr(" of Range(0, 5, 1).Map(host function")));
    EXPECT_EQ(message.find("(from"), message.rfind("(from")) << message;
  }
}

TEST(StageErrorTest, DescribesElementsShortly) {
  const Element element = {Tensor::Scalar("a.png"), Tensor::Scalar(std::string(1200, 'x')),
                           Tensor::Scalar(std::string("\0\1", 2)), Tensor::Vector<std::string>({"a", "b"}),
                           Tensor::Vector<int32_t>({1, 2, 3, 4, 5})};
  EXPECT_EQ(Description(element), "(\"a.png\", \"" + std::string(1000, 'x') +
                                      "\"..., a string of 2 bytes, string[2], int32[5] [1, 2, 3, 4, ...])");
}

TEST(StageErrorTest, ForeignExceptionsBecomeInternalErrors) {
  const Dataset dataset =
      Dataset::Range(1).Map([](const Element&) -> Element { throw std::runtime_error("not ours"); }, kInt64Scalar);
  std::string message;
  EXPECT_THAT(DrainThroughErrors<InternalError>(dataset, &message), ElementsAre(-1));
  EXPECT_THAT(message, HasSubstr("not ours"));
}

TEST(StageErrorTest, ElementsOfAnotherSpecAreRefused) {
  std::string message;
  const Dataset dataset = Dataset::Range(1).Map(
      [](const Element&) -> Element {
        return {Tensor::Vector<float>({1, 2})};
      },
      {{DType::kFloat32, Shape{3}}});
  DrainThroughErrors<InvalidArgumentError>(dataset, &message);
  EXPECT_THAT(message, HasSubstr("expected an element of (float32[3]); got (float32[2])"));
  const Dataset inner =
      Dataset::Range(1).Interleave([](const Element&) { return Dataset::Range(2).Batch(2); }, kInt64Scalar);
  EXPECT_THROW(inner.MakeIterator()->Next(), InvalidArgumentError);
}

TEST(StageErrorTest, BatchOfUnequalShapesNamesThem) {
  const Dataset dataset = Dataset::FromTensors({Tensor::Vector<int64_t>({1})})
                              .Concatenate(Dataset::FromTensors({Tensor::Vector<int64_t>({1, 2})}))
                              .Batch(2);
  try {
    dataset.MakeIterator()->Next();
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("int64[1]"), HasSubstr("int64[2]"), HasSubstr("(from stage Batch(2)")));
  }
}

// Counts up. Its first Save throws.
class UnsavableOnce final : public StageIterator {
 public:
  bool Next(Element* out) override {
    *out = {Tensor::Scalar<int64_t>(next_++)};
    return true;
  }
  void Save(WireWriter*) override {
    if (!std::exchange(failed_, true)) throw UnavailableError("no position now");
  }
  void Restore(WireReader*) override {}
  bool HasSmallPosition() const override { return false; }

 private:
  int64_t next_ = 0;
  bool failed_ = false;
};

class UnsavableOnceNode final : public DatasetNode {
 public:
  UnsavableOnceNode() : DatasetNode({}, kInt64Scalar) {}
  std::string kind() const override { return "UnsavableOnce"; }
  int64_t Cardinality() const override { return kInfiniteCardinality; }
  void Write(DescriptionWriter*) const override {}
  NodePtr WithInputs(std::vector<NodePtr>) const override { return shared_from_this(); }

 protected:
  StagePtr MakeStage(const IteratorContext&) const override { return std::make_unique<UnsavableOnce>(); }
};

// A Save that throws halts the prefetching thread no longer than one that succeeds.
TEST(StageErrorTest, PrefetchGoesOnAfterASaveThatThrows) {
  const StagePtr prefetch = MakePrefetch(std::make_shared<UnsavableOnceNode>(), 2)->MakeIterator({});
  const auto next = [&prefetch] {
    Element element;
    EXPECT_TRUE(prefetch->Next(&element));
    return element.at(0).scalar<int64_t>();
  };
  EXPECT_EQ(next(), 0);
  WireWriter position;
  EXPECT_THROW(prefetch->Save(&position), UnavailableError);
  for (int64_t i = 1; i < 6; ++i) EXPECT_EQ(next(), i);
  prefetch->Save(&position);
}

// An iterator that is dropped in the middle ends its threads, with calls under way and waiting.
TEST(StageErrorTest, DroppedIteratorsEnd) {
  for (int count = 0; count < 20; ++count) {
    const auto iterator = Dataset::Range(1000)
                              .Map(FailAtTwo, kInt64Scalar, {.num_parallel_calls = 4})
                              .Prefetch(8)
                              .Repeat()
                              .Prefetch(3)
                              .MakeIterator();
    Element element;
    for (int i = 0; i < count % 3; ++i) ASSERT_TRUE(iterator->Next(&element));
  }
}

}  // namespace
}  // namespace cohort::data
