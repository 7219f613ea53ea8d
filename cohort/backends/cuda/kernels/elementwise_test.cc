// Kernels that compute each element alone, on a GPU of the fake driver and on a CPU: sizes around those of packs and
// blocks, all ways to broadcast, values at the edges, and errors.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/arithmetic.cu.h"
#include "cohort/backends/cuda/kernels/unary.cu.h"
#include "cohort/backends/cuda/testing/both_devices.h"
#include "cohort/graph/testing/activation_ops.h"
#include "tests/ops/op_cases.h"

namespace cohort::cuda {
namespace {

using cohort::testing::AsType;
using cohort::testing::Ramp;
using cohort::testing::Scatter;

constexpr DType kElementTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16,
                                   DType::kInt32,   DType::kInt64,   DType::kUint8};
constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

Tensor NumbersOf(DType dtype, const Shape& shape, int seed = 1) {
  return AsType(Scatter(shape, dtype == DType::kUint8 ? 0 : -100, 100, seed), dtype);
}

class CudaElementwiseTest : public ::testing::Test {
 protected:
  void Same(const std::string& op, const std::vector<Tensor>& inputs, std::function<void(NodeBuilder&)> attrs = {}) {
    devices_.ExpectSame(CallOf(op, inputs, std::move(attrs)), ToleranceOf(inputs.back().dtype()));
  }
  void SameError(const std::string& op, const std::vector<Tensor>& inputs, const std::string& text) {
    devices_.ExpectSameError(CallOf(op, inputs, {}), text);
  }
  static OpCall CallOf(const std::string& op, const std::vector<Tensor>& inputs,
                       std::function<void(NodeBuilder&)> attrs) {
    OpCall call{op, {}, std::move(attrs)};
    for (const Tensor& input : inputs) call.inputs.push_back({input});
    return call;
  }
  BothDevices devices_;
};

TEST_F(CudaElementwiseTest, AllSizesAroundPacksAndBlocks) {
  for (const DType dtype : kElementTypes) {
    for (const int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 255, 256, 257, 5000}) {
      Same("Neg", {NumbersOf(dtype, {n})});
      Same("Sub", {NumbersOf(dtype, {n}), NumbersOf(dtype, {n}, 2)});
      Same("Less", {NumbersOf(dtype, {n}), NumbersOf(dtype, {n}, 2)});
      Same("OnesLike", {NumbersOf(dtype, {n})});
    }
  }
}

TEST_F(CudaElementwiseTest, AllWaysToBroadcast) {
  const std::pair<Shape, Shape> shapes[] = {{{40, 33}, {}},
                                            {{}, {40, 33}},
                                            {{40, 33}, {33}},
                                            {{33}, {40, 33}},
                                            {{40, 1}, {1, 33}},
                                            {{40, 33}, {40, 1}},
                                            {{2, 1, 3, 1, 5}, {4, 1, 6, 1}},
                                            {{1}, {1, 1}},
                                            {{1, 1}, {7}},
                                            {{0, 3}, {1, 3}},
                                            {{3, 1}, {3, 4}},
                                            {{5, 4, 3}, {5, 1, 3}}};
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kUint8}) {
    for (const auto& [a, b] : shapes) {
      Same("AddV2", {NumbersOf(dtype, a), NumbersOf(dtype, b, 2)});
      Same("Sub", {NumbersOf(dtype, a), NumbersOf(dtype, b, 2)});
      Same("Maximum", {NumbersOf(dtype, a), NumbersOf(dtype, b, 2)});
      Same("GreaterEqual", {NumbersOf(dtype, a), NumbersOf(dtype, b, 2)});
    }
  }
}

Tensor EdgesOf(DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0.0,  -0.0,     1.0,       -1.0, 0.5,  1.5, 2.5, -2.5,  1e-30, -1e-30, 87.5,
                                      -88., infinity, -infinity, NAN,  1e30, 3e9, -1., 254.7, 1e19,  2.25,   -0.75};
  return AsType(Tensor::Vector(values), dtype);
}

