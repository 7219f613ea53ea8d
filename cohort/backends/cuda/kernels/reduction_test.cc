// Reductions, softmax and cross-entropies on a GPU of the fake driver and on a CPU: shapes for which one thread, a
// warp, a block or several blocks compute a result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/column_sums.h"
#include "cohort/backends/cuda/kernels/reduction.cu.h"
#include "cohort/backends/cuda/testing/both_devices.h"
#include "tests/ops/op_cases.h"

namespace cohort::cuda {
namespace {

using cohort::testing::AsType;
using cohort::testing::Ramp;
using cohort::testing::Scatter;

struct Axes {
  Shape shape;
  std::vector<int32_t> axes;
};

const Axes kAxes[] = {{{5}, {0}},
                      {{300}, {0}},
                      {{5000}, {0}},
                      {{70001}, {0}},
                      {{7, 20}, {1}},
                      {{7, 900}, {1}},
                      {{3, 5000}, {1}},
                      {{2, 40000}, {1}},
                      {{20, 7}, {0}},
                      {{5000, 3}, {0}},
                      {{40000, 5}, {0}},
                      {{300, 400}, {0}},
                      {{30, 40, 7}, {0, 2}},
                      {{30, 40, 7}, {1}},
                      {{6, 5, 4, 3}, {0, 2}},
                      {{6, 5, 4, 3}, {1, 3}},
                      {{2, 3, 4}, {0, 1, 2}},
                      {{2, 3, 4}, {}},
                      {{0, 4}, {0}},
                      {{4, 0}, {0}},
                      {{1, 6, 1}, {0, 2}}};

// A card takes 2^31 - 1 blocks in the first direction of a launch, and 65,535 in the second.
TEST(ColumnSumsTest, ALaunchTakesAnyNumberOfColumnsAndRows) {
  constexpr int64_t kMillion = 1'000'000;
  for (const int64_t columns : {int64_t{1}, int64_t{255}, 17 * kMillion, 100'000 * kMillion}) {
    for (const int64_t rows : {int64_t{1}, 3 * kMillion, 100'000 * kMillion}) {
      const ColumnSums sums(rows, columns);
      const LaunchSize size = FirstStageSize(sums);
      EXPECT_LT(size.blocks[0], uint32_t{1} << 31) << columns << " columns";
      EXPECT_LE(size.blocks[1], 65535) << rows << " rows";
      EXPECT_GE(size.blocks[0] * sums.block_columns, columns);
      EXPECT_GE(size.blocks[1] * sums.chunk_rows, rows);
      EXPECT_EQ(size.blocks[2], 1);
    }
  }
}

class CudaReductionTest : public ::testing::Test {
 protected:
  void Same(const std::string& op, const Tensor& x, const std::vector<int32_t>& axes, double tolerance) {
    for (const bool keep : {false, true}) {
      devices_.ExpectSame({op, {{x}, {Tensor::Vector(axes)}}, [keep](NodeBuilder& b) { b.Attr("keep_dims", keep); }},
                          tolerance);
    }
  }
  BothDevices devices_;
};

TEST_F(CudaReductionTest, NumbersOfAllTypesAndShapes) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kInt32, DType::kInt64, DType::kUint8}) {
    for (const Axes& axes : kAxes) {
      const Tensor x = AsType(Scatter(axes.shape, dtype == DType::kUint8 ? 0 : -2, 5), dtype);
      // A sum of n numbers of about 1 may be off by about n roundings.
      const double tolerance = ToleranceOf(dtype);
      for (const char* op : {"Sum", "Max", "Min"}) Same(op, x, axes.axes, tolerance);
      if (x.num_elements() > 0 || IsFloating(dtype)) Same("Mean", x, axes.axes, tolerance);
      const Tensor near_one = IsFloating(dtype) ? AsType(Scatter(axes.shape, 0.99, 1.01), dtype) : x;
      Same("Prod", near_one, axes.axes, dtype == DType::kBfloat16 ? 0.5 : 100 * tolerance);
    }
  }
}

TEST_F(CudaReductionTest, TruthValues) {
  for (const Axes& axes : kAxes) {
    for (const int kind : {0, 1, 2}) {
      Tensor x = AsType(Scatter(axes.shape, kind == 0 ? 0 : 1, kind == 0 ? 0 : 2), DType::kBool);
      if (kind == 2 && x.num_elements() > 0) x.data<bool>()[x.num_elements() / 2] = false;
      Same("All", x, axes.axes, 0);
      Same("Any", x, axes.axes, 0);
    }
  }
}

TEST_F(CudaReductionTest, NansAndInfinitiesPass) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const int64_t n : {10, 500, 5000, 70000}) {
    for (const double special : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
      Tensor x = Ramp({n});
      x.data<double>()[n / 3] = special;
      for (const char* op : {"Sum", "Max", "Min", "Mean"}) Same(op, AsType(x, DType::kFloat32), {0}, 1e-5);
    }
  }
}

