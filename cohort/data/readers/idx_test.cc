#include "cohort/data/readers/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/readers/input_file.h"

namespace cohort::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IdxTest : public ::testing::Test {
 protected:
  std::string Put(const std::string& name, const std::string& bytes) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path;
  }
  std::string Gzip(const std::string& bytes) const {
    const std::string path = folder_ / "gzip_scratch";
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return ReadFile(path);
  }

  const testing::TempFolder folder_;
};

using InputFileTest = IdxTest;

const std::string kImages(
    "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"
    "abcdef",
    22);
const std::string kLabels("\0\0\x08\x01\0\0\0\x02\x07\x09", 10);

TEST_F(IdxTest, PlainAndGzip) {
  for (const bool gzip : {false, true}) {
    const Tensor images = ReadIdxImages(Put("images", gzip ? Gzip(kImages) : kImages));
    EXPECT_EQ(images.shape(), (Shape{2, 1, 3}));
    EXPECT_THAT(images.ToVector<uint8_t>(), ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
    EXPECT_THAT(ReadIdxLabels(Put("labels", gzip ? Gzip(kLabels) : kLabels)).ToVector<uint8_t>(), ElementsAre(7, 9));
  }
}

TEST_F(IdxTest, OtherElementTypes) {
  const std::string ints("\0\0\x0c\x01\0\0\0\x02\0\0\x01\0\xff\xff\xff\xff", 16);
  EXPECT_THAT(ReadIdx(Put("ints", ints)).ToVector<int32_t>(), ElementsAre(256, -1));
  const std::string floats("\0\0\x0d\x01\0\0\0\x01\x3f\x80\0\0", 12);
  EXPECT_THAT(ReadIdx(Put("floats", floats)).ToVector<float>(), ElementsAre(1.f));
  EXPECT_THROW(ReadIdx(Put("shorts", std::string("\0\0\x0b\x01\0\0\0\0", 8))), UnimplementedError);
}

TEST_F(IdxTest, WrittenFilesAreRead) {
  const Tensor images = Tensor::FromValues<uint8_t>({1, 2, 3, 4, 5, 6, 7, 8}, Shape{2, 2, 2});
  const std::string path = folder_ / "written";
  WriteIdx(path, images);
  EXPECT_EQ(ReadIdxImages(path).ToVector<uint8_t>(), images.ToVector<uint8_t>());
  WriteIdx(path, Tensor(DType::kUint8, Shape{0}));
  EXPECT_EQ(ReadIdxLabels(path).num_elements(), 0);
  EXPECT_THROW(WriteIdx(path, Tensor::Scalar(1.f)), InvalidArgumentError);
}

TEST_F(IdxTest, WrongMagicNamesBoth) {
  const std::string path = Put("magic", kLabels);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ReadIdxImages(path); }),
              HasSubstr("expected magic number 0x00000803 in " + path + "; got 0x00000801"));
  EXPECT_THROW(ReadIdx(Put("magic", "PNG file")), InvalidArgumentError);
}

TEST_F(IdxTest, EveryTruncationIsNamed) {
  for (size_t length = 0; length < kImages.size(); ++length) {
    const std::string path = Put("cut", kImages.substr(0, length));
    EXPECT_THAT(MessageOf<DataLossError>([&] { ReadIdxImages(path); }), HasSubstr(path)) << length;
  }
  EXPECT_THAT(MessageOf<DataLossError>([&] { ReadIdxImages(Put("cut", kImages.substr(0, 20))); }),
              HasSubstr("expected 6 bytes for [2,1,3], got 4"));
  EXPECT_THAT(MessageOf<DataLossError>([&] { ReadIdxImages(Put("long", kImages + "x")); }), HasSubstr("longer"));
  const std::string claims("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  EXPECT_THROW(ReadIdxImages(Put("claims", claims)), DataLossError);
  EXPECT_THROW(ReadIdxImages(Put("claims", Gzip(claims))), DataLossError);
}

// The values have no checksum; the header speaks of the file's size.
TEST_F(IdxTest, EveryFlippedBitOfAHeaderIsNamed) {
  for (size_t bit = 0; bit < 16 * 8; ++bit) {
    std::string bytes = kImages;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const std::string path = Put("flipped", bytes);
    EXPECT_THAT(MessageOf<Error>([&] { ReadIdxImages(path); }), HasSubstr(path)) << bit;
  }
}

// A packed file has a checksum: a flipped bit is named, or is one that says nothing (of the packed file's header, or
// behind the end of its content).
TEST_F(IdxTest, NoFlippedBitOfGzipGivesOtherValues) {
  const Tensor images = ReadIdxImages(Put("whole", kImages));
  const std::string packed = Gzip(kImages);
  int named = 0;
  for (size_t bit = 0; bit < packed.size() * 8; ++bit) {
    std::string bytes = packed;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const std::string path = Put("flipped.gz", bytes);
    try {
      EXPECT_EQ(ReadIdxImages(path).ToVector<uint8_t>(), images.ToVector<uint8_t>()) << bit;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr(path)) << bit;
      ++named;
    }
  }
  EXPECT_GT(named, static_cast<int>(packed.size()) * 8 / 2);
}

TEST_F(IdxTest, EveryTruncationOfGzipIsNamed) {
  const std::string packed = Gzip(kImages);
  for (size_t length = 2; length < packed.size(); ++length) {
    const std::string path = Put("cut.gz", packed.substr(0, length));
    EXPECT_THAT(MessageOf<DataLossError>([&] { ReadIdxImages(path); }), HasSubstr(path)) << length;
  }
  EXPECT_THAT(MessageOf<DataLossError>([&] { ReadIdxImages(Put("cut.gz", packed.substr(0, 25))); }),
              HasSubstr("is cut off: it ends at offset 25"));
  std::string bad = packed;
  bad[packed.size() - 6] = static_cast<char>(bad[packed.size() - 6] ^ 1);  // its checksum
  EXPECT_THAT(MessageOf<DataLossError>([&] { ReadIdxImages(Put("bad.gz", bad)); }), HasSubstr("corrupt"));
}

TEST_F(InputFileTest, MembersFollowEachOther) {
  InputFile file(Put("members", Gzip("one ") + Gzip("two")));
  char out[16];
  EXPECT_EQ(std::string(out, file.Read(out)), "one two");
  EXPECT_EQ(file.Read(out), 0u);
}

}  // namespace
}  // namespace cohort::data