TEST_F(CudaElementwiseTest, FunctionsOfFloatingPointNumbersAtTheEdges) {
  for (const DType dtype : kFloats) {
    for (const char* op : {"Neg", "Abs", "Sign", "Square", "Round", "Reciprocal", "Sqrt", "Rsqrt", "Floor", "Ceil",
                           "Exp", "Expm1", "Log", "Log1p", "Erf", "IsNan", "IsInf", "IsFinite"}) {
      Same(op, {EdgesOf(dtype)});
    }
    for (const char* op : {"AddV2", "Mul", "Div", "RealDiv", "FloorDiv", "Maximum", "Minimum", "SquaredDifference",
                           "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"}) {
      const Tensor edges = EdgesOf(dtype);
      Same(op, {edges.Reshaped({22, 1}), edges});
    }
    for (const std::string& op : cohort::testing::ActivationOps()) {
      Same(op, {EdgesOf(dtype)});
      Same(op + "Grad", {EdgesOf(dtype), NumbersOf(dtype, {22})});
    }
  }
}

TEST_F(CudaElementwiseTest, IntegersWrapAroundAndRoundAsOnTheCpu) {
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    const bool narrow = dtype == DType::kInt32;
    const Tensor values = narrow ? Tensor::Vector<int32_t>({INT32_MIN, INT32_MAX, -7, 7, 0, 1, -1, 3})
                                 : Tensor::Vector<int64_t>({INT64_MIN, INT64_MAX, -7, 7, 0, 1, -1, 3});
    const Tensor divisors = narrow ? Tensor::Vector<int32_t>({-1, -1, 2, -2, 5, INT32_MIN, 1, 3})
                                   : Tensor::Vector<int64_t>({-1, -1, 2, -2, 5, INT64_MIN, 1, 3});
    for (const char* op : {"AddV2", "Sub", "Mul", "Div", "FloorDiv", "FloorMod", "SquaredDifference", "Maximum"}) {
      Same(op, {values.Reshaped({8, 1}), divisors});
    }
    const Tensor powers = narrow ? Tensor::Vector<int32_t>({0, 1, 2, 3, 31, 62, 5, 63})
                                 : Tensor::Vector<int64_t>({0, 1, 2, 3, 31, 62, 5, 63});
    Same("Pow", {values.Reshaped({8, 1}), powers});
    for (const char* op : {"Neg", "Abs", "Sign", "Square"}) Same(op, {values});
  }
}

TEST_F(CudaElementwiseTest, BadIntegersAreReportedAsOnTheCpu) {
  for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kUint8}) {
    Tensor divisors = NumbersOf(dtype, {700});
    for (Tensor* t : {&divisors}) {
      *t = AsType(Ramp({700}, 1, 100), DType::kFloat64);
      t->data<double>()[300] = t->data<double>()[311] = t->data<double>()[699] = 0;
      *t = AsType(*t, dtype);
    }
    for (const char* op : {"Div", "FloorDiv", "FloorMod"}) {
      SameError(op, {NumbersOf(dtype, {2, 700}), divisors}, "element 300 of the divisor of shape [700] is 0");
    }
    SameError("Reciprocal", {divisors}, "element 300 of [700]");
  }
  SameError("Pow", {NumbersOf(DType::kInt32, {3}), Ints({1, -5, -6})}, "not allowed: -5 at element 1");
}

TEST_F(CudaElementwiseTest, Casts) {
  std::vector<DType> all(std::begin(kElementTypes), std::end(kElementTypes));
  all.push_back(DType::kBool);
  for (const DType to : all) {
    for (const DType from : all) {
      const Tensor value = from == DType::kBool ? cohort::testing::Flags({true, false, true}) : NumbersOf(from, {37});
      Same("Cast", {value}, [to](NodeBuilder& b) { b.Attr("DstT", to); });
    }
    for (const DType from : kFloats) Same("Cast", {EdgesOf(from)}, [to](NodeBuilder& b) { b.Attr("DstT", to); });
  }
}

