// Initializer: how the initial values of a layer's weights are made, with Keras 3's names and defaults.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/files/config.h"
#include "cohort/ops/initializers.h"

namespace cohort::keras {

// Makes the initial value of a weight. Immutable, thread-safe and cheap to copy. A default Initializer is not valid().
class COHORT_EXPORT Initializer {
 public:
  Initializer() = default;
  // Makes an initializer by Keras's name: "glorot_uniform", "GlorotUniform", "zeros", ... Throws InvalidArgumentError
  // that lists all names if there is no such initializer.
  Initializer(const char* name) : Initializer(std::string(name)) {}
  Initializer(const std::string& name);
  // Makes an initializer of the program's own. `name` is used in messages.
  Initializer(std::string name, ops::Initializer function);
  // Makes one of Keras's initializers: the class `name` with the options `config`. Used by the functions below.
  Initializer(std::string name, ops::Initializer function, ConfigValue::Object config);

  bool valid() const { return function_ != nullptr; }
  const std::string& name() const { return name_; }  // "GlorotUniform"
  const ops::Initializer& function() const { return function_; }
  // Returns the form in Keras's files, or null if not valid(); serialization.h does the reverse. Throws
  // UnimplementedError for an initializer of the program's own.
  ConfigValue Serialized() const;

 private:
  std::string name_;
  ops::Initializer function_;
  ConfigValue serialized_;  // null for an initializer of the program's own
};

namespace initializers {

// Random numbers depend on the name and the shape of the weight, on the model's seed and on `seed`. Two weights for
// which these four are equal get the same numbers.
COHORT_EXPORT Initializer Zeros();
COHORT_EXPORT Initializer Ones();
COHORT_EXPORT Initializer Constant(double value = 0.0);
COHORT_EXPORT Initializer Constant(const Tensor& value);
COHORT_EXPORT Initializer RandomNormal(double mean = 0.0, double stddev = 0.05, int64_t seed = 0);
COHORT_EXPORT Initializer RandomUniform(double minval = -0.05, double maxval = 0.05, int64_t seed = 0);
COHORT_EXPORT Initializer TruncatedNormal(double mean = 0.0, double stddev = 0.05, int64_t seed = 0);
COHORT_EXPORT Initializer VarianceScaling(double scale = 1.0, ops::FanMode mode = ops::FanMode::kFanIn,
                                          ops::Distribution distribution = ops::Distribution::kTruncatedNormal,
                                          int64_t seed = 0);
COHORT_EXPORT Initializer GlorotUniform(int64_t seed = 0);
COHORT_EXPORT Initializer GlorotNormal(int64_t seed = 0);
COHORT_EXPORT Initializer HeUniform(int64_t seed = 0);
COHORT_EXPORT Initializer HeNormal(int64_t seed = 0);
COHORT_EXPORT Initializer LecunUniform(int64_t seed = 0);
COHORT_EXPORT Initializer LecunNormal(int64_t seed = 0);
// A matrix with orthogonal columns of length `gain`, or with such rows if it has fewer rows than columns.
COHORT_EXPORT Initializer Orthogonal(double gain = 1.0, int64_t seed = 0);

}  // namespace initializers
}  // namespace cohort::keras
