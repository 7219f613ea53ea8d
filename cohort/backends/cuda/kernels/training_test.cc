// Updates of optimizers, on a GPU of the fake driver and on a CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/training.cu.h"
#include "cohort/backends/cuda/testing/both_devices.h"
#include "tests/ops/op_cases.h"

namespace cohort::cuda {
namespace {

using cohort::testing::AsType;
using cohort::testing::Scatter;

// An op with its inputs after the variables, in the op's order: a number, or the gradient ('g') or the indices ('i').
struct RuleCase {
  const char* op;
  int variables;
  std::vector<double> inputs;  // kGrad, kIndices or a scalar
  const char* flag = "";
};
constexpr double kGrad = 1000, kIndices = 2000;

std::vector<RuleCase> DenseCases() {
  return {{"ResourceApplyGradientDescent", 1, {0.1, kGrad}},
          {"ResourceApplyWeightDecay", 1, {0.1}},
          {"ResourceApplyMomentum", 2, {0.1, kGrad, 0.9}, "use_nesterov"},
          {"ResourceApplyKerasMomentum", 2, {0.1, kGrad, 0.9}, "use_nesterov"},
          {"ResourceApplyAdagrad", 2, {0.1, kGrad}, "update_slots"},
          {"ResourceApplyAdagradV2", 2, {0.1, 0.01, kGrad}, "update_slots"},
          {"ResourceApplyKerasAdagrad", 2, {0.1, 0.01, kGrad}},
          {"ResourceApplyAdam", 3, {0.5, 0.25, 0.1, 0.9, 0.99, 0.01, kGrad}, "use_nesterov"},
          {"ResourceApplyAdamWithAmsgrad", 4, {0.5, 0.25, 0.1, 0.9, 0.99, 0.01, kGrad}},
          {"ResourceApplyRMSProp", 3, {0.1, 0.9, 0.5, 0.01, kGrad}},
          {"ResourceApplyCenteredRMSProp", 4, {0.1, 0.9, 0.5, 4.0, kGrad}},
          {"ResourceApplyFtrl", 3, {kGrad, 0.1, 0.01, 0.02, -0.5}, "multiply_linear_by_lr"},
          {"ResourceApplyFtrl", 3, {kGrad, 0.1, 0.01, 0.02, -0.7}, "multiply_linear_by_lr"},
          {"ResourceApplyFtrlV2", 3, {kGrad, 0.1, 0.01, 0.02, 0.03, -0.5}, "multiply_linear_by_lr"}};
}

std::vector<RuleCase> SparseCases() {
  return {{"ResourceSparseApplyMomentum", 2, {0.1, kGrad, kIndices, 0.9}, "use_nesterov"},
          {"ResourceSparseApplyKerasMomentum", 2, {0.1, kGrad, kIndices, 0.9}, "use_nesterov"},
          {"ResourceSparseApplyAdagrad", 2, {0.1, kGrad, kIndices}, "update_slots"},
          {"ResourceSparseApplyAdagradV2", 2, {0.1, 0.01, kGrad, kIndices}, "update_slots"},
          {"ResourceSparseApplyKerasAdagrad", 2, {0.1, 0.01, kGrad, kIndices}},
          {"ResourceSparseApplyAdam", 3, {0.5, 0.25, 0.1, 0.9, 0.99, 4.0, kGrad, kIndices}, "use_nesterov"},
          {"ResourceSparseApplyRMSProp", 3, {0.1, 0.9, 0.5, 0.01, kGrad, kIndices}},
          {"ResourceSparseApplyCenteredRMSProp", 4, {0.1, 0.9, 0.5, 4.0, kGrad, kIndices}},
          {"ResourceSparseApplyFtrl", 3, {kGrad, kIndices, 0.1, 0.01, 0.02, -0.5}, "multiply_linear_by_lr"},
          {"ResourceSparseApplyFtrlV2", 3, {kGrad, kIndices, 0.1, 0.01, 0.02, 0.03, -0.5}, "multiply_linear_by_lr"}};
}

OpCall CallOf(const RuleCase& rule, DType dtype, const Shape& shape, const Tensor& grad, const Tensor& indices,
              bool flag) {
  OpCall call{rule.op, {}, {}, {}};
  for (int k = 0; k < rule.variables; ++k) {
    call.variables.push_back(AsType(Scatter(shape, k == 0 ? -1.0 : 0.1, 1.0, k + 1), dtype));
  }
  for (const double input : rule.inputs) {
    const Tensor scalar = AsType(Tensor::Scalar(input), dtype);
    call.inputs.push_back({input == kGrad ? grad : input == kIndices ? indices : scalar});
  }
  if (*rule.flag != '\0') {
    call.attrs = [name = rule.flag, flag](NodeBuilder& b) { b.Attr(name, flag); };
  }
  return call;
}

class CudaTrainingTest : public ::testing::Test {
 protected:
  BothDevices devices_;
};

TEST_F(CudaTrainingTest, DenseUpdates) {
  for (const RuleCase& rule : DenseCases()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
      for (const bool flag : {false, true}) {
        for (const Shape& shape : {Shape{33, 37}, Shape{5}, Shape{0, 3}, Shape()}) {
          const Tensor grad = AsType(Scatter(shape, -1, 1, 9), dtype);
          devices_.ExpectSame(CallOf(rule, dtype, shape, grad, {}, flag), ToleranceOf(dtype));
        }
      }
    }
    if (std::string(rule.op) == "ResourceApplyWeightDecay") continue;
    devices_.ExpectSameError(CallOf(rule, DType::kFloat32, Shape{4}, Tensor::Vector<float>({1, 2, 3}), {}, false),
                             "expected a gradient of shape [4] for variable 'v0'; got [3]");
  }
}

TEST_F(CudaTrainingTest, SparseUpdates) {
  const Tensor indices = Tensor::Vector<int32_t>({3, 0, 3, 6, 3, 0});  // rows occur several times
  for (const RuleCase& rule : SparseCases()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
      for (const bool flag : {false, true}) {
        const Tensor grad = AsType(Scatter({6, 5}, -1, 1, 9), dtype);
        devices_.ExpectSame(CallOf(rule, dtype, {7, 5}, grad, indices, flag), ToleranceOf(dtype));
      }
    }
    const Tensor none = Tensor::Vector<int64_t>({});
    devices_.ExpectSame(CallOf(rule, DType::kFloat32, {7, 5}, Tensor::Zeros(DType::kFloat32, {0, 5}), none, false));
    const Tensor bad = Tensor::Vector<int64_t>({1, -1});
    const Tensor grad = Tensor::Zeros(DType::kFloat32, {2, 5}), narrow = Tensor::Zeros(DType::kFloat32, {2, 4});
    devices_.ExpectSameError(CallOf(rule, DType::kFloat32, {7, 5}, grad, bad, false), "indices[1] = -1");
    devices_.ExpectSameError(CallOf(rule, DType::kFloat32, {7, 5}, narrow, bad, false),
                             "expected gradient rows of shape [2,5]");
  }
}

