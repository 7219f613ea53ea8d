// .keras files: written, read back, and damaged in every place.
#include "cohort/keras/files/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <fstream>
#include <string>

#include "cohort/core/bfloat16.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/files/weights_file.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<WeightGroup> SomeWeights() {
  return {
      {"", "sequential", {}},
      {"layers/dense",
       "dense",
       {Tensor::FromValues(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{2, 3}),
        Tensor::Vector(std::vector<float>{7, 8, 9})}},
      {"layers/flatten", "flatten", {}},
      {"optimizer", "adam", {Tensor::Scalar(int64_t{42}), Tensor::Scalar(0.001f)}},
  };
}

void ExpectSame(const std::vector<WeightGroup>& a, const std::vector<WeightGroup>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].path, b[i].path);
    ASSERT_EQ(a[i].values.size(), b[i].values.size()) << a[i].path;
    for (size_t k = 0; k < a[i].values.size(); ++k) {
      EXPECT_EQ(a[i].values[k].ToString(100), b[i].values[k].ToString(100)) << a[i].path;
    }
  }
}

class ArchiveTest : public ::testing::Test {
 protected:
  std::string Damaged(const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return ErrorOf([&] { ReadModelArchive(path); });
  }

  const testing::TempFolder folder;
  const std::string path = folder / "model.keras";
};

TEST_F(ArchiveTest, ComesBackAsItWasWritten) {
  const std::string weights = EncodeWeights(SomeWeights());
  WriteModelArchive(path, {.config = "{\"class_name\": \"Sequential\"}", .weights = weights});
  const ModelArchive archive = ReadModelArchive(path);
  EXPECT_EQ(archive.config, "{\"class_name\": \"Sequential\"}");
  EXPECT_EQ(archive.weights, weights);
  EXPECT_THAT(archive.keras_version, StartsWith("3."));
  EXPECT_THAT(archive.date_saved, ::testing::MatchesRegex("....-..-..@..:..:.."));
  ExpectSame(DecodeWeights(archive.weights, path), SomeWeights());
}

TEST_F(ArchiveTest, TruncatedAtAnyLengthIsDataLossThatNamesTheFile) {
  WriteModelArchive(path, {.config = std::string(100, 'c'), .weights = std::string(1000, 'w')});
  const std::string whole = ReadFile(path);
  for (size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_THAT(Damaged(whole.substr(0, size)), AllOf(StartsWith("DataLoss: "), HasSubstr(path))) << size;
  }
}

TEST_F(ArchiveTest, AChangedByteInAMemberIsFound) {
  WriteModelArchive(path, {.config = std::string(100, 'c'), .weights = std::string(1000, 'w')});
  std::string bytes = ReadFile(path);
  bytes[bytes.find("wwww") + 500] = 'x';
  EXPECT_THAT(Damaged(bytes), AllOf(StartsWith("DataLoss: "), HasSubstr("model.weights.h5"), HasSubstr(path)));
}

// Writes an archive with one member, which is compressed.
void WriteMetadata(const std::string& path, const std::string& metadata, zip_int32_t method = ZIP_CM_DEFLATE) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  ASSERT_NE(archive, nullptr);
  zip_source_t* source = zip_source_buffer(archive, metadata.data(), metadata.size(), 0);
  ASSERT_GE(zip_file_add(archive, "metadata.json", source, ZIP_FL_ENC_UTF_8), 0);
  ASSERT_EQ(zip_set_file_compression(archive, 0, method, 0), 0);
  ASSERT_EQ(zip_close(archive), 0);
}

