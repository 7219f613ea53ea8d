// Ops for the tests of graph/, which must not include ops/. Some exist only for tests ("TestMul"). The others are ops
// that graph/ uses by name ("AddN"). test_ops.cc registers them before main() runs.
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort {

Output TestConst(Graph& graph, const Tensor& value, const std::string& name = "Const");
// Returns a value that is not known when the graph is built.
Output TestInput(Graph& graph, DType dtype, const Shape& shape, const std::string& name = "TestInput");
Output TestMul(Output a, Output b, const std::string& name = "TestMul");
// Return the handle of a variable, and a value that reads it.
Output TestVariable(Graph& graph, const Shape& shape, const std::string& name = "v");
Output TestRead(Output handle);

}  // namespace cohort
