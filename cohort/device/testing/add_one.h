// AddOne(): an update of a variable for tests of VariableResource::Update.
#pragma once

#include "cohort/core/tensor.h"

namespace cohort::testing {

// Sets out = old + 1. Requires: both are float32 and have the same shape.
inline void AddOne(const Tensor& old, Tensor& out) {
  for (int64_t i = 0; i < old.num_elements(); ++i) out.data<float>()[i] = old.data<float>()[i] + 1;
}

}  // namespace cohort::testing
