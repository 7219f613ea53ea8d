#include "cohort/checkpoint/tensor_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> FilesIn(const testing::TempFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void Overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

template <typename T>
void ExpectHolds(const BundleReader& reader, const std::string& name, const Tensor& expected) {
  const Tensor actual = reader.Read(name);
  EXPECT_EQ(actual.dtype(), expected.dtype()) << name;
  EXPECT_EQ(actual.shape(), expected.shape()) << name;
  EXPECT_EQ(actual.ToVector<T>(), expected.ToVector<T>()) << name;
  reader.Verify(name);
}

Tensor Counting(const Shape& shape, float first = 0) {
  Tensor tensor(DType::kFloat32, shape);
  std::iota(tensor.data<float>(), tensor.data<float>() + tensor.num_elements(), first);
  return tensor;
}

// The bytes of a bundle with w = [1, 2] as docs/formats.md shows them.
TEST(TensorBundleTest, KnownBytes) {
  const testing::TempFolder folder;
  BundleWriter writer(folder / "m");
  writer.Add("w", Tensor::Vector<float>({1, 2}));
  writer.Finish();
  EXPECT_THAT(FilesIn(folder), ElementsAre("m.data-00000-of-00001", "m.index"));
  EXPECT_EQ(ReadFile(folder / "m.data-00000-of-00001"), std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  const unsigned char expected[] = {0x00, 0x00, 0x06, 0x08, 0x01, 0x1a, 0x02, 0x08, 0x01, 0x00, 0x01, 0x0f, 0x77,
                                    0x08, 0x01, 0x12, 0x04, 0x12, 0x02, 0x08, 0x02, 0x28, 0x08, 0x35, 0x59, 0x3c,
                                    0xe5, 0x35, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x09, 0x21,
                                    0xad, 0xc3, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0xc0, 0xf2,
                                    0xa1, 0xb0, 0x00, 0x01, 0x02, 0x78, 0x00, 0x24, 0x00, 0x00, 0x00, 0x00, 0x01,
                                    0x00, 0x00, 0x00, 0x00, 0xab, 0x30, 0x70, 0x7f, 0x29, 0x08, 0x36, 0x0e};
  const std::string index = ReadFile(folder / "m.index");
  ASSERT_EQ(index.size(), 121u);
  EXPECT_EQ(index.substr(0, sizeof(expected)), std::string(reinterpret_cast<const char*>(expected), sizeof(expected)));
  EXPECT_EQ(index.substr(113), "\x57\xfb\x80\x8b\x24\x75\x47\xdb");
}

TEST(TensorBundleTest, KnownBytesOfAString) {
  const testing::TempFolder folder;
  BundleWriter writer(folder / "m");
  writer.Add("s", Tensor::Scalar("hi"));
  writer.Finish();
  EXPECT_EQ(ReadFile(folder / "m.data-00000-of-00001"), "\x02\xd8\xd8\x10\x73hi");
  EXPECT_EQ(BundleReader(folder / "m").Find("s").crc32c, crc32c::Unmask(0x154deb09u));
}

template <typename T>
void AddAll(BundleWriter* writer, std::map<std::string, Tensor>* all, const std::vector<T>& values) {
  const std::string name(DTypeName(kDTypeOf<T>));
  (*all)[name + "/matrix"] = Tensor::FromValues<T>(values, Shape{2, 3});
  (*all)[name + "/scalar"] = Tensor::Scalar<T>(values[0]);
  (*all)[name + "/empty"] = Tensor(kDTypeOf<T>, Shape{3, 0});
  for (const char* kind : {"/matrix", "/scalar", "/empty"}) writer->Add(name + kind, all->at(name + kind));
}

TEST(TensorBundleTest, EveryDTypeTravels) {
  const testing::TempFolder folder;
  const std::string prefix = folder / "m";
  BundleWriter writer(prefix);
  std::map<std::string, Tensor> all;
  AddAll<float>(&writer, &all, {1, -2, 3.5f, 0, 1e30f, 6});
  AddAll<double>(&writer, &all, {1, -2, 3.5, 0, 1e300, 6});
  AddAll<int32_t>(&writer, &all, {1, -2, 3, 0, 1 << 30, 6});
  AddAll<int64_t>(&writer, &all, {1, -2, 3, 0, int64_t{1} << 60, 6});
  AddAll<uint8_t>(&writer, &all, {1, 255, 3, 0, 128, 6});
  AddAll<bool>(&writer, &all, {true, false, true, true, false, false});
  AddAll<bfloat16>(&writer, &all, std::vector<bfloat16>(6, bfloat16(-1.5f)));
  AddAll<std::string>(&writer, &all, {"a", "", std::string("\0b", 2), std::string(300, 'x'), "\xff", "end"});
  writer.Finish();

  const BundleReader reader(prefix);
  EXPECT_EQ(reader.tensors().size(), all.size());
  for (const auto& [name, tensor] : all) {
    switch (tensor.dtype()) {
      case DType::kFloat32: ExpectHolds<float>(reader, name, tensor); break;
      case DType::kFloat64: ExpectHolds<double>(reader, name, tensor); break;
      case DType::kInt32: ExpectHolds<int32_t>(reader, name, tensor); break;
      case DType::kInt64: ExpectHolds<int64_t>(reader, name, tensor); break;
      case DType::kUint8: ExpectHolds<uint8_t>(reader, name, tensor); break;
      case DType::kBool: ExpectHolds<bool>(reader, name, tensor); break;
      case DType::kBfloat16: ExpectHolds<bfloat16>(reader, name, tensor); break;
      default: ExpectHolds<std::string>(reader, name, tensor);
    }
  }
  reader.CheckFiles();
  VerifyCheckpoint(prefix);
}

TEST(TensorBundleTest, StreamsInBoundedChunks) {
  const testing::TempFolder folder;
  const std::string prefix = folder / "m";
  const Shape shape{1000, 777};  // 3.1 MB: three chunks and a rest
  const Tensor expected = Counting(shape);
  BundleWriter writer(prefix);
  writer.Add("before", Tensor::Scalar(1.f));
  size_t at = 0;
  int calls = 0;
  writer.Append("large", DType::kFloat32, shape, [&](std::span<char> out) {
    ASSERT_LE(out.size(), kCheckpointChunkBytes);
    std::memcpy(out.data(), static_cast<const char*>(expected.raw_data()) + at, out.size());
    at += out.size();
    ++calls;
  });
  writer.Append("nothing", DType::kInt32, Shape{0}, [](std::span<char>) { ADD_FAILURE(); });
  writer.Finish();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(at, expected.bytes());

  const BundleReader reader(prefix);
  ExpectHolds<float>(reader, "large", expected);
  std::string streamed;
  reader.Stream("large", [&](std::string_view bytes) {
    EXPECT_LE(bytes.size(), kCheckpointChunkBytes);
    streamed += bytes;
  });
  ASSERT_EQ(streamed.size(), expected.bytes());
  EXPECT_EQ(std::memcmp(streamed.data(), expected.raw_data(), streamed.size()), 0);
  // A slice of columns crosses the chunks anywhere.
  const Tensor columns = reader.ReadSlice("large", TensorSlice::Parse("1,998:5,3"));
  ASSERT_EQ(columns.shape(), (Shape{998, 3}));
  for (int64_t row = 0; row < 998; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      ASSERT_EQ(columns.data<float>()[row * 3 + column], static_cast<float>((row + 1) * 777 + column + 5));
    }
  }
}

