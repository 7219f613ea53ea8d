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

// What VarianceScaling divides by, and how it draws.
enum class FanMode { kFanIn, kFanOut, kFanAvg };
enum class Distribution { kUniform, kTruncatedNormal, kUntruncatedNormal };

// int32[2] seed of a stateless random op for the variable `name`.
COHORT_EXPORT Tensor InitialValueSeed(const Graph& graph, const std::string& name, int64_t seed);

}  // namespace cohort::ops

// What makes initializers. The random ones stand beside ops of the same names: ops::RandomUniform adds an op, and
// initializers::RandomUniform describes how a variable begins.
namespace cohort::initializers {

// Defaults are TensorFlow's v1 initializers'. `seed` distinguishes two initializers for the same name.
COHORT_EXPORT ops::Initializer Zeros();
COHORT_EXPORT ops::Initializer Ones();
COHORT_EXPORT ops::Initializer Constant(double value);
COHORT_EXPORT ops::Initializer Constant(const Tensor& value);
COHORT_EXPORT ops::Initializer RandomNormal(double mean = 0.0, double stddev = 1.0, int64_t seed = 0);
// Floating: [minval, maxval). Integers: likewise, and maxval has to be given.
COHORT_EXPORT ops::Initializer RandomUniform(double minval = 0.0, double maxval = 1.0, int64_t seed = 0);
// Numbers further than 2 stddev from the mean are drawn again.
COHORT_EXPORT ops::Initializer TruncatedNormal(double mean = 0.0, double stddev = 1.0, int64_t seed = 0);

// scale / n is the variance, n = fan_in, fan_out or their mean, of the request or else of Fans().
COHORT_EXPORT ops::Initializer VarianceScaling(double scale, ops::FanMode mode, ops::Distribution distribution,
                                               int64_t seed = 0);
COHORT_EXPORT ops::Initializer GlorotUniform(int64_t seed = 0);
COHORT_EXPORT ops::Initializer GlorotNormal(int64_t seed = 0);
COHORT_EXPORT ops::Initializer HeNormal(int64_t seed = 0);
COHORT_EXPORT ops::Initializer HeUniform(int64_t seed = 0);
COHORT_EXPORT ops::Initializer LecunNormal(int64_t seed = 0);
COHORT_EXPORT ops::Initializer LecunUniform(int64_t seed = 0);

}  // namespace cohort::initializers
