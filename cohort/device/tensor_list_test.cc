#include "cohort/device/tensor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(IndexedList, CopiesStayAsTheyAreWhenOneIsChanged) {
  IndexedList list(2, DType::kFloat32, Shape{-1});
  list.Set(0, Tensor::Vector<float>({1}), false);
  const IndexedList copy = list;
  list.Set(0, Tensor::Vector<float>({2, 3}), false);
  list.Set(3, Tensor::Vector<float>({4}), true);
  EXPECT_EQ(copy.size(), 2);
  EXPECT_EQ(copy.At(0).shape(), Shape{1});
  EXPECT_FALSE(copy.At(1).defined());
  EXPECT_EQ(list.size(), 4);
  EXPECT_EQ(list.At(0).shape(), Shape{2});
  EXPECT_FALSE(list.At(2).defined());
}

TEST(IndexedList, ATensorHoldsIt) {
  IndexedList list(1, DType::kInt32, Shape());
  list.Set(0, Tensor::Scalar(7), false);
  const Tensor held = MakeIndexedList(std::move(list));
  IndexedList other = IndexedListOf(held);
  other.Set(0, Tensor::Scalar(8), false);
  EXPECT_EQ(IndexedListOf(held).At(0).scalar<int32_t>(), 7);
  Tensor alone = MakeIndexedList(std::move(other));
  EXPECT_EQ(IndexedListOf(std::move(alone)).At(0).scalar<int32_t>(), 8);
  const Tensor pushed = MakeTensorList(TensorList().PushBack(Tensor::Scalar(1)).PushBack(Tensor::Scalar(2)));
  EXPECT_EQ(IndexedListOf(pushed).At(1).scalar<int32_t>(), 2);
  EXPECT_THROW(IndexedListOf(Tensor::Scalar(1)), InvalidArgumentError);
}

TEST(IndexedList, BadElementsAreNamed) {
  IndexedList list(2, DType::kFloat32, Shape{-1});
  const Tensor good = Tensor::Vector<float>({1});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { list.Set(2, good, false); }),
              AllOf(HasSubstr("one of 2 elements"), HasSubstr("got 2")));
  EXPECT_THROW(list.Set(-1, good, true), InvalidArgumentError);
  EXPECT_THROW(static_cast<void>(list.At(2)), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { list.Set(0, Tensor::Scalar(1.0f), false); }),
              HasSubstr("expected an element of float32[?]; got float32[]"));
  EXPECT_THROW(list.Set(0, Tensor::Vector<int32_t>({1}), false), InvalidArgumentError);
  EXPECT_THROW(list.Set(IndexedList::kMaxSize, good, true), ResourceExhaustedError);
  EXPECT_THROW(IndexedList(IndexedList::kMaxSize + 1, DType::kFloat32, Shape()), ResourceExhaustedError);
  EXPECT_THROW(IndexedList(-1, DType::kFloat32, Shape()), InvalidArgumentError);
  EXPECT_EQ(list.size(), 2);
}

}  // namespace
}  // namespace cohort