TEST(TensorBundleTest, PartitionedTensors) {
  const testing::TempFolder folder;
  const std::string prefix = folder / "m";
  const Shape full{10, 3};
  const Tensor all = Counting(full);
  BundleWriter writer(prefix);
  writer.AddSlice("v", full, TensorSlice::Rows(full, 4, 6), all.Slice(4, 10));
  writer.Add("other", Tensor::Scalar(int64_t{7}));
  writer.AddSlice("v", full, TensorSlice::Rows(full, 0, 4), all.Slice(0, 4));
  writer.AddSlice("whole", full, TensorSlice::Whole(2), all);
  writer.AddSlice("words", Shape{2}, TensorSlice::Parse("0,1"), Tensor::Vector<std::string>({"a"}));
  writer.AddSlice("words", Shape{2}, TensorSlice::Parse("1,1"), Tensor::Vector<std::string>({"b"}));
  writer.Finish();

  const BundleReader reader(prefix);
  EXPECT_EQ(reader.tensors().size(), 4u);
  EXPECT_EQ(reader.Find("v").slices.size(), 2u);
  EXPECT_EQ(reader.StoredParts("v").size(), 2u);
  EXPECT_TRUE(reader.Find("whole").slices.empty());
  ExpectHolds<float>(reader, "v", all);
  ExpectHolds<float>(reader, "whole", all);
  EXPECT_THAT(reader.Read("words").ToVector<std::string>(), ElementsAre("a", "b"));
  // Other cuts than the stored ones, from parts and from the whole.
  for (const char* name : {"v", "whole"}) {
    for (int64_t begin = 0; begin <= 10; ++begin) {
      for (int64_t end = begin; end <= 10; ++end) {
        EXPECT_EQ(reader.ReadSlice(name, TensorSlice::Rows(full, begin, end - begin)).ToVector<float>(),
                  all.Slice(begin, end).ToVector<float>());
      }
    }
  }
  EXPECT_EQ(reader.ReadSlice("words", TensorSlice::Parse("1,1")).ToVector<std::string>(),
            std::vector<std::string>{"b"});
}