TEST_F(CudaElementwiseTest, AddNTakesAnyNumberOfOperands) {
  for (const DType dtype : {DType::kFloat32, DType::kInt32}) {
    for (const int count : {2, 3, 15, 16, 17, 31, 40}) {
      OpCall call{"AddN", {{}}};
      for (int i = 0; i < count; ++i) call.inputs[0].push_back(NumbersOf(dtype, {37}, i));
      devices_.ExpectSame(call, ToleranceOf(dtype));
    }
  }
}

TEST_F(CudaElementwiseTest, Choices) {
  const auto flags = [](const Shape& shape) {
    std::vector<bool> values;
    for (int64_t i = 0; i < shape.num_elements(); ++i) values.push_back(i % 3 == 1 || i % 7 == 2);
    return cohort::testing::Flags(values, shape);
  };
  for (const DType dtype : {DType::kFloat32, DType::kUint8, DType::kBfloat16, DType::kInt64}) {
    Same("SelectV2", {flags({300}), NumbersOf(dtype, {300}), NumbersOf(dtype, {300}, 2)});
    Same("SelectV2", {flags({7, 1}), NumbersOf(dtype, {}), NumbersOf(dtype, {1, 5}, 2)});
    Same("SelectV2", {flags({}), NumbersOf(dtype, {2, 1, 4}), NumbersOf(dtype, {3, 1}, 2)});
    Same("Select", {flags({7}), NumbersOf(dtype, {7, 5}), NumbersOf(dtype, {7, 5}, 2)});
    Same("Select", {flags({}), NumbersOf(dtype, {7, 5}), NumbersOf(dtype, {7, 5}, 2)});
    Same("ClipByValue", {NumbersOf(dtype, {300}), AsType(Tensor::Scalar(10.0), dtype), NumbersOf(dtype, {300}, 3)});
  }
}

// A slice of a tensor may begin at any element, so the loops must not take packs there.
TEST(UnalignedTest, OperandsMayBeginAtAnyElement) {
  Driver& driver = RegisterGpusForTests().driver;  // it reads and writes pinned memory
  const StreamHandle stream = driver.MakeStream(0, "unaligned");
  const EventHandle done = driver.MakeEvent(0, EventUse::kOrder);
  auto* x = static_cast<float*>(driver.AllocatePinned(0, 4096));
  auto* y = static_cast<float*>(driver.AllocatePinned(0, 4096));
  for (int64_t at = 0; at < 5; ++at) {
    for (int64_t to = 0; to < 5; ++to) {
      for (int i = 0; i < 1024; ++i) {
        x[i] = static_cast<float>(i);
        y[i] = -1;
      }
      BinaryArgs args{x + at, x + to, y + to, 100};
      LaunchArithmetic(driver, stream, ArithmeticOp::kAdd, ElementType::kFloat32, args);
      LaunchUnary(driver, stream, UnaryOp::kSquare, ElementType::kFloat32, {x + at, y + 500 + to, 100});
      driver.Record(done, stream);
      ASSERT_TRUE(driver.Synchronize(done).ok());
      for (int64_t i = 0; i < 100; ++i) {
        ASSERT_EQ(y[to + i], static_cast<float>(2 * i + at + to));
        ASSERT_EQ(y[500 + to + i], static_cast<float>((i + at) * (i + at)));
      }
      ASSERT_EQ(y[to + 100], -1);
      ASSERT_EQ(y[500 + to + 100], -1);
      ASSERT_TRUE(to == 0 || y[to - 1] == -1);
    }
  }
  driver.FreePinned(0, x);
  driver.FreePinned(0, y);
  driver.Destroy(0, done);
  driver.Destroy(0, stream);
}

}  // namespace
}  // namespace cohort::cuda
