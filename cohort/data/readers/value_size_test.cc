// Small files whose values would become very large: the readers refuse a value before it takes the memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/readers/idx.h"
#include "cohort/data/readers/readers.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMebibyte = 1 << 20;

class ValueSizeTest : public ::testing::Test {
 protected:
  // Writes `head`, then `mebibytes` MiB of `filler`, packed with gzip. Returns the path.
  std::string Packed(const std::string& head, size_t mebibytes, char filler) const {
    const std::string path = folder_ / "packed";
    const gzFile file = gzopen(path.c_str(), "wb1");
    const std::string piece(kMebibyte, filler);
    EXPECT_EQ(gzwrite(file, head.data(), static_cast<unsigned>(head.size())), static_cast<int>(head.size()));
    for (size_t i = 0; i < mebibytes; ++i) EXPECT_EQ(gzwrite(file, piece.data(), kMebibyte), int{kMebibyte});
    gzclose(file);
    return path;
  }
  static std::string ErrorOfFirst(const Dataset& dataset) {
    const auto iterator = dataset.MakeIterator();
    Element element;
    return ErrorOf([&] { iterator->Next(&element); });
  }
  const testing::TempFolder folder_;
};

TEST_F(ValueSizeTest, ALineOfAPackedFileIsBounded) {
  const std::string path = Packed("", 300, 'x');
  EXPECT_LT(ReadFile(path).size(), 4 * kMebibyte);
  EXPECT_THAT(ErrorOfFirst(TextLineDataset({path}, Compression::kGzip)),
              AllOf(HasSubstr("DataLoss"), HasSubstr(path), HasSubstr("a line of at most 268435456 bytes")));
}

TEST_F(ValueSizeTest, ARecordOfAPackedFileIsBounded) {
  const uint64_t length = 300 * kMebibyte;  // with the right checksum, and none of the bytes
  std::string header(reinterpret_cast<const char*>(&length), sizeof(length));
  const uint32_t crc = crc32c::Mask(crc32c::Value(header));
  header.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  EXPECT_THAT(ErrorOfFirst(TFRecordDataset({Packed(header, 0, 'x')}, Compression::kGzip)),
              AllOf(HasSubstr("DataLoss"), HasSubstr("a record of at most 268435456 bytes")));
}

TEST_F(ValueSizeTest, AFieldAndTheFieldsOfACsvRecordAreBounded) {
  const std::vector<CsvColumn> columns = {{DType::kString, std::nullopt}};
  EXPECT_THAT(ErrorOfFirst(CsvDataset({Packed("", 300, 'x')}, columns, {.compression = Compression::kGzip})),
              AllOf(HasSubstr("DataLoss"), HasSubstr("a CSV record of at most 268435456 bytes")));
  const std::string path = folder_ / "commas";
  WriteFileAtomically(path, std::string(2 * kMebibyte, ',') + "\nnext\n");
  const auto iterator = CsvDataset({path}, columns).MakeIterator();
  Element element;
  EXPECT_THAT(ErrorOf([&] { iterator->Next(&element); }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("at most 2^20 fields"), HasSubstr("line 1 of")));
  ASSERT_TRUE(iterator->Next(&element));
  EXPECT_EQ(element.at(0).scalar<std::string>(), "next");
}

TEST_F(ValueSizeTest, APackedIdxFileIsBounded) {
  const std::string header("\0\0\x08\x02\0\0\x01\x2c\0\x10\0\0", 12);  // 300 rows of 1 MiB
  EXPECT_THAT(ErrorOf([&] { ReadIdx(Packed(header, 300, '\0')); }),
              AllOf(HasSubstr("DataLoss"), HasSubstr("[300,1048576]"), HasSubstr("268435456")));
}

}  // namespace
}  // namespace cohort::data