TEST(TensorBundleTest, MissingCoverageIsAnErrorOnlyWhereItMatters) {
  const testing::TempFolder folder;
  const std::string prefix = folder / "m";
  const Shape full{4};
  BundleWriter writer(prefix);
  writer.AddSlice("v", full, TensorSlice::Rows(full, 0, 3), Counting({3}));
  writer.Finish();
  const BundleReader reader(prefix);
  EXPECT_EQ(reader.ReadSlice("v", TensorSlice::Rows(full, 1, 2)).ToVector<float>(), (std::vector<float>{1, 2}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { reader.Read("v"); }), HasSubstr("cover only 3 of the 4 elements"));
}

TEST(TensorBundleTest, WrongUseOfTheWriter) {
  const testing::TempFolder folder;
  BundleWriter writer(folder / "m");
  writer.Add("w", Tensor::Scalar(1.f));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { writer.Add("w", Tensor::Scalar(1.f)); }),
              HasSubstr("\"w\" was added twice"));
  EXPECT_THROW(writer.Add("", Tensor::Scalar(1.f)), InvalidArgumentError);
  EXPECT_THROW(writer.Add(std::string("\0x", 2), Tensor::Scalar(1.f)), InvalidArgumentError);
  EXPECT_THROW(writer.Add("none", Tensor()), InvalidArgumentError);
  EXPECT_THROW(writer.Append("text", DType::kString, Shape{1}, [](std::span<char>) {}), InvalidArgumentError);
  const Shape full{4};
  writer.AddSlice("v", full, TensorSlice::Rows(full, 0, 2), Counting({2}));
  EXPECT_THROW(writer.AddSlice("v", full, TensorSlice::Rows(full, 0, 2), Counting({2})), InvalidArgumentError);
  EXPECT_THROW(writer.AddSlice("v", full, TensorSlice::Rows(full, 2, 2), Counting({1})), InvalidArgumentError);
  EXPECT_THROW(writer.AddSlice("v", Shape{5}, TensorSlice::Rows(Shape{5}, 2, 2), Counting({2})), InvalidArgumentError);
  EXPECT_THROW(writer.AddSlice("w", full, TensorSlice::Rows(full, 2, 2), Counting({2})), InvalidArgumentError);
  writer.Finish();
  EXPECT_EQ(BundleReader(folder / "m").tensors().size(), 2u);
}

