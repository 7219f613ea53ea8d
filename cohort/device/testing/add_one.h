// An update for tests of variables (VariableResource::Update).
#pragma once

#include "cohort/core/tensor.h"

namespace cohort::testing {

// out = old + 1, float32 of any shape.
inline void AddOne(const Tensor& old, Tensor& out) {
  for (int64_t i = 0; i < old.num_elements(); ++i) out.data<float>()[i] = old.data<float>()[i] + 1;
}

}  // namespace cohort::testing
