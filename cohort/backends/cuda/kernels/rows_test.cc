// Ops that go along an axis, sum rows or update them, on a GPU of the fake driver and on a CPU.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/row_order.cu.h"
#include "cohort/backends/cuda/testing/both_devices.h"
#include "tests/ops/op_cases.h"

namespace cohort::cuda {
namespace {

using cohort::testing::AsType;
using cohort::testing::Scatter;

const DType kNumbers[] = {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64, DType::kBfloat16};

Tensor Scattered(DType dtype, const Shape& shape, int seed = 1) { return AsType(Scatter(shape, -9, 9, seed), dtype); }

// Returns n indices in [low, high), each of them several times.
std::vector<int32_t> Indices(int n, int low, int high) {
  std::vector<int32_t> indices;
  indices.reserve(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) indices.push_back(low + (i * 7919 + i * i) % (high - low));
  return indices;
}

class RowsTest : public ::testing::Test {
 protected:
  BothDevices devices_;
};

TEST_F(RowsTest, Scans) {
  for (const char* op : {"Cumsum", "Cumprod"}) {
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        const auto attrs = [=](NodeBuilder& b) { b.Attr("exclusive", exclusive).Attr("reverse", reverse); };
        for (const DType dtype : kNumbers) {
          devices_.ExpectSame({op, {{Scattered(dtype, {3, 4, 5})}, {Int(1)}}, attrs}, ToleranceOf(dtype));
        }
        // Lines that blocks of threads compute.
        const Tensor near_one = AsType(Scatter({2, 601, 3}, 0.99, 1.01), DType::kFloat32);
        devices_.ExpectSame({op, {{near_one}, {Int(1)}}, attrs}, 1e-4);
        devices_.ExpectSame({op, {{Scattered(DType::kInt32, {2, 257})}, {Int(-1)}}, attrs});
        devices_.ExpectSame({op, {{Scattered(DType::kFloat32, {2, 0})}, {Int(1)}}, attrs});
      }
    }
  }
}

TEST_F(RowsTest, ArgExtrema) {
  const auto both = [&](const Tensor& x, int32_t axis) {
    for (const DType index : {DType::kInt32, DType::kInt64}) {
      const auto attrs = [index](NodeBuilder& b) { b.Attr("output_type", index); };
      devices_.ExpectSame({"ArgMax", {{x}, {Int(axis)}}, attrs});
      devices_.ExpectSame({"ArgMin", {{x}, {Int(axis)}}, attrs});
    }
  };
  for (const DType dtype : kNumbers) {
    both(Scattered(dtype, {3, 4, 5}), 1);
    both(Scattered(dtype, {2, 700, 2}), 1);
  }
  both(Tensor::Vector<uint8_t>({3, 9, 9, 1}), 0);
  both(Tensor::Vector<bool>({false, true, true}), 0);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  both(Tensor::Vector<float>({kNan, 2, kNan, 2}), 0);
  both(Tensor::Vector<float>({kNan, kNan}), 0);
  both(Tensor::Vector<float>({-kInfinity, kInfinity, kInfinity}), 0);
  std::vector<float> equal(1000, 4.0f);  // the first one is found by whichever thread
  equal[0] = kNan;
  both(Tensor::Vector<float>(equal), 0);
  both(Scattered(DType::kFloat32, {3, 0}), 0);
  devices_.ExpectSameError({"ArgMax", {{Scattered(DType::kFloat32, {3, 0})}, {Int(1)}}}, "Reduction axis 1 is empty");
}

TEST_F(RowsTest, SegmentSums) {
  for (const DType dtype : kNumbers) {
    for (const int n : {1, 5, 63, 64, 65, 300, 5000}) {
      const Tensor data = Scattered(dtype, {n, 3});
      devices_.ExpectSame({"UnsortedSegmentSum", {{data}, {Ints(Indices(n, -1, 9))}, {Int(11)}}},
                          40 * ToleranceOf(dtype));
      devices_.ExpectSame(
          {"UnsortedSegmentSum", {{data}, {Ints(std::vector<int32_t>(static_cast<size_t>(n), 2))}, {Int(3)}}},
          400 * ToleranceOf(dtype));
    }
  }
  const Tensor data = Scattered(DType::kFloat32, {2, 3, 2});
  devices_.ExpectSame({"UnsortedSegmentSum", {{data}, {Ints({0, 1, 2, 2, 1, 0}).Reshaped({2, 3})}, {Int(3)}}}, 1e-5);
  devices_.ExpectSame({"UnsortedSegmentSum", {{Scattered(DType::kFloat32, {0, 3})}, {Ints({})}, {Int(2)}}});
  devices_.ExpectSame({"UnsortedSegmentSum", {{Scattered(DType::kFloat32, {3, 0})}, {Ints({0, 1, 1})}, {Int(2)}}});
  const OpCall bad{"UnsortedSegmentSum", {{Scattered(DType::kFloat32, {3, 2})}, {Ints({0, 2, 5})}, {Int(2)}}};
  devices_.ExpectSameError(bad, "segment_ids[1] = 2");
}

