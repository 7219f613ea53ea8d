// Random ops, constants and whole variables on a GPU of the fake driver and on a CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/philox.h"
#include "cohort/backends/cuda/testing/both_devices.h"
#include "cohort/core/philox.h"
#include "tests/ops/op_cases.h"

namespace cohort::cuda {
namespace {

using cohort::testing::AsType;
using cohort::testing::Scatter;

class CudaRandomTest : public ::testing::Test {
 protected:
  BothDevices devices_;
};

TEST(PhiloxCounterTest, GivesTheWordsOfTheLibraryAlsoWhereTheCounterCarries) {
  const Philox::Result counters[] = {{0, 0, 0, 0}, {0xffffffff, 0xffffffff, 0xffffffff, 7}, {0xfffffffe, 1, 2, 3}};
  for (const Philox::Result& counter : counters) {
    Philox expected(counter, {123, 456});
    PhiloxCounter got{{counter[0], counter[1], counter[2], counter[3]}, {123, 456}};
    for (int i = 0; i < 5; ++i) {
      uint32_t words[4];
      got.Next(words);
      const Philox::Result want = expected();
      for (size_t w = 0; w < 4; ++w) ASSERT_EQ(words[w], want[w]);
      expected.Skip(uint64_t{1} << 62);
      got.Skip(uint64_t{1} << 62);
    }
  }
}

int64_t UlpsBetween(float a, float b) {
  const auto order = [](float x) {
    const auto bits = std::bit_cast<int32_t>(x);
    return static_cast<int64_t>(bits < 0 ? INT32_MIN - bits : bits);
  };
  return std::abs(order(a) - order(b));
}

TEST_F(CudaRandomTest, UniformNumbersHaveTheSameBits) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    for (const int32_t n : {0, 1, 2, 3, 4, 5, 1023, 20000}) {
      const auto attrs = [dtype](NodeBuilder& b) { b.Attr("dtype", dtype); };
      devices_.ExpectSame({"StatelessRandomUniform", {{Ints({n})}, {Ints({3, -8})}}, attrs});
      devices_.ExpectSame({"RandomUniform", {{Ints({n})}}, [dtype](NodeBuilder& b) {
                             b.Attr("dtype", dtype).Attr("seed", 7).Attr("seed2", 9);
                           }});
    }
  }
}

// The functions of float32 do not round correctly everywhere, neither those of a host nor those of a card.
TEST(NormalFloatsTest, EachStepIsRoundedCorrectly) {
  const auto round = [](long double value) { return static_cast<float>(value); };
  PhiloxCounter philox{{1, 2, 3, 4}, {5, 6}};
  for (int i = 0; i < 30000; ++i) {
    uint32_t words[4];
    philox.Next(words);
    float got[2];
    NormalFloatsOf(words[0], words[1], got);
    const float uniform = std::max(1e-7f, UniformFloatOf(words[0]));
    const float angle = round(2.0L * 3.14159265358979323846L * UniformFloatOf(words[1]));
    const float radius = std::sqrt(-2.0f * round(std::log(static_cast<long double>(uniform))));
    ASSERT_EQ(got[0], round(std::sin(static_cast<long double>(angle))) * radius) << i;
    ASSERT_EQ(got[1], round(std::cos(static_cast<long double>(angle))) * radius) << i;
  }
}

TEST_F(CudaRandomTest, NormalNumbersDifferByAtMostFourUnitsInTheLastPlace) {
  for (const char* op : {"StatelessRandomNormal", "StatelessTruncatedNormal"}) {
    const OpCall call{op, {{Ints({5003})}, {Ints({1, 2})}}, [](NodeBuilder& b) { b.Attr("dtype", DType::kFloat32); }};
    const Tensor cpu = devices_.OnCpu(call).outputs.at(0), gpu = devices_.OnGpu(call).outputs.at(0);
    for (int64_t i = 0; i < 5003; ++i) ASSERT_LE(UlpsBetween(cpu.data<float>()[i], gpu.data<float>()[i]), 4) << i;
    for (const DType dtype : {DType::kFloat64, DType::kBfloat16}) {
      devices_.ExpectSame({op, {{Ints({7, 11})}, {Ints({1, 2})}}, [dtype](NodeBuilder& b) { b.Attr("dtype", dtype); }},
                          ToleranceOf(dtype));
    }
  }
}

