// A few ops for the tests of graph/, which stands below ops/: some of their own ("TestMul"), and those that
// graph/ uses by name ("AddN"). testing/test_ops.cc registers them before main.
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort {

Output TestConst(Graph& graph, const Tensor& value, const std::string& name = "Const");
// A value of unknown content.
Output TestInput(Graph& graph, DType dtype, const Shape& shape, const std::string& name = "TestInput");
Output TestMul(Output a, Output b, const std::string& name = "TestMul");
// A variable's handle, and a read of it.
Output TestVariable(Graph& graph, const Shape& shape, const std::string& name = "v");
Output TestRead(Output handle);

}  // namespace cohort