TEST(RowOrderTest, SaysHowManyPositionsAndRowsItTakes) {
  EXPECT_EQ(RowOrderFor(1).size, 1);
  EXPECT_EQ(RowOrderFor(2049).size, 4096);
  const RowOrder large = RowOrderFor((int64_t{1} << 31) + 1);
  EXPECT_EQ(large.size, int64_t{1} << 32);
  EXPECT_TRUE(RowOrderFits(large, (int64_t{1} << 30) - 1));
  EXPECT_FALSE(RowOrderFits(large, int64_t{1} << 30));
  // A sort has a block for 2048 positions, and a launch less than 2^31 blocks.
  EXPECT_TRUE(RowOrderFits(RowOrderFor(int64_t{1} << 41), 5));
  EXPECT_FALSE(RowOrderFits(RowOrderFor((int64_t{1} << 41) + 1), 5));
}

TEST_F(RowsTest, SegmentSumsHaveTheSameBitsInEachRun) {
  const OpCall call{"UnsortedSegmentSum",
                    {{Scattered(DType::kFloat32, {999, 5})}, {Ints(Indices(999, 0, 4))}, {Int(4)}}};
  const Tensor first = devices_.OnGpu(call).outputs[0];
  for (int run = 0; run < 3; ++run) ExpectSameTensor(first, devices_.OnGpu(call).outputs[0], 0, "again");
}

TEST_F(RowsTest, RowsOfVariables) {
  const Tensor value = Scattered(DType::kFloat32, {6, 3});
  const auto float32 = [](NodeBuilder& b) { b.Attr("dtype", DType::kFloat32); };
  devices_.ExpectSame({"ResourceGather", {{Ints({5, 0, 5, 1}).Reshaped({2, 2})}}, float32, {value}});
  devices_.ExpectSameError({"ResourceGather", {{Ints({5, 6})}}, float32, {value}}, "indices[1] = 6");
  devices_.ExpectSame({"ResourceGather", {{Ints({})}}, float32, {value}});
}

TEST_F(RowsTest, CoordinatesOutOfRange) {
  const Tensor whole = Scattered(DType::kFloat32, {3, 4});
  const Tensor bad = Ints({1, 2, 0, 4, 3, 0}).Reshaped({3, 2}), updates = Scattered(DType::kFloat32, {3});
  const char* error = "indices[1,1] = 4 is not in [0, 4), dimension 1 of the tensor of shape [3,4]";
  devices_.ExpectSameError({"GatherNd", {{whole}, {bad}}}, error);
  devices_.ExpectSameError({"ScatterNd", {{bad}, {updates}, {Ints({3, 4})}}}, error);
  for (const char* op : {"TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub"}) {
    devices_.ExpectSameError({op, {{whole}, {bad}, {updates}}}, error);
  }
  const Tensor deep = Ints({0, 0, 1, 1, 2, 2, 0, 1, 3, 0, 0, 0}).Reshaped({2, 3, 2});
  devices_.ExpectSameError({"GatherNd", {{whole}, {deep}}}, "indices[1,1,0] = 3 is not in [0, 3), dimension 0");
  devices_.ExpectSameError({"GatherNd", {{whole}, {Ints({1, 4})}}}, "indices[1] = 4 is not in [0, 4), dimension 1");
}

TEST_F(RowsTest, ShapesOfScatterNd) {
  const Tensor indices = Ints({0, 1}).Reshaped({2, 1}), updates = Scattered(DType::kFloat32, {2});
  devices_.ExpectSame({"ScatterNd", {{indices}, {updates}, {Ints({3})}}});
  devices_.ExpectSameError({"ScatterNd", {{indices}, {updates}, {Ints({-1})}}},
                           "shape must not have negative dimensions; got -1");
}

TEST_F(RowsTest, Scatters) {
  for (const char* op : {"ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterUpdate"}) {
    for (const DType dtype : kNumbers) {
      const auto attrs = [dtype](NodeBuilder& b) { b.Attr("dtype", dtype); };
      const Tensor value = Scattered(dtype, {9, 4});
      // Each row is changed in the order of the positions, as the CPU does it: the same bits.
      devices_.ExpectSame({op, {{Ints(Indices(50, 0, 9))}, {Scattered(dtype, {50, 4}, 2)}}, attrs, {value}});
      devices_.ExpectSame({op, {{Tensor::Vector<int64_t>({8, 0, 8})}, {Scattered(dtype, Shape(), 2)}}, attrs, {value}});
      devices_.ExpectSameError({op, {{Ints({1, 9, 0})}, {Scattered(dtype, {3, 4}, 2)}}, attrs, {value}},
                               "indices[1] = 9 is not in [0, 9), the rows of variable 'v0'");
      devices_.ExpectSame({op, {{Ints({})}, {Scattered(dtype, {0, 4}, 2)}}, attrs, {value}});
      devices_.ExpectSameError({op, {{Ints({1, 2})}, {Scattered(dtype, {3, 4}, 2)}}, attrs, {value}}, "[3,4]");
    }
  }
}

TEST_F(RowsTest, ScattersOfManyRows) {
  const auto attrs = [](NodeBuilder& b) { b.Attr("dtype", DType::kFloat32); };
  devices_.ExpectSame({"ResourceScatterAdd",
                       {{Ints(Indices(9001, 0, 700))}, {Scattered(DType::kFloat32, {9001, 2}, 2)}},
                       attrs,
                       {Scattered(DType::kFloat32, {700, 2})}});
}

}  // namespace
}  // namespace cohort::cuda
