#include "cohort/ops/initializers.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/fnv.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/random.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/unary.h"

namespace cohort::ops {

FanCounts Fans(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {1.0, 1.0};
  if (rank == 1) return {static_cast<double>(shape.dim(0)), static_cast<double>(shape.dim(0))};
  double field = 1.0;
  for (int i = 0; i < rank - 2; ++i) field *= static_cast<double>(shape.dim(i));
  return {static_cast<double>(shape.dim(rank - 2)) * field, static_cast<double>(shape.dim(rank - 1)) * field};
}

Tensor InitialValueSeed(const Graph& graph, const std::string& name, int64_t seed) {
  const uint64_t hash = Fnv1a(name) ^ (static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15u);
  const auto first = static_cast<int32_t>(static_cast<uint64_t>(graph.seed()) ^ (hash >> 32));
  return Tensor::Vector(std::vector<int32_t>{first, static_cast<int32_t>(hash)});
}

}  // namespace cohort::ops

namespace cohort::initializers {
namespace {

using ops::Distribution;
using ops::FanCounts;
using ops::FanMode;
using ops::Initializer;
using ops::InitializerRequest;

// int64, as the stateless ops take it.
Output ShapeVector(const InitializerRequest& request) {
  if (!request.shape.IsFullyDefined()) {
    throw InvalidArgumentError(StrCat("[ops/initializers] expected a fully defined shape; got ", request.shape,
                                      " for variable '", request.name, "'"));
  }
  const auto dims = request.shape.dims();
  return ops::Const(request.graph, std::vector<int64_t>(dims.begin(), dims.end()));
}

Initializer Filled(double value) {
  return [value](const InitializerRequest& request) {
    return ops::Fill(ShapeVector(request), ops::Const(request.graph, ops::NumberTensor(request.dtype, value)));
  };
}

// op * scale + offset, with `op` a stateless generator.
Output Scaled(const InitializerRequest& request, const char* op, double scale, double offset, int64_t seed) {
  Graph& graph = request.graph;
  if (!IsFloating(request.dtype)) {
    throw InvalidArgumentError(StrCat("[ops/initializers] expected a floating dtype for ", op, "; got ", request.dtype,
                                      " for variable '", request.name, "'"));
  }
  Output value = graph.Op(op)
                     .Input(ShapeVector(request))
                     .Input(ops::Const(graph, ops::InitialValueSeed(graph, request.name, seed)))
                     .Attr("dtype", request.dtype)
                     .Finish1();
  if (scale != 1.0) value = ops::Mul(value, ops::ScalarLike(value, scale));
  if (offset != 0.0) value = ops::Add(value, ops::ScalarLike(value, offset));
  return value;
}

}  // namespace

Initializer Constant(double value) { return Filled(value); }
Initializer Zeros() { return Filled(0.0); }
Initializer Ones() { return Filled(1.0); }

Initializer Constant(const Tensor& value) {
  return [value](const InitializerRequest& request) {
    if (value.dtype() != request.dtype || !request.shape.IsCompatibleWith(value.shape())) {
      throw InvalidArgumentError(StrCat("[ops/initializers] expected ", request.dtype, request.shape, "; got ",
                                        value.dtype(), value.shape(), " for variable '", request.name, "'"));
    }
    return ops::Const(request.graph, value);
  };
}

Initializer RandomNormal(double mean, double stddev, int64_t seed) {
  return
      [=](const InitializerRequest& request) { return Scaled(request, "StatelessRandomNormal", stddev, mean, seed); };
}

Initializer TruncatedNormal(double mean, double stddev, int64_t seed) {
  return [=](const InitializerRequest& request) {
    return Scaled(request, "StatelessTruncatedNormal", stddev, mean, seed);
  };
}

Initializer RandomUniform(double minval, double maxval, int64_t seed) {
  return [=](const InitializerRequest& request) {
    if (!IsInteger(request.dtype)) return Scaled(request, "StatelessRandomUniform", maxval - minval, minval, seed);
    Graph& graph = request.graph;
    return ops::StatelessRandomUniformInt(ShapeVector(request),
                                          ops::Const(graph, ops::InitialValueSeed(graph, request.name, seed)),
                                          ops::Const(graph, ops::NumberTensor(request.dtype, minval)),
                                          ops::Const(graph, ops::NumberTensor(request.dtype, maxval)));
  };
}

Initializer VarianceScaling(double scale, FanMode mode, Distribution distribution, int64_t seed) {
  return [=](const InitializerRequest& request) {
    const FanCounts fans = request.fans ? *request.fans : ops::Fans(request.shape);
    const double n = mode == FanMode::kFanIn ? fans.in : mode == FanMode::kFanOut ? fans.out : (fans.in + fans.out) / 2;
    const double variance = scale / std::max(1.0, n);
    if (distribution == Distribution::kUniform) {
      const double limit = std::sqrt(3.0 * variance);
      return RandomUniform(-limit, limit, seed)(request);
    }
    if (distribution == Distribution::kUntruncatedNormal) return RandomNormal(0.0, std::sqrt(variance), seed)(request);
    // Standard deviation of a normal distribution cut at two of its own.
    constexpr double kTruncatedStddev = 0.87962566103423978;
    return TruncatedNormal(0.0, std::sqrt(variance) / kTruncatedStddev, seed)(request);
  };
}

Initializer GlorotUniform(int64_t seed) { return VarianceScaling(1.0, FanMode::kFanAvg, Distribution::kUniform, seed); }
Initializer GlorotNormal(int64_t seed) {
  return VarianceScaling(1.0, FanMode::kFanAvg, Distribution::kTruncatedNormal, seed);
}
Initializer HeNormal(int64_t seed) {
  return VarianceScaling(2.0, FanMode::kFanIn, Distribution::kTruncatedNormal, seed);
}
Initializer HeUniform(int64_t seed) { return VarianceScaling(2.0, FanMode::kFanIn, Distribution::kUniform, seed); }
Initializer LecunNormal(int64_t seed) {
  return VarianceScaling(1.0, FanMode::kFanIn, Distribution::kTruncatedNormal, seed);
}
Initializer LecunUniform(int64_t seed) { return VarianceScaling(1.0, FanMode::kFanIn, Distribution::kUniform, seed); }

namespace {

// x (a + b x'x + c (x'x)^2), which maps each singular value s of x to a s + b s^3 + c s^5 and keeps the singular
// vectors. Requires: x has no more columns than rows.
Output OddPolynomial(Output x, double a, double b, double c) {
  const Output square = ops::MatMul(x, x, true, false);
  Output factor = ops::Mul(square, b);
  if (c != 0) factor = ops::Add(factor, ops::Mul(ops::MatMul(square, square), c));
  return ops::Add(ops::Mul(x, a), ops::MatMul(x, factor));
}

}  // namespace

// The orthogonal factor u v' of a random normal matrix u s v'. Matrix products alone make it: they move all singular
// values s to 1. The first polynomial multiplies small values by 3.4 and keeps values between 0.7 and 1.2 there; after
// it has been applied 16 times, all that are above 1e-8 of the largest are in this range. The second one,
// (3 s - s^3) / 2, then squares their distance from 1 each time.
Initializer Orthogonal(double gain, int64_t seed) {
  return [=](const InitializerRequest& request) {
    const Shape& shape = request.shape;
    if (shape.rank() < 2) {
      throw InvalidArgumentError(
          StrCat("[ops/initializers] expected a shape of rank 2 or more for an orthogonal "
                 "matrix; got ",
                 shape, " for variable '", request.name, "'"));
    }
    const int64_t columns = shape.dim(shape.rank() - 1);
    const int64_t rows = shape.num_elements() / std::max<int64_t>(columns, 1);
    InitializerRequest matrix = request;
    matrix.shape = Shape{std::max(rows, columns), std::min(rows, columns)};
    Output x = RandomNormal(0.0, 1.0, seed)(matrix);
    x = ops::Div(x, ops::Sqrt(ops::Sum(ops::Square(x))));
    for (int i = 0; i < 16; ++i) x = OddPolynomial(x, 3.4445, -4.7750, 2.0315);
    for (int i = 0; i < 5; ++i) x = OddPolynomial(x, 1.5, -0.5, 0);
    if (gain != 1.0) x = ops::Mul(x, gain);
    if (rows < columns) x = ops::Transpose(x, {1, 0});
    return ops::Reshape(x, std::vector<int64_t>(shape.dims().begin(), shape.dims().end()));
  };
}

}  // namespace cohort::initializers
