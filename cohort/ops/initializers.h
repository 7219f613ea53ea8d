// Initial values of variables. Random values are stateless: they depend only on the graph's seed, the initializer's
// seed, and the variable's name and shape. So every replica, and every run with the same seed, starts from the same
// numbers.
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
// Returns the fans (in, out) of a weight of this shape. Rank 0: 1 and 1. Rank 1: n and n. Rank 2: rows and columns.
// Higher ranks: the last two dimensions, each times the product of the other dimensions. As in TensorFlow, depthwise
// kernels follow the same rule.
COHORT_EXPORT FanCounts Fans(const Shape& shape);

struct COHORT_EXPORT InitializerRequest {
  Graph& graph;
  Shape shape;  // fully defined
  DType dtype;
  std::string name;                              // full name of the variable
  std::optional<FanCounts> fans = std::nullopt;  // if not set: Fans(shape)
};
// Adds the nodes of one initial value, which has the requested shape and dtype.
using Initializer = std::function<Output(const InitializerRequest&)>;

// FanMode is the number by which VarianceScaling divides. Distribution is the distribution from which it draws.
enum class FanMode { kFanIn, kFanOut, kFanAvg };
enum class Distribution { kUniform, kTruncatedNormal, kUntruncatedNormal };

// Returns the seed (int32 [2]) of a stateless random op for the initial value of the variable `name`.
COHORT_EXPORT Tensor InitialValueSeed(const Graph& graph, const std::string& name, int64_t seed);

}  // namespace cohort::ops

// The functions that make initializers. Some ops have the same names: ops::RandomUniform adds an op, and
// initializers::RandomUniform describes the initial value of a variable.
namespace cohort::initializers {

// The defaults are those of TensorFlow's v1 initializers. With different values of `seed`, a variable gets different
// numbers.
COHORT_EXPORT ops::Initializer Zeros();
COHORT_EXPORT ops::Initializer Ones();
COHORT_EXPORT ops::Initializer Constant(double value);
COHORT_EXPORT ops::Initializer Constant(const Tensor& value);
COHORT_EXPORT ops::Initializer RandomNormal(double mean = 0.0, double stddev = 1.0, int64_t seed = 0);
// Draws from [minval, maxval). For integer dtypes, maxval has to be given.
COHORT_EXPORT ops::Initializer RandomUniform(double minval = 0.0, double maxval = 1.0, int64_t seed = 0);
// Numbers further than 2 stddev from the mean are drawn again.
COHORT_EXPORT ops::Initializer TruncatedNormal(double mean = 0.0, double stddev = 1.0, int64_t seed = 0);

// Draws with the variance scale / n. `mode` says what n is: the fan "in", the fan "out", or their mean. The fans are
// those of the request or else those of Fans().
COHORT_EXPORT ops::Initializer VarianceScaling(double scale, ops::FanMode mode, ops::Distribution distribution,
                                               int64_t seed = 0);
COHORT_EXPORT ops::Initializer GlorotUniform(int64_t seed = 0);
COHORT_EXPORT ops::Initializer GlorotNormal(int64_t seed = 0);
COHORT_EXPORT ops::Initializer HeNormal(int64_t seed = 0);
COHORT_EXPORT ops::Initializer HeUniform(int64_t seed = 0);
COHORT_EXPORT ops::Initializer LecunNormal(int64_t seed = 0);
COHORT_EXPORT ops::Initializer LecunUniform(int64_t seed = 0);

// Draws a random matrix with orthogonal columns of length `gain`, or with such rows if it has fewer rows than columns.
// All such matrices are equally likely. A shape of a higher rank is that of the matrix [product of the first
// dimensions, last dimension]. Throws InvalidArgumentError for a rank below 2.
COHORT_EXPORT ops::Initializer Orthogonal(double gain = 1.0, int64_t seed = 0);

}  // namespace cohort::initializers
