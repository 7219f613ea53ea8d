#include "cohort/data/readers/record_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/dataset.h"
#include "cohort/data/example.h"
#include "cohort/data/readers/readers.h"

namespace cohort::data {
namespace {

using cohort::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> RecordsOf(const std::string& path, Compression compression) {
  std::vector<std::string> all;
  const auto iterator = TFRecordDataset({path}, compression).MakeIterator();
  Element element;
  while (iterator->Next(&element)) all.push_back(element[0].scalar<std::string>());
  return all;
}

class RecordWriterTest : public ::testing::TestWithParam<Compression> {
 protected:
  const TempFolder folder_;
};

TEST_P(RecordWriterTest, RecordsComeBack) {
  const std::string path = folder_ / "x";
  const std::string large(200'000, 'x');
  {
    TFRecordWriter writer(path, {.compression = GetParam()});
    writer.Write("one");
    writer.Write("");
    writer.Flush();
    writer.Write(large);
  }
  EXPECT_THAT(RecordsOf(path, GetParam()), ElementsAre("one", "", large));
  const auto size = std::filesystem::file_size(path);
  if (GetParam() == Compression::kNone) {
    EXPECT_GT(size, large.size());
  } else {
    EXPECT_LT(size, large.size() / 50);
  }
}

TEST_P(RecordWriterTest, AFileWithoutRecordsIsEmpty) {
  TFRecordWriter writer(folder_ / "x", {.compression = GetParam()});
  writer.Close();
  writer.Close();
  EXPECT_TRUE(RecordsOf(folder_ / "x", GetParam()).empty());
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { writer.Write("late"); }), HasSubstr("was closed"));
}

INSTANTIATE_TEST_SUITE_P(Compressions, RecordWriterTest,
                         ::testing::Values(Compression::kNone, Compression::kGzip, Compression::kZlib));

TEST(TFRecordOptionsTest, LevelsAreChecked) {
  const TempFolder folder;
  const auto make = [&](const TFRecordOptions& options) {
    return MessageOf<InvalidArgumentError>([&] { const TFRecordWriter writer(folder / "x", options); });
  };
  EXPECT_THAT(make({.compression = Compression::kGzip, .compression_level = 10}), HasSubstr("got 10"));
  EXPECT_THAT(make({.compression_level = 3}), HasSubstr("no compression"));
}

TEST(ExampleTest, FeaturesAreParsed) {
  const TempFolder folder;
  train::Example example;
  example.Int64List("label", {1}).FloatList("x", {0.5f, 2}).BytesList("raw", {"a"}).Int64List("label", {7});
  TFRecordWriter writer(folder / "x");
  writer.Write(example.SerializeToString());
  writer.Close();
  EXPECT_EQ(example.SerializeToString(), train::Example(example).SerializeToString());
  const Dataset parsed =
      ParseExampleDataset(TFRecordDataset({folder / "x"}), {{.name = "label", .dtype = DType::kInt64},
                                                            {.name = "x", .dtype = DType::kFloat32, .shape = Shape{2}},
                                                            {.name = "raw", .dtype = DType::kString}});
  Element element;
  ASSERT_TRUE(parsed.MakeIterator()->Next(&element));
  EXPECT_EQ(element[0].scalar<int64_t>(), 7);
  EXPECT_THAT(element[1].ToVector<float>(), ElementsAre(0.5f, 2));
  EXPECT_EQ(element[2].scalar<std::string>(), "a");
}

}  // namespace
}  // namespace cohort::data
