// Prints one line of JSON for each op case: the graph as a GraphDef, the feeds, our results, and the gradients of the
// weighted sum of the floating outputs. test_ops.py runs the same graph in TensorFlow.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "cohort/graph/gradients.h"
#include "cohort/graph/graph_def.h"
#include "cohort/ops/constant.h"
#include "cohort/proto/tensor.pb.h"
#include "cohort/proto/tensor_proto.h"
#include "tests/ops/interpreter.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Json = nlohmann::json;

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

std::string HexOf(const Tensor& tensor) {
  proto::TensorProto message;
  ToProto(tensor, &message);
  return Hex(message.SerializeAsString());
}

// Adds the gradients of the inputs that the case differentiates, with weights on the outputs of the same dtype.
void AddGradients(const OpCase& op_case, CaseGraph& graph, Interpreter& interpreter, Interpreter::Feeds feeds,
                  Json& line) {
  std::vector<Output> ys, weights, xs;
  const DType dtype = DifferentiatedDType(op_case);
  for (const Output& output : graph.outputs) {
    if (output.dtype() == dtype) ys.push_back(output);
  }
  for (const Tensor& value : interpreter.Run(ys, feeds)) {
    const Tensor weight = AsType(Scatter(value.shape(), 0.4, 1.7, static_cast<int>(weights.size()) + 7), dtype);
    weights.push_back(ops::Const(graph.graph, weight));
    line["weights"].push_back({{"of", ys[weights.size() - 1].name()}, {"value", HexOf(weight)}});
  }
  for (const int input : op_case.differentiable) xs.push_back(graph.inputs[static_cast<size_t>(input)]);
  const std::vector<Gradient> gradients = Gradients(ys, xs, weights);
  for (size_t i = 0; i < xs.size(); ++i) {
    const Tensor value = interpreter.Run1(ToDense(gradients[i]), feeds);
    line["gradients"].push_back({{"of", xs[i].name()}, {"value", HexOf(value)}});
  }
}

Json Describe(const OpCase& op_case) {
  CaseGraph graph(op_case, false);
  Interpreter interpreter;
  Json line = {{"name", CaseName(op_case)},
               {"op", op_case.op},
               {"feeds", Json::array()},
               {"outputs", Json::array()},
               {"weights", Json::array()},
               {"gradients", Json::array()},
               {"compare", op_case.compare_values},
               {"graph_def", Hex(SerializeGraphDef(graph.graph))}};
  Interpreter::Feeds feeds;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    feeds.emplace_back(graph.inputs[i], op_case.inputs[i]);
    line["feeds"].push_back({{"of", graph.inputs[i].name()}, {"value", HexOf(op_case.inputs[i])}});
  }
  const std::vector<Tensor> results = interpreter.Run(graph.outputs, feeds);
  for (size_t o = 0; o < results.size(); ++o) {
    line["outputs"].push_back({{"of", graph.outputs[o].name()}, {"value", HexOf(results[o])}});
  }
  if (!op_case.differentiable.empty()) AddGradients(op_case, graph, interpreter, feeds, line);
  return line;
}

}  // namespace
}  // namespace cohort::testing

int main() {
  for (const auto& op_case : cohort::testing::AllOpCases()) {
    try {
      std::cout << cohort::testing::Describe(op_case) << "\n";
    } catch (const std::exception& error) {
      std::cerr << cohort::testing::CaseName(op_case) << ": " << error.what() << "\n";
      return 1;
    }
  }
  return 0;
}
