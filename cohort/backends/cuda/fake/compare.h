// CompareWithCpu: expectations that kernels of GPUs compute what the CPU's kernels compute. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/fake/graph_run.h"
#include "cohort/core/bfloat16.h"
#include "cohort/core/str_cat.h"
#include "tests/ops/interpreter.h"

namespace cohort::testing {

// Returns a tensor of a numeric dtype with values between -2 and 2, which differ from place to place and by `seed`.
// Integers are between -7 and 7.
inline Tensor SomeValues(DType dtype, const Shape& shape, int seed) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = 2 * std::sin(static_cast<double>(i) * 0.7 + seed);
    const auto integer = static_cast<int64_t>((i * 31 + seed * 17) % 15 - 7);
    switch (dtype) {
      case DType::kFloat32: tensor.data<float>()[i] = static_cast<float>(value); break;
      case DType::kFloat64: tensor.data<double>()[i] = value; break;
      case DType::kBfloat16: tensor.data<bfloat16>()[i] = bfloat16(static_cast<float>(value)); break;
      case DType::kInt32: tensor.data<int32_t>()[i] = static_cast<int32_t>(integer); break;
      case DType::kInt64: tensor.data<int64_t>()[i] = integer; break;
      default: ADD_FAILURE() << "no values of " << dtype;
    }
  }
  return tensor;
}

inline double ValueAt(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kFloat32: return static_cast<double>(tensor.data<float>()[i]);
    case DType::kFloat64: return tensor.data<double>()[i];
    case DType::kBfloat16: return static_cast<double>(static_cast<float>(tensor.data<bfloat16>()[i]));
    case DType::kInt32: return tensor.data<int32_t>()[i];
    case DType::kInt64: return static_cast<double>(tensor.data<int64_t>()[i]);
    case DType::kBool: return tensor.data<bool>()[i] ? 1 : 0;
    default: ADD_FAILURE() << "no values of " << tensor.dtype(); return 0;
  }
}

// Returns the tolerance, relative to max(1, |value|), of results that are sums of few products.
inline double ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return 2e-6;
    case DType::kFloat64: return 1e-13;
    case DType::kBfloat16: return 1.0 / 64;
    default: return 0;
  }
}

// Computes the graph by the CPU's kernels and by those of GPUs, and expects equal dtypes and shapes and almost equal
// values. A negative tolerance means ToleranceOf. Returns the values of the GPU.
inline std::vector<Tensor> CompareWithCpu(const Graph& graph, const std::vector<Output>& fetches,
                                          const std::vector<std::pair<Output, Tensor>>& feeds, double tolerance = -1) {
  const std::vector<Tensor> expected = Interpreter().Run(fetches, feeds);
  std::vector<Tensor> actual = RunOnGpu(graph, fetches, feeds);
  for (size_t k = 0; k < fetches.size(); ++k) {
    const Tensor& a = actual[k];
    const Tensor& e = expected[k];
    const std::string name =
        StrCat(fetches[k].node->op_name(), " output ", fetches[k].index, " ", e.dtype(), e.shape());
    EXPECT_EQ(a.dtype(), e.dtype()) << name;
    EXPECT_EQ(a.shape(), e.shape()) << name;
    if (a.shape() != e.shape() || a.dtype() != e.dtype()) continue;
    const double allowed = tolerance < 0 ? ToleranceOf(e.dtype()) : tolerance;
    int wrong = 0;
    for (int64_t i = 0; i < e.num_elements() && wrong < 5; ++i) {
      const double x = ValueAt(a, i), y = ValueAt(e, i);
      const bool same = std::isfinite(y) ? std::abs(x - y) <= allowed * std::max(1.0, std::abs(y))
                                         : (std::isnan(y) ? std::isnan(x) : x == y);
      if (same) continue;
      ++wrong;
      ADD_FAILURE() << name << ", element " << i << ": expected " << y << ", got " << x;
    }
  }
  return actual;
}

}  // namespace cohort::testing
