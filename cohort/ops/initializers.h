// Initial values of variables. Random values are stateless: they follow only from the graph's seed, the initializer's
// seed and the variable's name. So every replica, and every run with the same seed, starts from the same numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// The number of inputs that each output of a layer sums up (in), and the number of outputs to which each input
// contributes (out).
struct COHORT_EXPORT FanCounts {
  double in;
  double out;
};
// Returns the fans of a shape. Rank 0: 1, 1. Rank 1: n, n. Rank 2: rows, columns. Higher ranks: the last two dimensions
// times the receptive field, which is the product of the others. Depthwise kernels are not an exception, as in
// TensorFlow.
COHORT_EXPORT FanCounts Fans(const Shape& shape);

struct COHORT_EXPORT InitializerRequest {
  Graph& graph;
  Shape shape;  // fully defined
  DType dtype;
  std::string name;                              // full name of the variable
  std::optional<FanCounts> fans = std::nullopt;  // set if they are not those of the shape
};
// Adds the nodes of one initial value, which has the requested shape and dtype.
using Initializer = std::function<Output(const InitializerRequest&)>;

// Defaults are TensorFlow's v1 initializers'. `seed` distinguishes two initializers for the same name.
COHORT_EXPORT Initializer Zeros();
COHORT_EXPORT Initializer Ones();
COHORT_EXPORT Initializer Constant(double value);
COHORT_EXPORT Initializer Constant(const Tensor& value);
COHORT_EXPORT Initializer RandomNormal(double mean = 0.0, double stddev = 1.0, int64_t seed = 0);
// Floating: [minval, maxval). Integers: likewise, and maxval has to be given.
COHORT_EXPORT Initializer RandomUniform(double minval = 0.0, double maxval = 1.0, int64_t seed = 0);
// Numbers further than 2 stddev from the mean are drawn again.
COHORT_EXPORT Initializer TruncatedNormal(double mean = 0.0, double stddev = 1.0, int64_t seed = 0);

// scale / n is the variance, n = fan_in, fan_out or their mean, of the request or else of Fans().
enum class FanMode { kFanIn, kFanOut, kFanAvg };
enum class Distribution { kUniform, kTruncatedNormal, kUntruncatedNormal };
COHORT_EXPORT Initializer VarianceScaling(double scale, FanMode mode, Distribution distribution, int64_t seed = 0);
COHORT_EXPORT Initializer GlorotUniform(int64_t seed = 0);
COHORT_EXPORT Initializer GlorotNormal(int64_t seed = 0);
COHORT_EXPORT Initializer HeNormal(int64_t seed = 0);
COHORT_EXPORT Initializer HeUniform(int64_t seed = 0);
COHORT_EXPORT Initializer LecunNormal(int64_t seed = 0);
COHORT_EXPORT Initializer LecunUniform(int64_t seed = 0);

// int32[2] seed of a stateless random op for the variable `name`.
COHORT_EXPORT Tensor InitialValueSeed(const Graph& graph, const std::string& name, int64_t seed);

}  // namespace cohort::ops
