// OpCase: one way to call an op. One table of cases serves the gradient check, the registry test (every op needs a
// case) and the comparison with TensorFlow.
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
  Build build;                 // adds the op; returns the outputs to check
  // The numbers of the inputs whose analytic gradient is compared with central differences. They are float64, or
  // float32 for ops that have no float64. The gradient is that of the sum, over outputs o of that dtype, of sum(w_o *
  // o), with fixed weights w_o that differ by element. The check runs once with placeholders of exactly these shapes,
  // and once with unknown dimensions, so that it covers both ways to make a gradient.
  std::vector<int> differentiable = {};
  double step = 1e-5;       // the step of the differences
  double tolerance = 1e-6;  // of the gradient check, relative to max(1, |numeric|)
  // If false, the result is not compared with TensorFlow's. Set it if nothing else can reproduce the outputs (random
  // ops, state), or if TensorFlow's process would end.
  bool compare_values = true;
  // If true, the op cannot be built with unknown dimensions.
  bool known_shapes_only = false;
};

// Returns all cases: those of the functions below, in order.
std::vector<OpCase> AllOpCases();

// Each file *_cases.cc defines one of these. It adds its cases.
void AddArrayCases(std::vector<OpCase>& cases);
void AddSliceCases(std::vector<OpCase>& cases);
void AddMathCases(std::vector<OpCase>& cases);
void AddReductionCases(std::vector<OpCase>& cases);
void AddIndexCases(std::vector<OpCase>& cases);
void AddRecordCases(std::vector<OpCase>& cases);
void AddImageFileCases(std::vector<OpCase>& cases);
void AddStringCases(std::vector<OpCase>& cases);
void AddCoordinateCases(std::vector<OpCase>& cases);
void AddSpecialFunctionCases(std::vector<OpCase>& cases);
void AddCompositeCases(std::vector<OpCase>& cases);
void AddNnCases(std::vector<OpCase>& cases);
void AddConvolutionalCases(std::vector<OpCase>& cases);
void AddImageCases(std::vector<OpCase>& cases);
void AddRandomCases(std::vector<OpCase>& cases);
void AddStateCases(std::vector<OpCase>& cases);
void AddTrainingCases(std::vector<OpCase>& cases);
void AddControlFlowCases(std::vector<OpCase>& cases);
void AddCheckpointCases(std::vector<OpCase>& cases);
void AddCollectiveCases(std::vector<OpCase>& cases);
void AddDatasetCases(std::vector<OpCase>& cases);
void AddDataFlowCases(std::vector<OpCase>& cases);
void AddLoadedGraphCases(std::vector<OpCase>& cases);

// Returns "AddV2/broadcast" as a GoogleTest parameter name: "AddV2_broadcast".
std::string CaseName(const OpCase& op_case);

// GoogleTest prints a case by its name.
void PrintTo(const OpCase& op_case, std::ostream* out);

// A graph with one placeholder for each input, and the nodes that `build` adds.
struct CaseGraph {
  Graph graph;
  std::vector<Output> inputs;
  std::vector<Output> outputs;
  // If `unknown_dims` is true, no dimension of a placeholder is known.
  CaseGraph(const OpCase& op_case, bool unknown_dims);
};

// Returns a tensor for an input: float64 values in [low, high], all different, the same in every run.
Tensor Ramp(const Shape& shape, double low = -1.0, double high = 1.0);
// As Ramp, in scattered order.
Tensor Scatter(const Shape& shape, double low = -1.0, double high = 1.0, int seed = 1);
// Returns a bool tensor. Without a shape it is a vector.
Tensor Flags(const std::vector<bool>& values);
Tensor Flags(const std::vector<bool>& values, const Shape& shape);
// Converts each element as C++ does (to bool: not zero).
Tensor AsType(const Tensor& float64, DType dtype);
// Converts to float64. Throws InvalidArgumentError for strings.
Tensor AsFloat64(const Tensor& value);

// Returns the dtype in which the case is differentiated.
DType DifferentiatedDType(const OpCase& op_case);

// Return a `build` that calls a function of one or two inputs. The functions of ops/ also take a name.
using UnaryOp = Output (*)(Output, const NodeName&);
using BinaryOp = Output (*)(const ops::Operand&, const ops::Operand&, const NodeName&);
OpCase::Build Unary(std::function<Output(Output)> fn);
OpCase::Build Unary(UnaryOp fn);
OpCase::Build Binary(std::function<Output(Output, Output)> fn);
OpCase::Build Binary(BinaryOp fn);

}  // namespace cohort::testing
