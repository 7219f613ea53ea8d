// Ops that move elements, on a GPU of the fake driver and on a CPU: the results are the same bits.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/moves.h"
#include "cohort/backends/cuda/testing/both_devices.h"
#include "tests/ops/op_cases.h"

namespace cohort::cuda {
namespace {

using cohort::testing::AsType;
using cohort::testing::Ramp;

const DType kMoved[] = {DType::kUint8, DType::kBfloat16, DType::kFloat32, DType::kFloat64, DType::kBool};

Tensor Numbers(DType dtype, const Shape& shape) {
  return AsType(Ramp(shape, dtype == DType::kUint8 ? 0 : -100, 100), dtype);
}

class MovingTest : public ::testing::Test {
 protected:
  void Same(const std::string& op, std::vector<std::vector<Tensor>> inputs,
            std::function<void(NodeBuilder&)> attrs = {}) {
    devices_.ExpectSame({op, std::move(inputs), std::move(attrs)});
  }
  void SameError(const std::string& op, std::vector<std::vector<Tensor>> inputs, const std::string& text) {
    devices_.ExpectSameError({op, std::move(inputs)}, text);
  }
  BothDevices devices_;
};

TEST(DividerTest, DividesSmallAndLargeNumbers) {
  for (const int64_t divisor : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{641}, int64_t{65536},
                                int64_t{1000003}, (int64_t{1} << 31) - 1, int64_t{1} << 31, int64_t{1} << 40}) {
    const Divider by(divisor);
    for (const int64_t n : {int64_t{0}, int64_t{1}, divisor - 1, divisor, divisor + 1, 2 * divisor - 1, 2 * divisor,
                            (int64_t{1} << 31) - 2, (int64_t{1} << 31) - 1, int64_t{1} << 31, int64_t{1} << 45}) {
      int64_t quotient = 0;
      EXPECT_EQ(by.Split(n, &quotient), n % divisor) << n << " by " << divisor;
      EXPECT_EQ(quotient, n / divisor) << n << " by " << divisor;
    }
  }
}

TEST(LargestMoveTest, DividesAll) {
  EXPECT_EQ(LargestMove({64, 128, 0}), 16u);
  EXPECT_EQ(LargestMove({64, 24}), 8u);
  EXPECT_EQ(LargestMove({64, -12}), 4u);
  EXPECT_EQ(LargestMove({64, 3}), 1u);
}

TEST_F(MovingTest, Transpose) {
  for (const DType dtype : kMoved) {
    Same("Transpose", {{Numbers(dtype, {37, 65})}, {Ints({1, 0})}});
    Same("Transpose", {{Numbers(dtype, {3, 40, 33})}, {Ints({0, 2, 1})}});
    Same("Transpose", {{Numbers(dtype, {2, 3, 4, 5})}, {Ints({3, 1, 0, 2})}});
    Same("Transpose", {{Numbers(dtype, {5, 2, 8})}, {Ints({1, 0, 2})}});
  }
  Same("Transpose", {{Numbers(DType::kFloat32, {0, 3})}, {Ints({1, 0})}});
  Same("Transpose", {{Tensor::Scalar(1.0f)}, {Ints({})}});
  SameError("Transpose", {{Numbers(DType::kFloat32, {2, 3})}, {Ints({1, 1})}}, "");
}

TEST_F(MovingTest, Reverse) {
  Same("ReverseV2", {{Numbers(DType::kFloat32, {3, 4, 5})}, {Ints({0, 2})}});
  Same("ReverseV2", {{Numbers(DType::kUint8, {300})}, {Ints({-1})}});
  Same("ReverseV2", {{Numbers(DType::kFloat32, {3, 0})}, {Ints({0})}});
}

TEST_F(MovingTest, ShapesAndViews) {
  const Tensor x = Numbers(DType::kFloat32, {2, 1, 6});
  Same("Reshape", {{x}, {Ints({3, -1})}});
  SameError("Reshape", {{x}, {Ints({5, -1})}}, "5");
  Same("ExpandDims", {{x}, {Int(-1)}});
  Same("Squeeze", {{x}});
  Same("Identity", {{x}});
  Same("Shape", {{x}}, [](NodeBuilder& b) { b.Attr("out_type", DType::kInt64); });
  Same("Size", {{x}});
  Same("Rank", {{x}});
  Same("BroadcastGradientArgs", {{Ints({2, 1, 6})}, {Ints({3, 1})}});
}

TEST_F(MovingTest, BroadcastAndTile) {
  for (const DType dtype : kMoved) {
    Same("BroadcastTo", {{Numbers(dtype, {3, 1})}, {Ints({2, 3, 5})}});
    Same("BroadcastTo", {{Numbers(dtype, {1, 7})}, {Ints({9, 7})}});
    Same("Tile", {{Numbers(dtype, {2, 3})}, {Ints({3, 2})}});
  }
  Same("BroadcastTo", {{Tensor::Scalar(3.0f)}, {Ints({0, 4})}});
  Same("Tile", {{Numbers(DType::kFloat32, {2, 3})}, {Ints({0, 2})}});
}

TEST_F(MovingTest, ConcatAndPack) {
  for (const DType dtype : kMoved) {
    for (const int32_t axis : {0, 1, -1}) {
      const Shape other = axis == 1 ? Shape{3, 5, 2} : axis == 0 ? Shape{7, 4, 2} : Shape{3, 4, 1};
      Same("ConcatV2", {{Numbers(dtype, {3, 4, 2}), Numbers(dtype, other), Numbers(dtype, {3, 4, 2})}, {Int(axis)}});
    }
    for (const int64_t axis : {0, 1, 2}) {
      Same("Pack", {{Numbers(dtype, {3, 5}), Numbers(dtype, {3, 5})}},
           [axis](NodeBuilder& b) { b.Attr("axis", axis); });
    }
  }
  Same("ConcatV2", {{Numbers(DType::kFloat32, {3, 0}), Numbers(DType::kFloat32, {3, 2})}, {Int(1)}});
  Same("ConcatV2", {{Numbers(DType::kFloat32, {0, 2}), Numbers(DType::kFloat32, {0, 2})}, {Int(1)}});
  std::vector<Tensor> many;
  many.reserve(2 * 96 + 7);
  for (int i = 0; i < 2 * 96 + 7; ++i) many.push_back(Numbers(DType::kFloat32, {2, i % 3}));
  Same("ConcatV2", {many, {Int(1)}});
}

TEST_F(MovingTest, SplitAndUnpack) {
  for (const DType dtype : kMoved) {
    for (const int32_t axis : {0, 1, 2}) {
      Same("Split", {{Int(axis)}, {Numbers(dtype, {4, 6, 2})}},
           [](NodeBuilder& b) { b.Attr("num_split", int64_t{2}); });
    }
    Same("SplitV", {{Numbers(dtype, {3, 7})}, {Ints({2, 0, -1})}, {Int(1)}},
         [](NodeBuilder& b) { b.Attr("num_split", int64_t{3}); });
    for (const int64_t axis : {0, 1}) {
      Same("Unpack", {{Numbers(dtype, {3, 3, 5})}},
           [axis](NodeBuilder& b) { b.Attr("axis", axis).Attr("num", int64_t{3}); });
    }
  }
  Same("ConcatOffset", {{Int(1)}, {Ints({2, 3}), Ints({2, 5})}});
}

TEST_F(MovingTest, Slices) {
  const auto strided = [&](const Tensor& x, const std::vector<int32_t>& begin, const std::vector<int32_t>& end,
                           const std::vector<int32_t>& strides, int64_t shrink) {
    const auto attrs = [shrink](NodeBuilder& b) { b.Attr("shrink_axis_mask", shrink); };
    Same("StridedSlice", {{x}, {Ints(begin)}, {Ints(end)}, {Ints(strides)}}, attrs);
  };
  for (const DType dtype : kMoved) {
    const Tensor x = Numbers(dtype, {5, 6, 7});
    Same("Slice", {{x}, {Ints({1, 2, 3})}, {Ints({2, 3, -1})}});
    Same("Slice", {{x}, {Ints({1, 0, 0})}, {Ints({2, -1, -1})}});
    strided(x, {4, 0, 1}, {0, 6, 7}, {-2, 1, 3}, 0);
    strided(x, {1, 2, 0}, {2, 3, 7}, {1, 1, 1}, 2);
    const auto grad_of = [&](const Shape& dy, const std::vector<int32_t>& begin, const std::vector<int32_t>& end,
                             const std::vector<int32_t>& strides) {
      Same("StridedSliceGrad", {{Ints({5, 6, 7})}, {Ints(begin)}, {Ints(end)}, {Ints(strides)}, {Numbers(dtype, dy)}});
    };
    grad_of({2, 6, 2}, {4, 0, 1}, {0, 6, 7}, {-2, 1, 3});
    grad_of({5, 0, 7}, {0, 3, 0}, {5, 3, 7}, {1, 1, 1});
    Same("Pad", {{Numbers(dtype, {3, 4})}, {Ints({1, 0, 2, 3}).Reshaped({2, 2})}});
  }
  Same("PadV2", {{Numbers(DType::kFloat32, {3, 4})}, {Ints({1, 0, 2, 3}).Reshaped({2, 2})}, {Tensor::Scalar(7.0f)}});
  Same("Pad", {{Numbers(DType::kFloat32, {0, 4})}, {Ints({1, 1, 0, 0}).Reshaped({2, 2})}});
  Same("Slice", {{Numbers(DType::kFloat32, {3, 4})}, {Ints({1, 2})}, {Ints({0, 1})}});
}

TEST_F(MovingTest, Gather) {
  for (const DType dtype : kMoved) {
    const Tensor x = Numbers(dtype, {5, 3, 4});
    Same("GatherV2", {{x}, {Ints({4, 0, 4})}, {Int(0)}});
    Same("GatherV2", {{x}, {Ints({2, 0, 1, 1}).Reshaped({2, 2})}, {Int(1)}});
    Same("GatherV2", {{x}, {Tensor::Vector<int64_t>({3})}, {Int(2)}});
    Same("GatherV2", {{x}, {Ints({0, 1, 2, 2, 1, 0, 1, 1, 1, 0}).Reshaped({5, 2})}, {Int(1)}},
         [](NodeBuilder& b) { b.Attr("batch_dims", int64_t{1}); });
  }
  Same("GatherV2", {{Numbers(DType::kFloat32, {5, 0})}, {Ints({4, 0})}, {Int(0)}});
  Same("GatherV2", {{Numbers(DType::kFloat32, {5, 2})}, {Ints({})}, {Int(0)}});
}

TEST_F(MovingTest, GatherNamesTheFirstBadIndex) {
  std::vector<int32_t> indices(1000, 1);
  indices[700] = -3;
  indices[900] = 5;
  const OpCall call{"GatherV2", {{Numbers(DType::kFloat32, {5, 3})}, {Ints(indices)}, {Int(0)}}};
  devices_.ExpectSameError(call, "indices[700] = -3 is not in [0, 5)");
  SameError("GatherV2", {{Numbers(DType::kFloat32, {5, 0})}, {Ints({2, 5})}, {Int(0)}}, "indices[1] = 5");
}

TEST_F(MovingTest, OneHot) {
  const auto one_hot = [&](const Tensor& indices, int32_t depth, int64_t axis) {
    Same("OneHot", {{indices}, {Int(depth)}, {Tensor::Scalar(2.0f)}, {Tensor::Scalar(-1.0f)}},
         [axis](NodeBuilder& b) { b.Attr("axis", axis); });
  };
  one_hot(Ints({0, 2, -1, 7, 1, 3}).Reshaped({2, 3}), 4, -1);
  one_hot(Tensor::Vector<int64_t>({0, 2, -1, 7, 1, 3}).Reshaped({2, 3}), 4, 0);
  one_hot(Tensor::Vector<uint8_t>({0, 2, 255, 7, 1, 3}).Reshaped({2, 3}), 4, 1);
  one_hot(Ints({}), 4, -1);
  one_hot(Ints({1, 2}), 0, -1);
}

TEST_F(MovingTest, Strings) {
  const Tensor x = Tensor::FromValues<std::string>({"a", "b", "c", "d", "e", "f"}, Shape{2, 3});
  Same("Transpose", {{x}, {Ints({1, 0})}});
  Same("ConcatV2", {{x, x}, {Int(1)}});
  Same("Slice", {{x}, {Ints({0, 1})}, {Ints({2, 1})}});
  Same("GatherV2", {{x}, {Ints({2, 0})}, {Int(1)}});
  Same("Tile", {{x}, {Ints({2, 1})}});
  Same("Reshape", {{x}, {Ints({-1})}});
}

}  // namespace
}  // namespace cohort::cuda
