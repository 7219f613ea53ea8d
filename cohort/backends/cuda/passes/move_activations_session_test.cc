// Training steps with activations that other kernels apply: launched and recorded, and compared with the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/backends/cuda/testing/recording_fixture.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/pooling.h"
#include "cohort/ops/variables.h"

namespace cohort::cuda {
namespace {

class MovedActivationsTest : public RecordingTest {
 protected:
  static constexpr int kSteps = 4;

  // Trains a small network of separable convolutions on the device. Returns the losses.
  static std::vector<float> Train(const std::string& device, std::vector<Asked>* asked = nullptr) {
    Graph g;
    const DeviceScope scope(g, device);
    std::vector<ops::Variable> variables;
    const auto next = [&](const Shape& shape) {
      const auto number = static_cast<int64_t>(variables.size());
      variables.emplace_back(g, SeededNoise(shape, number + 1), ops::VariableOptions{.name = StrCat("w", number)});
      return variables.back().value();
    };
    const auto separable = [&](const Output& x, int64_t from, int64_t to) {
      const Output depthwise = ops::DepthwiseConv2dNative(x, next({3, 3, from, 1}), {.padding = "SAME"});
      return ops::Selu(ops::BiasAdd(ops::Conv2D(depthwise, next({1, 1, from, to})), next({to})));
    };
    const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1, 8, 8, 4}, "x");
    Output y = separable(separable(x, 4, 8), 8, 8);
    y = separable(ops::MaxPool(y, {.size = {2, 2}, .strides = {2, 2}}), 8, 4);
    y = ops::Reshape(ops::MaxPool(y, {.size = {2, 2}, .strides = {2, 2}}), {-1, 16});
    y = ops::MatMul(y, next({16, 5})) * 0.1f;
    const Output loss = ops::Mean(ops::Square(y - 1.0f));
    std::vector<Output> values;
    for (const ops::Variable& v : variables) values.push_back(v);
    const std::vector<Gradient> gradients = Gradients({loss}, values);
    std::vector<Node*> updates;
    for (size_t i = 0; i < variables.size(); ++i) {
      updates.push_back(variables[i].AssignSub(ToDense(gradients[i]) * 0.01f));
    }
    Session session(g, "", Config());
    session.Run(ops::GlobalVariablesInitializer(g));
    const Tensor images = SeededNoise({3, 8, 8, 4}, 99);
    std::vector<float> losses;
    for (int i = 0; i < kSteps; ++i) {
      const Asked now = AskedBy([&] {
        losses.push_back(session.Run({{x, images}}, {loss}, updates)[0].scalar<float>());
      });
      if (asked != nullptr) asked->push_back(now);
    }
    return losses;
  }
};

TEST_F(MovedActivationsTest, StepsAreThoseOfTheCpuAndRecordedOnesHaveTheSameBits) {
  const std::vector<float> on_cpu = Train("/device:CPU:0");
  config::EnableStepRecording(false);
  const std::vector<float> launched = Train("/device:GPU:0");
  config::EnableStepRecording(true);
  std::vector<Asked> asked;
  const std::vector<float> recorded = Train("/device:GPU:0", &asked);
  EXPECT_EQ(recorded, launched);
  EXPECT_EQ(asked.back().graphs, 1);
  EXPECT_EQ(asked.back().launches, 0);
  for (int i = 0; i < kSteps; ++i) {
    const auto step = static_cast<size_t>(i);
    EXPECT_NEAR(launched[step], on_cpu[step], 1e-4f * std::max(1.0f, on_cpu[step])) << i;
  }
  EXPECT_LT(on_cpu.back(), on_cpu.front());
}

}  // namespace
}  // namespace cohort::cuda
