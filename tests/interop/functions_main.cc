// interop_functions GRAPH_DEF X...: reads a GraphDef that TensorFlow wrote, feeds the numbers X to "x:0" (a float32
// vector) and prints {"y": [...], "slope": [...]}: the value of "y:0" and the gradient of its sum by x.
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cohort/core/file.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/graph_def.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"

int main(int argc, char** argv) {
  try {
    cohort::RegisterAll();
    const std::unique_ptr<cohort::Graph> graph = cohort::ParseGraphDef(cohort::ReadFile(argv[1]));
    std::vector<float> numbers;
    for (int i = 2; i < argc; ++i) numbers.push_back(std::strtof(argv[i], nullptr));
    const cohort::Output x = graph->FindOutput("x:0");
    const cohort::Output y = graph->FindOutput("y:0");
    const cohort::Output slope = cohort::ToDense(cohort::Gradients({y}, {x})[0]);
    cohort::Session session(*graph);
    const auto values = session.Run({{x, cohort::Tensor::Vector(numbers)}}, {y, slope});
    std::cout << nlohmann::json{{"y", values[0].ToVector<float>()}, {"slope", values[1].ToVector<float>()}} << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