TEST_F(CudaRandomTest, IntegersHaveTheSameBits) {
  for (const int32_t n : {1, 3, 4, 5, 3000}) {
    devices_.ExpectSame(
        {"StatelessRandomUniformInt", {{Ints({n})}, {Ints({1, 2})}, {Int(INT32_MIN)}, {Int(INT32_MAX)}}});
    devices_.ExpectSame(
        {"StatelessRandomUniformInt",
         {{Ints({n})}, {Ints({1, 2})}, {Tensor::Scalar<int64_t>(-5)}, {Tensor::Scalar<int64_t>(1000)}}});
    for (const DType dtype : {DType::kInt32, DType::kInt64}) {
      devices_.ExpectSame({"StatelessRandomUniformFullInt", {{Ints({n})}, {Ints({1, 2})}}, [dtype](NodeBuilder& b) {
                             b.Attr("dtype", dtype);
                           }});
    }
  }
  devices_.ExpectSameError({"StatelessRandomUniformInt", {{Ints({3})}, {Ints({1, 2})}, {Int(5)}, {Int(5)}}},
                           "Need minval < maxval, got 5 >= 5");
}

TEST_F(CudaRandomTest, Shuffles) {
  for (const DType dtype : {DType::kFloat32, DType::kUint8, DType::kFloat64, DType::kBfloat16}) {
    for (const Shape& shape : {Shape{1000}, Shape{37, 5}, Shape{2}, Shape{1, 4}}) {
      devices_.ExpectSame({"RandomShuffle", {{AsType(Scatter(shape, 0, 200), dtype)}}, [](NodeBuilder& b) {
                             b.Attr("seed", 7).Attr("seed2", 9);
                           }});
    }
  }
}

TEST_F(CudaRandomTest, Constants) {
  for (const int32_t n : {0, 1, 5, 300}) {
    for (const Tensor& value : {Tensor::Scalar(2.5f), Tensor::Scalar<uint8_t>(9), Tensor::Scalar(true),
                                Tensor::Scalar<int64_t>(-3), AsType(Tensor::Scalar(0.5), DType::kBfloat16)}) {
      devices_.ExpectSame({"Fill", {{Ints({n, 3})}, {value}}});
    }
    devices_.ExpectSame({"Range", {{Int(5)}, {Int(5 - 3 * n)}, {Int(-3)}}});
    devices_.ExpectSame(
        {"Range",
         {{Tensor::Scalar(0.5f)}, {Tensor::Scalar(0.5f + 0.25f * static_cast<float>(n))}, {Tensor::Scalar(0.25f)}}});
    devices_.ExpectSame({"ZerosLike", {{AsType(Scatter({n}), DType::kFloat32)}}});
  }
}

TEST_F(CudaRandomTest, UpdatesOfWholeVariables) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kInt32, DType::kInt64}) {
    for (const Shape& shape : {Shape{1000}, Shape{}, Shape{0}, Shape{7, 3}}) {
      const Tensor old = AsType(Scatter(shape, -50, 50), dtype), change = AsType(Scatter(shape, -5, 5, 2), dtype);
      for (const char* op : {"AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp"}) {
        devices_.ExpectSame({op, {{change}}, {}, {old}});
      }
      devices_.ExpectSame({"ReadVariableOp", {}, [dtype](NodeBuilder& b) { b.Attr("dtype", dtype); }, {old}});
    }
  }
  devices_.ExpectSameError({"AssignAddVariableOp", {{Tensor::Vector<float>({1, 2})}}, {}, {Tensor::Vector<float>({1})}},
                           "expected a change of shape [1]");
}

}  // namespace
}  // namespace cohort::cuda
