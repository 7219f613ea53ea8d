// OpCase: one way of calling an op. One table of them serves the gradient check, the registry test (every op needs
// a case) and the comparison with TensorFlow.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/graph/graph.h"

namespace cohort::testing {

struct OpCase {
  using Build = std::function<std::vector<Output>(Graph&, const std::vector<Output>&)>;

  std::string op;               // the op that the case is about; it must appear in the graph that `build` makes
  std::string label;            // unique for the op: letters, digits, '_'
  std::vector<Tensor> inputs;   // fed to placeholders of exactly these shapes and dtypes
  Build build;                  // adds the op; returns the outputs to look at
  // Inputs (by number, float64) whose analytic gradient is compared with central differences of
  // sum over outputs o of sum(w_o * o), with fixed weights w_o that differ by element.
  std::vector<int> differentiable;
  double tolerance = 1e-6;      // of the gradient check, relative to max(1, |numeric|)
  // Outputs are numbers that nobody else reproduces (random ops, state): TensorFlow's run is not compared.
  bool compare_values = true;
  // Feed the placeholders with unknown dimensions, so that the gradient cannot rely on static shapes.
  bool unknown_shapes = false;
};

// All cases: the lists below, in order.
std::vector<OpCase> AllOpCases();

// One a file.
void AddArrayCases(std::vector<OpCase>& cases);
void AddMathCases(std::vector<OpCase>& cases);
void AddReductionCases(std::vector<OpCase>& cases);
void AddIndexCases(std::vector<OpCase>& cases);

// "AddV2/broadcast" as a GoogleTest parameter name: "AddV2_broadcast".
std::string CaseName(const OpCase& op_case);

// Inputs of cases: float64 values in [low, high], all different, the same in every run.
Tensor Ramp(const Shape& shape, double low = -1.0, double high = 1.0);
// The same in scattered order.
Tensor Scatter(const Shape& shape, double low = -1.0, double high = 1.0, int seed = 1);

}  // namespace cohort::testing