TEST_F(ArchiveTest, MetadataHaveABoundedDepthAndSize) {
  const std::string nested = std::string(500'000, '[') + std::string(500'000, ']');
  WriteMetadata(path, nested);  // 1.2 kB
  EXPECT_THAT(ErrorOf([&] { ReadModelArchive(path); }), AllOf(StartsWith("DataLoss"), HasSubstr("at most 16 others")));
  WriteMetadata(path, "{\"a\": \"" + std::string(3 << 20, 'a') + "\"}");
  EXPECT_THAT(ErrorOf([&] { ReadModelArchive(path); }), AllOf(StartsWith("DataLoss"), HasSubstr("larger than")));
}

// Methods such as lzma allocate what the file says before they read the first byte.
TEST_F(ArchiveTest, OnlyDeflateIsUnpacked) {
  if (zip_compression_method_supported(ZIP_CM_BZIP2, 1) == 0) GTEST_SKIP() << "this libzip has no bzip2";
  WriteMetadata(path, "{\"keras_version\": \"" + std::string(1000, '3') + "\"}", ZIP_CM_BZIP2);
  EXPECT_THAT(ErrorOf([&] { ReadModelArchive(path); }),
              AllOf(StartsWith("DataLoss"), HasSubstr("nor packed with deflate")));
}

TEST_F(ArchiveTest, NewerVersionsAndOtherFilesAreNamed) {
  WriteModelArchive(path, {.keras_version = "4.1.0", .config = "{}", .weights = "w"});
  EXPECT_THAT(MessageOf<UnimplementedError>([&] { ReadModelArchive(path); }),
              AllOf(HasSubstr("4.1.0"), HasSubstr(path)));
  WriteModelArchive(path, {.keras_version = "3.99.0", .config = "{}", .weights = "w"});
  EXPECT_EQ(ReadModelArchive(path).keras_version, "3.99.0");
  EXPECT_THAT(Damaged("no archive at all"), StartsWith("DataLoss: "));
  EXPECT_THROW(ReadModelArchive(path + ".none"), NotFoundError);
}

TEST(WeightsFileTest, EveryDTypeAndShape) {
  const std::vector<WeightGroup> groups = {
      {"a/b/c",
       "deep",
       {Tensor::Scalar(2.5), Tensor::Vector(std::vector<int32_t>{-1, 2}), Tensor::Vector(std::vector<uint8_t>{0, 255}),
        Tensor::Vector(std::vector<bool>{true, false}),
        Tensor::Vector(std::vector<bfloat16>{bfloat16(1.5f), bfloat16(-3.0f)}), Tensor(DType::kFloat32, Shape{0, 3})}}};
  ExpectSame(DecodeWeights(EncodeWeights(groups), "x"), groups);
  // More than ten, so that the order of names is not that of numbers.
  constexpr size_t kMany = 25;
  std::vector<Tensor> many;
  many.reserve(kMany);
  for (size_t i = 0; i < kMany; ++i) many.push_back(Tensor::Scalar(static_cast<float>(i)));
  const std::vector<WeightGroup> numbered = {{"optimizer", "o", many}};
  ExpectSame(DecodeWeights(EncodeWeights(numbered), "x"), numbered);
}

// What the library has to say of damaged files is in our errors; it once said "infinite loop closing library" at the
// end of the process.
TEST(WeightsFileDeathTest, DamagedBytesDoNotDisturbTheEndOfTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto decode_and_exit = [] {
    const std::vector<WeightGroup> groups = {{"layers/dense", "dense", {Tensor::Scalar(1.0f), Tensor::Scalar(2.0f)}}};
    const std::string whole = EncodeWeights(groups);
    int refused = 0;
    for (size_t at = 0; at < whole.size(); at += 7) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(~damaged[at]);
      try {
        DecodeWeights(damaged, "x");
      } catch (const Error&) {
        ++refused;
      }
    }
    std::exit(refused > 50 ? 0 : 1);
  };
  EXPECT_EXIT(decode_and_exit(), ::testing::ExitedWithCode(0), Not(HasSubstr("closing library")));
}

TEST(WeightsFileTest, MistakesOfTheCallerAreNamed) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                EncodeWeights({{"a", "a", {}}, {"a", "b", {}}});
              }),
              HasSubstr("'a'"));
  EXPECT_THROW(EncodeWeights({{"a", "a", {Tensor::Scalar("text")}}}), InvalidArgumentError);
}

TEST(WeightsFileTest, TruncatedOrForeignBytesAreDataLoss) {
  const std::string whole = EncodeWeights(SomeWeights());
  for (size_t size = 0; size < whole.size(); size += 101) {
    EXPECT_THAT(ErrorOf([&] { DecodeWeights(whole.substr(0, size), "file x"); }),
                AllOf(StartsWith("DataLoss: "), HasSubstr("file x")))
        << size;
  }
  EXPECT_THAT(ErrorOf([] { DecodeWeights("not HDF5", "file x"); }), StartsWith("DataLoss: "));
}

}  // namespace
}  // namespace cohort::keras
