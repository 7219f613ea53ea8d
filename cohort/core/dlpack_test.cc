#include "cohort/core/dlpack.h"

#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tensor of another library. It counts how often its memory was given back, which has to be once.
struct Foreign {
  Foreign(void* data, DLDataType type, std::vector<int64_t> dims, std::vector<int64_t> steps = {})
      : shape(std::move(dims)), strides(std::move(steps)) {
    DLTensor& tensor = managed.dl_tensor;
    tensor.data = data;
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(shape.size());
    tensor.dtype = type;
    tensor.shape = shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
    tensor.byte_offset = 0;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->returned; };
  }

  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  DLManagedTensor managed;
  int returned = 0;
};

constexpr DLDataType kF32 = {kDLFloat, 32, 1};

TEST(FromBlobTest, SharesTheMemoryAndGivesItBackOnce) {
  std::vector<float> memory = {1, 2, 3, 4};
  int returned = 0;
  Tensor slice;
  {
    const Tensor t = Tensor::FromBlob(memory.data(), DType::kFloat32, Shape{2, 2}, [&] { ++returned; });
    EXPECT_EQ(t.raw_data(), memory.data());
    EXPECT_EQ(t.buffer()->size(), 16u);
    EXPECT_THAT(t.values<float>(), ElementsAre(1, 2, 3, 4));
    slice = t.Slice(1, 2);
  }
  EXPECT_EQ(returned, 0);  // the slice holds it
  EXPECT_THAT(slice.values<float>(), ElementsAre(3, 4));
  slice.Reset();
  EXPECT_EQ(returned, 1);
}

TEST(FromBlobTest, ForeignMemoryIsNeverForWritingInPlace) {
  std::vector<float> memory = {1, 2};
  const Tensor foreign = Tensor::FromBlob(memory.data(), DType::kFloat32, Shape{2}, nullptr);
  EXPECT_FALSE(foreign.OwnsBufferAlone());
  const Tensor copy = foreign;
  EXPECT_FALSE(foreign.OwnsBufferAlone());
  EXPECT_TRUE(foreign.Clone().OwnsBufferAlone());
}

TEST(FromBlobTest, RefusesWhatNoTensorCanBeAndGivesTheMemoryBack) {
  alignas(8) char memory[16] = {};
  int returned = 0;
  const auto error = [&](void* data, DType dtype, const Shape& shape) {
    const int before = returned;
    const std::string message =
        MessageOf<InvalidArgumentError>([&] { Tensor::FromBlob(data, dtype, shape, [&] { ++returned; }); });
    EXPECT_EQ(returned, before + 1) << message;
    return message;
  };
  EXPECT_THAT(error(memory, DType::kString, Shape{1}), HasSubstr("got dtype string"));
  EXPECT_THAT(error(memory, DType::kResource, Shape{1}), HasSubstr("got dtype resource"));
  EXPECT_THAT(error(memory, DType::kFloat32, Shape{-1}), HasSubstr("got [?]"));
  EXPECT_THAT(error(memory + 2, DType::kFloat32, Shape{1}), HasSubstr("float32[1] in memory aligned to 4 bytes"));
  EXPECT_THAT(error(nullptr, DType::kUint8, Shape{1}), HasSubstr("uint8[1]"));
  const int64_t huge = int64_t{1} << 40;
  EXPECT_THAT(error(memory, DType::kFloat32, Shape{huge, huge}), HasSubstr("at most 2^60 bytes"));
  EXPECT_THAT(error(memory, DType::kFloat32, Shape{huge, huge, 0}), HasSubstr("at most 2^60 bytes"));
}

TEST(FromBlobTest, NoElementsNeedNoMemory) {
  int returned = 0;
  {
    EXPECT_EQ(Tensor::FromBlob(nullptr, DType::kFloat32, Shape{0, 3}, [&] { ++returned; }).num_elements(), 0);
  }
  EXPECT_EQ(returned, 1);
}

