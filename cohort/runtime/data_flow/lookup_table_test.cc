#include "cohort/runtime/data_flow/lookup_table.h"

#include <gmock/gmock.h>

#include <limits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempFolder;
using Words = std::vector<std::string>;
using Numbers = std::vector<int64_t>;

TEST(LookupTable, FindsValuesAndTheDefault) {
  LookupTable table("t", DType::kString, DType::kInt64, false);
  table.Replace(Tensor::Vector(Words{"a", "b", "a"}), Tensor::Vector(Numbers{1, 2, 1}));
  EXPECT_EQ(table.size(), 2);
  const Tensor found = table.Find(Tensor::FromValues(Words{"b", "c"}, Shape{2, 1}), Tensor::Scalar(int64_t{-1}));
  EXPECT_EQ(found.shape(), (Shape{2, 1}));
  EXPECT_THAT(found.ToVector<int64_t>(), ElementsAre(2, -1));
  table.Replace(Tensor::Vector(Words{"c"}), Tensor::Vector(Numbers{3}));
  EXPECT_THAT(table.Find(Tensor::Vector(Words{"b", "c"}), Tensor::Scalar(int64_t{-1})).ToVector<int64_t>(),
              ElementsAre(-1, 3));
}

TEST(LookupTable, BadCallsAreNamed) {
  LookupTable table("mine", DType::kString, DType::kInt64, false);
  const Tensor keys = Tensor::Vector(Words{"a", "a"}), none = Tensor::Scalar(int64_t{-1});
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { table.Find(keys, none); }), HasSubstr("'mine'"));
  EXPECT_THROW(table.size(), FailedPreconditionError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                table.Replace(keys, Tensor::Vector(Numbers{1, 2}));
              }),
              HasSubstr("the key \"a\" of the table 'mine' occurs at 0 and at 1"));
  EXPECT_THROW(table.Replace(keys, Tensor::Vector(Numbers{1})), InvalidArgumentError);
  EXPECT_THROW(table.Replace(Tensor::Vector(Numbers{1}), Tensor::Vector(Numbers{1})), InvalidArgumentError);
  table.Replace(Tensor::Vector(Words{}), Tensor::Vector(Numbers{}));
  EXPECT_THROW(table.Find(Tensor::Vector(Numbers{1}), none), InvalidArgumentError);
  EXPECT_THROW(table.Find(keys, Tensor::Vector(Numbers{1})), InvalidArgumentError);
  EXPECT_THROW(table.CheckDTypes(DType::kString, DType::kFloat32), FailedPreconditionError);
  EXPECT_THROW(LookupTable("t", DType::kFloat32, DType::kInt64, true), InvalidArgumentError);
  EXPECT_THROW(LookupTable("t", DType::kString, DType::kResource, true), InvalidArgumentError);
}

TEST(LookupTable, IsInitializedOnce) {
  LookupTable table("mine", DType::kString, DType::kInt64, false);
  table.Initialize(Tensor::Vector(Words{"a", "b"}), Tensor::Vector(Numbers{1, 2}));
  table.Initialize(Tensor::Vector(Words{"b", "a", "b"}), Tensor::Vector(Numbers{2, 1, 2}));
  const std::pair<Words, Numbers> others[] = {{{"a", "b"}, {1, 3}}, {{"a", "c"}, {1, 2}}, {{"a"}, {1}}};
  for (const auto& other : others) {
    const Tensor keys = Tensor::Vector(other.first), values = Tensor::Vector(other.second);
    EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { table.Initialize(keys, values); }),
                HasSubstr("the table 'mine' has 2 keys already"));
    EXPECT_THAT(table.Find(Tensor::Vector(Words{"a", "b"}), Tensor::Scalar(int64_t{-1})).ToVector<int64_t>(),
                ElementsAre(1, 2));
  }
}

TEST(LookupTable, ReadsFiles) {
  const TempFolder folder;
  const std::string path = folder / "words.txt";
  WriteFileAtomically(path, "a\t5\r\nb\t6\nc\t7");
  const auto [lines, places] = ReadTableFile({.path = path, .offset = 10}, DType::kString, DType::kInt64);
  EXPECT_THAT(lines.ToVector<std::string>(), ElementsAre("a\t5", "b\t6", "c\t7"));
  EXPECT_THAT(places.ToVector<int64_t>(), ElementsAre(10, 11, 12));
  const auto [words, values] =
      ReadTableFile({.path = path, .key_index = 0, .value_index = 1, .vocab_size = 2}, DType::kString, DType::kFloat32);
  EXPECT_THAT(words.ToVector<std::string>(), ElementsAre("a", "b"));
  EXPECT_THAT(values.ToVector<float>(), ElementsAre(5, 6));
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { ReadTableFile({.path = path, .key_index = 2}, DType::kString, DType::kInt64); }),
              AllOf(HasSubstr("line 1 of " + path), HasSubstr("column 2")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { ReadTableFile({.path = path, .value_index = 0}, DType::kString, DType::kInt64); }),
              HasSubstr("\"a\", which is no number"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { ReadTableFile({.path = path, .vocab_size = 4}, DType::kString, DType::kInt64); }),
              HasSubstr("it has 3"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                ReadTableFile({.path = path, .offset = std::numeric_limits<int64_t>::max()}, DType::kString,
                              DType::kInt64);
              }),
              HasSubstr("line 2 of " + path + " has no number with the offset"));
  WriteFileAtomically(path, " +5 \n0x10\n1e-50");
  EXPECT_THAT(
      ReadTableFile({.path = path, .value_index = -2}, DType::kString, DType::kFloat32).second.ToVector<float>(),
      ElementsAre(5, 16, 0));
  EXPECT_THROW(ReadTableFile({.path = folder / "none"}, DType::kString, DType::kInt64), NotFoundError);
}

}  // namespace
}  // namespace cohort