TEST(DenseUpdatesTest, OneLaunchUpdatesManyVariables) {
  const GpusOfTests gpus = RegisterGpusForTests();
  Driver& driver = gpus.driver;
  const StreamHandle stream = driver.MakeStream(0, "updates");
  constexpr int kCount = 2 * kMostUpdates + 3;
  const auto bytes = [](int i) { return static_cast<size_t>(i % 5) * 700 * sizeof(float); };
  std::vector<DenseUpdate> updates;
  std::vector<std::vector<float>> values;
  const auto on_device = [&](const std::vector<float>& host, size_t size) -> void* {
    if (size == 0) return nullptr;
    void* data = driver.Allocate(0, size);
    driver.CopyAsync(data, host.data(), size, Driver::Copy::kFromHost, stream);
    return data;
  };
  const std::vector<float> alpha = {0.5f};
  const std::vector<float> grad(4 * 700, 2.0f);
  RuleArgs shared;
  shared.scalars[0] = on_device(alpha, sizeof(float));
  for (int i = 0; i < kCount; ++i) {
    values.emplace_back(bytes(i) / sizeof(float), static_cast<float>(i));
    DenseUpdate update;
    update.olds[0] = update.outs[0] = on_device(values.back(), bytes(i));
    update.grad = on_device(grad, bytes(i));
    update.n = static_cast<int64_t>(values.back().size());
    updates.push_back(update);
  }
  const int64_t before = gpus.counts.launches();
  LaunchDenseUpdates(driver, stream, OptimizerRule::kGradientDescent, ElementType::kFloat32, shared, updates.data(),
                     kCount);
  EXPECT_EQ(gpus.counts.launches() - before, 3);
  for (int i = 0; i < kCount; ++i) {
    if (bytes(i) > 0) {
      driver.CopyAsync(values[static_cast<size_t>(i)].data(), updates[static_cast<size_t>(i)].outs[0], bytes(i),
                       Driver::Copy::kToHost, stream);
    }
  }
  const EventHandle done = driver.MakeEvent(0, EventUse::kOrder);
  driver.Record(done, stream);
  const Status copied = driver.Synchronize(done);
  driver.Destroy(0, done);
  ASSERT_TRUE(copied.ok());
  for (int i = 0; i < kCount; ++i) {
    EXPECT_THAT(values[static_cast<size_t>(i)], ::testing::Each(static_cast<float>(i) - 1.0f)) << i;
  }
}

}  // namespace
}  // namespace cohort::cuda
