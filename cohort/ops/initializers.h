// Initial values of variables. Random ones are stateless: they follow from the graph's seed, the initializer's seed and
// the variable's name alone, so that every replica and every run with the same seed starts from the same numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::ops {

// How many inputs each output of a layer sums up, and the reverse.
struct FanCounts {
  double in;
  double out;
};
// Rank 0: 1, 1; rank 1: n, n; rank 2: rows, columns; more: the last two dimensions times the receptive field, the
// product of the others (depthwise kernels are no exception, as in TensorFlow).
FanCounts Fans(const Shape& shape);

struct InitializerRequest {
  Graph& graph;
  Shape shape;  // fully defined
  DType dtype;
  std::string name;                              // full name of the variable
  std::optional<FanCounts> fans = std::nullopt;  // where they are not those of the shape
};
// Adds the nodes of one initial value of the shape and dtype asked for.
using Initializer = std::function<Output(const InitializerRequest&)>;

// What VarianceScaling divides by, and how it draws.
enum class FanMode { kFanIn, kFanOut, kFanAvg };
enum class Distribution { kUniform, kTruncatedNormal, kUntruncatedNormal };

// int32[2] seed of a stateless random op for the variable `name`.
Tensor InitialValueSeed(const Graph& graph, const std::string& name, int64_t seed);

}  // namespace cohort::ops

// What makes initializers. The random ones stand beside ops of the same names: ops::RandomUniform adds an op, and
// initializers::RandomUniform describes how a variable begins.
namespace cohort::initializers {

// Defaults are TensorFlow's v1 initializers'. `seed` distinguishes two initializers for the same name.
ops::Initializer Zeros();
ops::Initializer Ones();
ops::Initializer Constant(double value);
ops::Initializer Constant(const Tensor& value);
ops::Initializer RandomNormal(double mean = 0.0, double stddev = 1.0, int64_t seed = 0);
// Floating: [minval, maxval). Integers: likewise, and maxval has to be given.
ops::Initializer RandomUniform(double minval = 0.0, double maxval = 1.0, int64_t seed = 0);
// Numbers further than 2 stddev from the mean are drawn again.
ops::Initializer TruncatedNormal(double mean = 0.0, double stddev = 1.0, int64_t seed = 0);

// scale / n is the variance, n = fan_in, fan_out or their mean, of the request or else of Fans().
ops::Initializer VarianceScaling(double scale, ops::FanMode mode, ops::Distribution distribution, int64_t seed = 0);
ops::Initializer GlorotUniform(int64_t seed = 0);
ops::Initializer GlorotNormal(int64_t seed = 0);
ops::Initializer HeNormal(int64_t seed = 0);
ops::Initializer HeUniform(int64_t seed = 0);
ops::Initializer LecunNormal(int64_t seed = 0);
ops::Initializer LecunUniform(int64_t seed = 0);

}  // namespace cohort::initializers