TEST(TensorBundleTest, NothingIsVisibleBeforeFinishNorLeftWithoutIt) {
  const testing::TempFolder folder;
  {
    BundleWriter writer(folder / "m");
    writer.Add("w", Tensor::Scalar(1.f));
    EXPECT_THROW(BundleReader(folder / "m"), NotFoundError);
    EXPECT_THROW(
        writer.Append("x", DType::kFloat32, Shape{4}, [](std::span<char>) { throw AbortedError("source died"); }),
        AbortedError);
    EXPECT_THROW(writer.Finish(), FailedPreconditionError);
  }
  EXPECT_THAT(FilesIn(folder), ElementsAre());
}

// A limit on the file size makes the kernel take a part of a write and refuse the rest, as a full disk does.
TEST(TensorBundleTest, FullDiskIsNamedAndLeavesTheOldCheckpoint) {
  const testing::TempFolder folder;
  {
    BundleWriter writer(folder / "m-1");
    writer.Add("w", Tensor::Scalar(1.f));
    writer.Finish();
  }
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 100000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message = MessageOf<ResourceExhaustedError>([&] {
    BundleWriter writer(folder / "m-2");
    writer.Add("w", Counting({100000}));
    writer.Finish();
  });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_THAT(message, HasSubstr("m-2.data-00000-of-00001.tempstate"));
  EXPECT_THAT(FilesIn(folder), ElementsAre("m-1.data-00000-of-00001", "m-1.index"));
}

TEST(TensorBundleTest, CorruptionIsNamed) {
  const testing::TempFolder folder;
  const std::string prefix = folder / "m";
  BundleWriter writer(prefix);
  writer.Add("a", Counting({10}));
  writer.Add("b", Counting({10}));
  writer.Add("s", Tensor::Vector<std::string>({"one", "two"}));
  writer.Finish();
  const std::string data = prefix + ".data-00000-of-00001";
  const std::string good = ReadFile(data);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    Overwrite(data, bad);
    const BundleReader reader(prefix);
    const std::string name = i < 40 ? "a" : i < 80 ? "b" : "s";
    for (const char* each : {"a", "b", "s"}) {
      if (each != name) {
        EXPECT_NO_THROW(reader.Verify(each));
        continue;
      }
      EXPECT_THAT(MessageOf<DataLossError>([&] { reader.Read(name); }), HasSubstr("\"" + name + "\"")) << i;
      EXPECT_THROW(reader.Verify(name), DataLossError);
    }
    EXPECT_THROW(VerifyCheckpoint(prefix), DataLossError);
  }
  Overwrite(data, good.substr(0, 60));
  const BundleReader reader(prefix);
  EXPECT_THAT(MessageOf<DataLossError>([&] { reader.Read("b"); }), HasSubstr("at offset 40 of " + data));
  EXPECT_THAT(MessageOf<DataLossError>([&] { reader.CheckFiles(); }), HasSubstr("at least 92 bytes; it has 60"));
  fs::remove(data);
  EXPECT_THAT(MessageOf<DataLossError>([&] { BundleReader(prefix).Read("a"); }), HasSubstr(data));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { reader.Read("c"); }), HasSubstr("Key c not found in checkpoint"));
}

// A small data file may not stand for a large tensor whose parts all lie at the same place.
TEST(TensorBundleTest, PartsMayNotShareBytes) {
  const testing::TempFolder folder;
  BundleWriter writer(folder / "m");
  const Shape full{4, 2};
  for (int64_t row = 0; row < 4; ++row) {
    writer.AddSlice("w", full, TensorSlice::Rows(full, row, 1), Counting(Shape{1, 2}));
  }
  writer.Finish();
  EXPECT_EQ(BundleReader(folder / "m").Read("w").shape(), full);
  BundleIndex index = DecodeIndex(ReadFile(folder / "m.index"), "m.index");
  for (auto& [key, entry] : index.entries) {
    if (IsSliceKey(key)) entry.offset = 0;
  }
  Overwrite(folder / "m.index", EncodeIndex(index));
  Overwrite(folder / "m.data-00000-of-00001", ReadFile(folder / "m.data-00000-of-00001").substr(0, 8));
  EXPECT_THAT(MessageOf<DataLossError>([&] { BundleReader(folder / "m").Read("w"); }), HasSubstr("no bytes twice"));
}

