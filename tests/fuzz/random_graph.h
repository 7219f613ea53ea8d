// RandomGraph: a GraphDef with one node of any op, whose attributes, input dtypes and input shapes come from a fuzzer's
// input. They fit the op's definition often enough that shape rules and kernels are reached.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/op_def.h"
#include "tests/fuzz/fuzz_input.h"

namespace cohort::fuzz {

struct RandomGraphOptions {
  // If true, each input is a constant of few elements. Otherwise it may also be a placeholder, whose shape may be
  // unknown or huge.
  bool constant_inputs = false;
};

// Returns the serialized GraphDef. The node of `op` is called "node".
std::string RandomGraph(const OpDef& op, const RandomGraphOptions& options, Input& input);

}  // namespace cohort::fuzz