TEST(FromDLPackTest, RowMajorMemoryIsShared) {
  alignas(64) float memory[] = {0, 1, 2, 3, 4, 5, 6};
  Foreign foreign(memory, kF32, {2, 1, 3}, {3, 99, 1});  // the stride of a single row does not matter
  foreign.managed.dl_tensor.byte_offset = 4;
  {
    const Tensor t = FromDLPack(&foreign.managed);
    EXPECT_EQ(t.shape(), (Shape{2, 1, 3}));
    EXPECT_EQ(t.raw_data(), memory + 1);
    EXPECT_FALSE(t.OwnsBufferAlone());
    EXPECT_THAT(t.values<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_EQ(foreign.returned, 0);
  }
  EXPECT_EQ(foreign.returned, 1);
}

TEST(FromDLPackTest, OtherOrdersAreCopied) {
  float memory[] = {1, 2, 3, 4, 5, 6};
  Foreign transposed(memory, kF32, {3, 2}, {1, 3});
  EXPECT_THAT(FromDLPack(&transposed.managed).values<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(transposed.returned, 1);
  Foreign backwards(memory + 5, kF32, {3}, {-2});
  EXPECT_THAT(FromDLPack(&backwards.managed).values<float>(), ElementsAre(6, 4, 2));
  Foreign broadcast(memory, kF32, {2, 2}, {0, 1});
  const Tensor rows = FromDLPack(&broadcast.managed);
  EXPECT_THAT(rows.values<float>(), ElementsAre(1, 2, 1, 2));
  EXPECT_TRUE(rows.OwnsBufferAlone());
}

TEST(FromDLPackTest, UnalignedMemoryIsCopied) {
  alignas(4) char bytes[12] = {};
  const float values[] = {7, 8};
  std::memcpy(bytes + 1, values, sizeof(values));
  Foreign foreign(bytes, kF32, {2});
  foreign.managed.dl_tensor.byte_offset = 1;
  const Tensor t = FromDLPack(&foreign.managed);
  EXPECT_THAT(t.values<float>(), ElementsAre(7, 8));
  EXPECT_EQ(foreign.returned, 1);
}

TEST(FromDLPackTest, ScalarsAndNoElements) {
  double value = 2.5;
  Foreign scalar(&value, {kDLFloat, 64, 1}, {});
  EXPECT_EQ(FromDLPack(&scalar.managed).scalar<double>(), 2.5);
  Foreign empty(nullptr, {kDLInt, 32, 1}, {4, 0});
  EXPECT_EQ(FromDLPack(&empty.managed).shape(), (Shape{4, 0}));
  EXPECT_EQ(empty.returned, 1);
}

TEST(FromDLPackTest, AMissingDeleterIsNone) {
  float value = 3;
  Foreign foreign(&value, kF32, {1});
  foreign.managed.deleter = nullptr;
  EXPECT_THAT(FromDLPack(&foreign.managed).values<float>(), ElementsAre(3));
}

TEST(FromDLPackTest, ErrorsNameWhatCameAndGiveItBack) {
  alignas(8) char memory[8] = {};
  const auto refused = [&](auto change) {
    Foreign foreign(memory, kF32, {1});
    change(foreign.managed.dl_tensor);
    const std::string message = ErrorOf([&] { FromDLPack(&foreign.managed); });
    EXPECT_EQ(foreign.returned, 1) << message;
    return message;
  };
  EXPECT_THAT(refused([](DLTensor& t) { t.device = {kDLCUDA, 3}; }), HasSubstr("got device type 2, device 3"));
  EXPECT_THAT(refused([](DLTensor& t) { t.dtype = {kDLFloat, 16, 1}; }), HasSubstr("got type code 2 with 16 bits"));
  EXPECT_THAT(refused([](DLTensor& t) { t.dtype = {kDLComplex, 64, 1}; }), HasSubstr("got type code 5"));
  EXPECT_THAT(refused([](DLTensor& t) { t.dtype = {kDLFloat, 32, 4}; }), HasSubstr("4 lanes"));
  EXPECT_THAT(refused([](DLTensor& t) { t.ndim = 9; }), HasSubstr("got 9"));
  EXPECT_THAT(refused([](DLTensor& t) { t.ndim = -1; }), HasSubstr("got -1"));
  EXPECT_THAT(refused([](DLTensor& t) { t.shape = nullptr; }), HasSubstr("and no shape"));
  EXPECT_THAT(refused([](DLTensor& t) { t.shape[0] = -5; }), HasSubstr("got dimension -5"));
  EXPECT_THAT(refused([](DLTensor& t) { t.shape[0] = int64_t{1} << 60; }),
              HasSubstr("at most 2^60 bytes; got float32[1152921504606846976]"));
  EXPECT_THAT(refused([](DLTensor& t) { t.data = nullptr; }), HasSubstr("float32[1]; got a null pointer"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { FromDLPack(nullptr); }), HasSubstr("got a null pointer"));
}

TEST(ToDLPackTest, HoldsTheTensorUntilItsDeleterIsCalled) {
  Tensor tensor = Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{3, 2});
  DLManagedTensor* out = ToDLPack(tensor);
  const DLTensor& seen = out->dl_tensor;
  EXPECT_EQ(seen.data, tensor.raw_data());
  EXPECT_EQ(seen.device.device_type, kDLCPU);
  EXPECT_EQ(seen.byte_offset, 0u);
  ASSERT_EQ(seen.ndim, 2);
  EXPECT_THAT(std::vector<int64_t>(seen.shape, seen.shape + 2), ElementsAre(3, 2));
  EXPECT_THAT(std::vector<int64_t>(seen.strides, seen.strides + 2), ElementsAre(2, 1));
  EXPECT_FALSE(tensor.OwnsBufferAlone());  // so that no kernel writes into what the receiver reads
  out->deleter(out);
  EXPECT_TRUE(tensor.OwnsBufferAlone());
}

TEST(ToDLPackTest, EveryTypeComesBack) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kUint8, DType::kBool,
                            DType::kBfloat16}) {
    const Tensor tensor = Tensor::Zeros(dtype, Shape{2, 3});
    DLManagedTensor* out = ToDLPack(tensor);
    EXPECT_EQ(out->dl_tensor.dtype.bits, 8 * DTypeSize(dtype)) << DTypeName(dtype);
    const Tensor back = FromDLPack(out);
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.shape(), tensor.shape());
    EXPECT_EQ(back.raw_data(), tensor.raw_data());
  }
  DLManagedTensor* narrow = ToDLPack(Tensor::Zeros(DType::kBfloat16, Shape{1}));
  EXPECT_EQ(narrow->dl_tensor.dtype.code, 4);
  narrow->deleter(narrow);
}

TEST(ToDLPackTest, RefusesWhatHasNoBytes) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ToDLPack(Tensor()); }), HasSubstr("got <no tensor>"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ToDLPack(Tensor::Scalar("a")); }), HasSubstr("got string[]"));
}

}  // namespace
}  // namespace cohort
