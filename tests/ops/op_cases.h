// OpCase: one way of calling an op. One table of them serves the gradient check, the registry test (every op
// needs a case) and the comparison with TensorFlow.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"
#include "cohort/registration.h"

namespace cohort::testing {

struct OpCase {
  using Build = std::function<std::vector<Output>(Graph&, const std::vector<Output>&)>;

  std::string op;              // the op that the case is about; it must appear in the graph that `build` makes
  std::string label;           // unique for the op: letters, digits, '_'
  std::vector<Tensor> inputs;  // fed to placeholders of these dtypes
  Build build;                 // adds the op; returns the outputs to look at
  // Inputs (by number, float64; float32 for ops that have no other) whose analytic gradient is compared with central
  // differences of the sum over outputs o of that dtype of sum(w_o * o), with fixed weights w_o that differ by element:
  // once with placeholders of exactly these shapes, once with unknown dimensions, so that both ways of making a
  // gradient are seen.
  std::vector<int> differentiable = {};
  double step = 1e-5;       // of the differences
  double tolerance = 1e-6;  // of the gradient check, relative to max(1, |numeric|)
  // False: the outputs are numbers that nobody else reproduces (random ops, state), or TensorFlow ends; its run is not
  // compared.
  bool compare_values = true;
  // True: the op cannot be built on unknown dimensions.
  bool known_shapes_only = false;
};

// All cases: the lists below, in order.
std::vector<OpCase> AllOpCases();

// One a file.
void AddArrayCases(std::vector<OpCase>& cases);
void AddSliceCases(std::vector<OpCase>& cases);
void AddMathCases(std::vector<OpCase>& cases);
void AddReductionCases(std::vector<OpCase>& cases);
void AddIndexCases(std::vector<OpCase>& cases);
void AddNnCases(std::vector<OpCase>& cases);
void AddConvolutionalCases(std::vector<OpCase>& cases);
void AddRandomCases(std::vector<OpCase>& cases);
void AddStateCases(std::vector<OpCase>& cases);
void AddTrainingCases(std::vector<OpCase>& cases);
void AddControlFlowCases(std::vector<OpCase>& cases);
void AddCheckpointCases(std::vector<OpCase>& cases);
void AddCollectiveCases(std::vector<OpCase>& cases);

// "AddV2/broadcast" as a GoogleTest parameter name: "AddV2_broadcast".
std::string CaseName(const OpCase& op_case);

// GoogleTest prints a case by its name.
void PrintTo(const OpCase& op_case, std::ostream* out);

// A graph with one placeholder an input and what `build` adds to it.
struct CaseGraph {
  Graph graph;
  std::vector<Output> inputs;
  std::vector<Output> outputs;
  // With `unknown_dims` no dimension of a placeholder is known.
  CaseGraph(const OpCase& op_case, bool unknown_dims);
};

// Inputs of cases: float64 values in [low, high], all different, the same in every run.
Tensor Ramp(const Shape& shape, double low = -1.0, double high = 1.0);
// The same in scattered order.
Tensor Scatter(const Shape& shape, double low = -1.0, double high = 1.0, int seed = 1);
// A bool tensor; without a shape a vector.
Tensor Flags(const std::vector<bool>& values);
Tensor Flags(const std::vector<bool>& values, const Shape& shape);
// Converted as C++ converts (bool: not zero).
Tensor AsType(const Tensor& float64, DType dtype);
// Converted to float64; throws InvalidArgumentError for strings.
Tensor AsFloat64(const Tensor& value);

// The dtype that the case is differentiated in.
DType DifferentiatedDType(const OpCase& op_case);

// Builds that call a function of one or two inputs; also one of ops/, which takes a name as well.
using UnaryOp = Output (*)(Output, const NodeName&);
using BinaryOp = Output (*)(const ops::Operand&, const ops::Operand&, const NodeName&);
OpCase::Build Unary(std::function<Output(Output)> fn);
OpCase::Build Unary(UnaryOp fn);
OpCase::Build Binary(std::function<Output(Output, Output)> fn);
OpCase::Build Binary(BinaryOp fn);

}  // namespace cohort::testing
