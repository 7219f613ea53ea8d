// Runs every case of the table with known and with unknown dimensions. The shapes that the rule gave when the op was
// added must agree with those that the kernel makes.
#include <gtest/gtest.h>

#include "tests/ops/interpreter.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

class ShapeRule : public ::testing::TestWithParam<OpCase> {};

TEST_P(ShapeRule, AgreesWithTheKernel) {
  const OpCase& op_case = GetParam();
  for (const bool unknown : {false, true}) {
    if (unknown && op_case.known_shapes_only) continue;
    const CaseGraph graph(op_case, unknown);
    Interpreter interpreter(2);
    Interpreter::Feeds feeds;
    for (size_t i = 0; i < op_case.inputs.size(); ++i) feeds.emplace_back(graph.inputs[i], op_case.inputs[i]);
    const std::vector<Tensor> results = interpreter.Run(graph.outputs, feeds);
    for (size_t o = 0; o < results.size(); ++o) {
      const Output& output = graph.outputs[o];
      EXPECT_EQ(results[o].dtype(), output.dtype()) << "output " << o;
      EXPECT_TRUE(output.shape().IsCompatibleWith(results[o].shape()))
          << "output " << o << ": rule " << output.shape() << ", kernel " << results[o].shape();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ShapeRule, ::testing::ValuesIn(AllOpCases()),
                         [](const auto& info) { return CaseName(info.param); });

}  // namespace
}  // namespace cohort::testing
