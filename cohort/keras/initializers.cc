#include "cohort/keras/initializers.h"

#include <utility>
#include <vector>

#include "cohort/keras/names.h"
#include "cohort/keras/string_names.h"

namespace cohort::keras {
namespace {

using Maker = Initializer (*)();
const NameTable<Maker>& Initializers() {
  static const NameTable<Maker> table("initializer", [] {
    std::vector<std::pair<std::string, Maker>> entries = {
        {"Zeros", [] { return initializers::Zeros(); }},
        {"Ones", [] { return initializers::Ones(); }},
        {"Constant", [] { return initializers::Constant(); }},
        {"RandomNormal", [] { return initializers::RandomNormal(); }},
        {"RandomUniform", [] { return initializers::RandomUniform(); }},
        {"TruncatedNormal", [] { return initializers::TruncatedNormal(); }},
        {"VarianceScaling", [] { return initializers::VarianceScaling(); }},
        {"GlorotUniform", [] { return initializers::GlorotUniform(); }},
        {"GlorotNormal", [] { return initializers::GlorotNormal(); }},
        {"HeUniform", [] { return initializers::HeUniform(); }},
        {"HeNormal", [] { return initializers::HeNormal(); }},
        {"LecunUniform", [] { return initializers::LecunUniform(); }},
        {"LecunNormal", [] { return initializers::LecunNormal(); }},
    };
    for (size_t i = 0, classes = entries.size(); i < classes; ++i) {
      entries.emplace_back(SnakeCase(entries[i].first), entries[i].second);
    }
    return entries;
  }());
  return table;
}

}  // namespace

Initializer::Initializer(const std::string& name) { *this = Initializers().Find(name)(); }

Initializer::Initializer(std::string name, ops::Initializer function)
    : name_(std::move(name)), function_(std::move(function)) {}

namespace initializers {

Initializer Zeros() { return {"Zeros", ops::Zeros()}; }
Initializer Ones() { return {"Ones", ops::Ones()}; }
Initializer Constant(double value) { return {"Constant", ops::Constant(value)}; }
Initializer Constant(const Tensor& value) { return {"Constant", ops::Constant(value)}; }
Initializer RandomNormal(double mean, double stddev, int64_t seed) {
  return {"RandomNormal", ops::RandomNormal(mean, stddev, seed)};
}
Initializer RandomUniform(double minval, double maxval, int64_t seed) {
  return {"RandomUniform", ops::RandomUniform(minval, maxval, seed)};
}
Initializer TruncatedNormal(double mean, double stddev, int64_t seed) {
  return {"TruncatedNormal", ops::TruncatedNormal(mean, stddev, seed)};
}
Initializer VarianceScaling(double scale, ops::FanMode mode, ops::Distribution distribution, int64_t seed) {
  return {"VarianceScaling", ops::VarianceScaling(scale, mode, distribution, seed)};
}
Initializer GlorotUniform(int64_t seed) { return {"GlorotUniform", ops::GlorotUniform(seed)}; }
Initializer GlorotNormal(int64_t seed) { return {"GlorotNormal", ops::GlorotNormal(seed)}; }
Initializer HeUniform(int64_t seed) { return {"HeUniform", ops::HeUniform(seed)}; }
Initializer HeNormal(int64_t seed) { return {"HeNormal", ops::HeNormal(seed)}; }
Initializer LecunUniform(int64_t seed) { return {"LecunUniform", ops::LecunUniform(seed)}; }
Initializer LecunNormal(int64_t seed) { return {"LecunNormal", ops::LecunNormal(seed)}; }

}  // namespace initializers
}  // namespace cohort::keras
