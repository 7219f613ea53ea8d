// Initializers of layers' weights, with Keras 3's names and defaults.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/files/config.h"
#include "cohort/ops/initializers.h"

namespace cohort::keras {

// Immutable, cheap to copy. Not valid() where an option leaves it out ("no initializer given").
class COHORT_EXPORT Initializer {
 public:
  Initializer() = default;
  // By Keras's string name: "glorot_uniform", "GlorotUniform", "zeros", ... Throws InvalidArgumentError that lists the
  // names for one that it does not know.
  Initializer(const char* name) : Initializer(std::string(name)) {}
  Initializer(const std::string& name);
  // One of the program's own. `name` stands in messages.
  Initializer(std::string name, ops::Initializer function);
  // One that Keras has, as the class `name` with these options.
  Initializer(std::string name, ops::Initializer function, ConfigValue::Object config);

  bool valid() const { return function_ != nullptr; }
  const std::string& name() const { return name_; }  // "GlorotUniform"
  const ops::Initializer& function() const { return function_; }
  // As Keras's files hold it, null where not valid(); serialization.h has the reverse. Throws UnimplementedError for an
  // initializer of the program's own.
  ConfigValue Serialized() const;

 private:
  std::string name_;
  ops::Initializer function_;
  ConfigValue serialized_;  // null: of the program's own
};

namespace initializers {

// `seed`: two weights of one name and shape get the same numbers unless it differs.
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

}  // namespace initializers
}  // namespace cohort::keras
