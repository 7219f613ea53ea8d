// Compares the analytic gradient of every case of the table with central differences.
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

struct GradientCase {
  OpCase op_case;
  bool unknown_dims;
};

void PrintTo(const GradientCase& gradient_case, std::ostream* out) { PrintTo(gradient_case.op_case, out); }

std::vector<GradientCase> GradientCases() {
  std::vector<GradientCase> cases;
  for (const OpCase& op_case : AllOpCases()) {
    if (op_case.differentiable.empty()) continue;
    cases.push_back({op_case, false});
    if (!op_case.known_shapes_only) cases.push_back({op_case, true});
  }
  return cases;
}

Interpreter::Feeds FeedsOf(const CaseGraph& graph, const std::vector<Tensor>& values) {
  Interpreter::Feeds feeds;
  for (size_t i = 0; i < values.size(); ++i) feeds.emplace_back(graph.inputs[i], values[i]);
  return feeds;
}

class GradientCheck : public ::testing::TestWithParam<GradientCase> {
 protected:
  // Returns the floating outputs. The weights below make one number of them.
  std::vector<Output> FloatOutputs() const {
    std::vector<Output> outputs;
    for (const Output& output : graph_.outputs) {
      if (output.dtype() == dtype_) outputs.push_back(output);
    }
    return outputs;
  }

  double Value(const std::vector<Tensor>& inputs) {
    const std::vector<Tensor> results = interpreter_.Run(FloatOutputs(), FeedsOf(graph_, inputs));
    double sum = 0;
    for (size_t o = 0; o < results.size(); ++o) {
      const Tensor weights = AsFloat64(weights_[o]), values = AsFloat64(results[o]);
      for (int64_t i = 0; i < values.num_elements(); ++i) sum += weights.data<double>()[i] * values.data<double>()[i];
    }
    return sum;
  }

  double NumericGradient(int input, int64_t element) {
    std::vector<Tensor> inputs = op_case_.inputs;
    Tensor& moved = inputs[static_cast<size_t>(input)];
    const Tensor at = AsFloat64(moved);
    const auto move = [&](double by) {
      Tensor there = at.Clone();
      there.data<double>()[element] += by;
      moved = AsType(there, dtype_);
      return AsFloat64(moved).data<double>()[element];
    };
    const double to = move(op_case_.step);
    const double above = Value(inputs);
    const double from = move(-op_case_.step);
    return (above - Value(inputs)) / (to - from);
  }

  const OpCase op_case_ = GetParam().op_case;
  const DType dtype_ = DifferentiatedDType(op_case_);
  CaseGraph graph_{op_case_, GetParam().unknown_dims};
  Interpreter interpreter_;
  std::vector<Tensor> weights_;
};

TEST_P(GradientCheck, AgreesWithDifferences) {
  const std::vector<Output> outputs = FloatOutputs();
  ASSERT_FALSE(outputs.empty());
  Interpreter::Feeds feeds = FeedsOf(graph_, op_case_.inputs);
  for (const Tensor& result : interpreter_.Run(outputs, feeds)) {
    weights_.push_back(AsType(Scatter(result.shape(), 0.4, 1.7, static_cast<int>(weights_.size()) + 7), dtype_));
  }
  std::vector<Output> weights, xs;
  for (size_t o = 0; o < outputs.size(); ++o) {
    weights.push_back(ops::Placeholder(graph_.graph, dtype_, weights_[o].shape()));
    feeds.emplace_back(weights.back(), weights_[o]);
  }
  for (const int input : op_case_.differentiable) xs.push_back(graph_.inputs[static_cast<size_t>(input)]);
  const std::vector<Gradient> gradients = Gradients(outputs, xs, weights);
  for (size_t x = 0; x < xs.size(); ++x) {
    const int input = op_case_.differentiable[x];
    const Tensor& value = op_case_.inputs[static_cast<size_t>(input)];
    ASSERT_TRUE(gradients[x].exists()) << "no gradient of input " << input;
    const Tensor analytic = AsFloat64(interpreter_.Run1(ToDense(gradients[x]), feeds));
    ASSERT_EQ(analytic.shape(), value.shape()) << "gradient of input " << input;
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const double numeric = NumericGradient(input, i);
      EXPECT_NEAR(analytic.data<double>()[i], numeric, op_case_.tolerance * std::max(1.0, std::abs(numeric)))
          << "input " << input << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientCheck, ::testing::ValuesIn(GradientCases()), [](const auto& info) {
  return CaseName(info.param.op_case) + (info.param.unknown_dims ? "_unknown_dims" : "");
});

}  // namespace
}  // namespace cohort::testing
