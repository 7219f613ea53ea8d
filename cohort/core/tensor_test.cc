#include "cohort/core/tensor.h"

#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort {
namespace {

TEST(TensorTest, SlicesShareBytes) {
  const Tensor t = Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{3, 2});
  const Tensor rows = t.Slice(1, 3);
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  EXPECT_EQ(rows.data<float>(), t.data<float>() + 2);
  EXPECT_EQ(rows.ToVector<float>(), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_THROW(t.Slice(2, 4), OutOfRangeError);
}

TEST(TensorTest, LargeBlocksAreReused) {
  void* first;
  {
    Tensor t(DType::kFloat32, Shape{1 << 20});
    first = t.raw_data();
  }
  Tensor again(DType::kFloat32, Shape{1 << 20});
  EXPECT_EQ(again.raw_data(), first);
}

TEST(TensorTest, EveryDataStartIsAligned) {
  for (int64_t n : {0, 1, 7, 100, 5000, 8192, 100000}) {
    Tensor t(DType::kUint8, Shape{n});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw_data()) % 64, 0u) << n;
  }
}

TEST(TensorTest, ErrorsNameTheValues) {
  try {
    Tensor::FromValues<int32_t>({1, 2, 3}, Shape{2, 2});
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_NE(std::string(e.what()).find("3 values"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("[2,2]"), std::string::npos);
  }
  EXPECT_THROW(Tensor::Scalar(1.0f).data<int32_t>(), InternalError);
}

TEST(TensorTest, ShapesThatNoMemoryHoldsAreErrors) {
  const int64_t large = int64_t{1} << 40;
  const auto expect_named = [](const std::string& message, const std::string& shape) {
    EXPECT_NE(message.find(shape), std::string::npos) << message;
  };
  // The product is 2^80, which is 0 in 64 bits.
  try {
    Tensor(DType::kFloat32, Shape{large, large});
    ADD_FAILURE();
  } catch (const InvalidArgumentError& e) {
    expect_named(e.what(), "[1099511627776,1099511627776]");
  }
  // The product fits, but the number of bytes does not.
  try {
    Tensor(DType::kFloat32, Shape{large, 1 << 22});
    ADD_FAILURE();
  } catch (const InvalidArgumentError& e) {
    expect_named(e.what(), "float32[1099511627776,4194304]");
  }
  try {
    Tensor(DType::kString, Shape{large, 1 << 22});
    ADD_FAILURE();
  } catch (const InvalidArgumentError& e) {
    expect_named(e.what(), "string[1099511627776,4194304]");
  }
  EXPECT_EQ(Tensor(DType::kFloat32, Shape{large, large, 0}).num_elements(), 0);
}

TEST(ShapeTest, CountsElementsOfLargeShapes) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ((Shape{large, 1 << 22}.num_elements()), int64_t{1} << 62);
  EXPECT_THROW((Shape{large, 1 << 23}.num_elements()), InvalidArgumentError);
  EXPECT_EQ((Shape{large, large, 0}.num_elements()), 0);
  EXPECT_EQ((Shape{large, large, -1}.num_elements()), -1);
}

TEST(ShapeTest, Broadcasting) {
  EXPECT_EQ(BroadcastShapes(Shape{2, 1, 3}, Shape{4, 1}), (Shape{2, 4, 3}));
  EXPECT_EQ(BroadcastShapes(Shape{-1, 3}, Shape{1}), (Shape{-1, 3}));
  EXPECT_EQ(BroadcastShapes(Shape{-1}, Shape{1}).dim(0), -1);
  EXPECT_EQ(BroadcastShapes(Shape{-1}, Shape{5}), (Shape{5}));
  EXPECT_THROW(BroadcastShapes(Shape{2}, Shape{3}), InvalidArgumentError);
}

TEST(TensorTest, VectorsOfBool) {
  const Tensor flags = Tensor::Vector<bool>({true, false, true});
  EXPECT_EQ(flags.dtype(), DType::kBool);
  EXPECT_EQ(flags.shape(), (Shape{3}));
  EXPECT_EQ(flags.ToVector<bool>(), (std::vector<bool>{true, false, true}));
}

}  // namespace
}  // namespace cohort