TEST_F(CudaReductionTest, TheSameInputGivesTheSameBits) {
  const Tensor x = AsType(Scatter({50000}, -1, 1), DType::kFloat32);
  const OpCall call{"Sum", {{x}, {Ints({0})}}};
  const Tensor first = devices_.OnGpu(call).outputs.at(0);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(devices_.OnGpu(call).outputs.at(0).scalar<float>(), first.scalar<float>());
}

TEST_F(CudaReductionTest, NoIntegersHaveNoMean) {
  devices_.ExpectSameError({"Mean", {{Tensor(DType::kInt32, {0, 3})}, {Ints({0})}}}, "no integers");
}

TEST(ReductionWorkTest, SegmentsCoverAllElements) {
  for (const int64_t outputs : {1, 7, 256, 100000}) {
    for (const int64_t count : {0, 1, 31, 1000, 20000, 1 << 20, 100000007}) {
      for (const bool inner : {false, true}) {
        ReductionShape shape;
        shape.outputs = outputs;
        shape.count = count;
        shape.inner_reduced = inner;
        const ReductionWork work = DivideReduction(shape);
        EXPECT_GE(work.segments * work.segment, count);
        EXPECT_LT((work.segments - 1) * work.segment, std::max<int64_t>(count, 1));
        EXPECT_EQ(ReductionBytes(shape) == 0, work.segments == 1);
      }
    }
  }
}

class CudaSoftmaxTest : public ::testing::Test {
 protected:
  BothDevices devices_;
};

constexpr std::pair<int64_t, int64_t> kRowsAndClasses[] = {{1, 1},    {3, 2},    {64, 10},  {300, 7}, {5, 33},
                                                           {2, 1024}, {3, 1025}, {2, 5000}, {0, 4},   {4, 0}};

TEST_F(CudaSoftmaxTest, RowsOfAllLengths) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    for (const auto& [rows, classes] : kRowsAndClasses) {
      const Tensor x = AsType(Scatter({rows, classes}, -9, 9), dtype);
      devices_.ExpectSame({"Softmax", {{x}}}, ToleranceOf(dtype));
      devices_.ExpectSame({"LogSoftmax", {{x}}}, ToleranceOf(dtype));
      const Tensor targets = AsType(Scatter({rows, classes}, 0, 0.2, 3), dtype);
      devices_.ExpectSame({"SoftmaxCrossEntropyWithLogits", {{x}, {targets}}}, ToleranceOf(dtype));
      if (classes == 0) continue;
      const Tensor labels = Scatter({rows}, 0, static_cast<double>(classes) - 0.01, 2);
      for (const DType of_labels : {DType::kInt32, DType::kInt64}) {
        devices_.ExpectSame({"SparseSoftmaxCrossEntropyWithLogits", {{x}, {AsType(labels, of_labels)}}},
                            ToleranceOf(dtype));
      }
    }
  }
}

TEST_F(CudaSoftmaxTest, ExtremeLogits) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x =
      Tensor::Vector<float>({1e30f, -1e30f, 0, 5, 5, 5, -infinity, 0, 1, -500, -600, -700, NAN, 0, 1}).Reshaped({5, 3});
  devices_.ExpectSame({"Softmax", {{x}}}, 1e-5);
  devices_.ExpectSame({"LogSoftmax", {{x}}}, 1e-5);
  devices_.ExpectSame({"SparseSoftmaxCrossEntropyWithLogits", {{x}, {Ints({0, 1, 2, 0, 1})}}}, 1e-5);
}

TEST_F(CudaSoftmaxTest, LabelsThatAreNoClassAreReported) {
  for (const auto& [rows, classes] : {std::pair<int64_t, int64_t>{40, 10}, {40, 2000}}) {
    const Tensor x = AsType(Scatter({rows, classes}), DType::kFloat32);
    std::vector<int32_t> labels(static_cast<size_t>(rows), 3);
    labels[17] = -1;
    labels[18] = 100000;
    labels[39] = static_cast<int32_t>(classes);
    devices_.ExpectSameError({"SparseSoftmaxCrossEntropyWithLogits", {{x}, {Ints(labels)}}},
                             "Received a label value of -1 which is outside the valid range of [0, ");
  }
}

}  // namespace
}  // namespace cohort::cuda