TEST(TensorBundleTest, MergeOfParts) {
  const testing::TempFolder folder;
  const Shape full{6, 2};
  const Tensor all = Counting(full);
  std::vector<std::string> parts;
  for (int i = 0; i < 3; ++i) {
    parts.push_back(StrCat(folder / "m_temp/part-", i));
    BundleWriter writer(parts.back());
    writer.AddSlice("v", full, TensorSlice::Rows(full, 2 * i, 2), all.Slice(2 * i, 2 * i + 2));
    writer.Add(StrCat("own", i), Tensor::Scalar(static_cast<float>(i)));
    writer.Finish();
  }
  parts.push_back(folder / "m_temp/part-3");
  BundleWriter(parts.back()).Finish();
  MergeBundles(parts, folder / "m");
  EXPECT_THAT(FilesIn(folder), ElementsAre("m.data-00000-of-00004", "m.data-00001-of-00004", "m.data-00002-of-00004",
                                           "m.data-00003-of-00004", "m.index"));
  const BundleReader reader(folder / "m");
  EXPECT_EQ(reader.num_shards(), 4);
  ExpectHolds<float>(reader, "v", all);
  for (int i = 0; i < 3; ++i) ExpectHolds<float>(reader, StrCat("own", i), Tensor::Scalar(static_cast<float>(i)));
  VerifyCheckpoint(folder / "m");
}

TEST(TensorBundleTest, MergeRefusesDuplicatesAndMissingParts) {
  const testing::TempFolder folder;
  for (const char* name : {"a", "b"}) {
    BundleWriter writer(folder / name);
    writer.Add("same", Tensor::Scalar(1.f));
    writer.Finish();
  }
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                MergeBundles({folder / "a", folder / "b"}, folder / "m");
              }),
              HasSubstr("\"same\""));
  EXPECT_THROW(MergeBundles({folder / "a", folder / "none"}, folder / "m"), NotFoundError);
  EXPECT_FALSE(FileExists(folder / "m.index"));
  EXPECT_NO_THROW(VerifyCheckpoint(folder / "a"));
}

TEST(TensorBundleTest, BigEndianCheckpointsAreRead) {
  const testing::TempFolder folder;
  const std::string prefix = folder / "m";
  BundleWriter writer(prefix);
  writer.Add("w", Tensor::Vector<int32_t>({0x01020304, 5}));
  writer.Finish();
  const std::string file = IndexFileName(prefix);
  BundleIndex index = DecodeIndex(ReadFile(file), file);
  index.swap_bytes = true;
  Overwrite(file, EncodeIndex(index));
  EXPECT_THAT(BundleReader(prefix).Read("w").ToVector<int32_t>(), ElementsAre(0x04030201, 0x05000000));
}

TEST(TensorBundleTest, UnknownDTypesAreListedAndVerifiedButNotRead) {
  const testing::TempFolder folder;
  const std::string prefix = folder / "m";
  BundleWriter writer(prefix);
  writer.Add("half", Tensor::Vector<bfloat16>({bfloat16(1.f)}));
  writer.Finish();
  const std::string file = IndexFileName(prefix);
  BundleIndex index = DecodeIndex(ReadFile(file), file);
  index.entries.at("half").dtype_number = 19;
  Overwrite(file, EncodeIndex(index));
  const BundleReader reader(prefix);
  EXPECT_EQ(reader.Find("half").dtype_name(), "DT_HALF");
  EXPECT_NO_THROW(reader.Verify("half"));
  EXPECT_THROW(reader.Read("half"), UnimplementedError);
}

TEST(TensorBundleTest, SavingAgainUnderOnePrefixReplacesIt) {
  const testing::TempFolder folder;
  const std::string prefix = folder / "m";
  for (float value : {1.f, 2.f}) {
    BundleWriter writer(prefix);
    writer.Add("w", Tensor::Scalar(value));
    writer.Finish();
  }
  EXPECT_EQ(BundleReader(prefix).Read("w").scalar<float>(), 2.f);
}

}  // namespace
}  // namespace cohort
