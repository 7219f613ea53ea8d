// The initializers of Keras: the table of their names, the functions that make them, and their form in files.
#include "cohort/keras/layers/initializers.h"

#include <utility>
#include <vector>

#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/layers/layer_config.h"
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
        {"Orthogonal", [] { return initializers::Orthogonal(); }},
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

Initializer::Initializer(std::string name, ops::Initializer function, ConfigValue::Object config)
    : name_(std::move(name)),
      function_(std::move(function)),
      serialized_(SerializedObject("keras.initializers", name_, std::move(config))) {}

ConfigValue Initializer::Serialized() const {
  if (!valid() || !serialized_.is_null()) return serialized_;
  throw UnimplementedError(StrCat("[keras/initializers] '", name_,
                                  "' is an initializer of the program's own, which a file cannot describe"));
}

namespace initializers {
namespace {

ConfigValue SeedInFile(int64_t seed) { return seed == 0 ? ConfigValue() : ConfigValue(seed); }

ConfigValue::Object NormalInFile(double mean, double stddev, int64_t seed) {
  return {{"seed", SeedInFile(seed)}, {"mean", mean}, {"stddev", stddev}};
}

// For classes whose name says everything but the seed.
Initializer Scaled(const char* name, ops::Initializer function, int64_t seed) {
  return {name, std::move(function), {{"seed", SeedInFile(seed)}}};
}

const char* NameOf(ops::FanMode mode) {
  switch (mode) {
    case ops::FanMode::kFanIn: return "fan_in";
    case ops::FanMode::kFanOut: return "fan_out";
    default: return "fan_avg";
  }
}

const char* NameOf(ops::Distribution distribution) {
  switch (distribution) {
    case ops::Distribution::kUniform: return "uniform";
    case ops::Distribution::kTruncatedNormal: return "truncated_normal";
    default: return "untruncated_normal";
  }
}

}  // namespace

Initializer Zeros() { return {"Zeros", cohort::initializers::Zeros(), {}}; }
Initializer Ones() { return {"Ones", cohort::initializers::Ones(), {}}; }
Initializer Constant(double value) { return {"Constant", cohort::initializers::Constant(value), {{"value", value}}}; }
Initializer Constant(const Tensor& value) { return {"Constant", cohort::initializers::Constant(value)}; }
Initializer RandomNormal(double mean, double stddev, int64_t seed) {
  return {"RandomNormal", cohort::initializers::RandomNormal(mean, stddev, seed), NormalInFile(mean, stddev, seed)};
}
Initializer RandomUniform(double minval, double maxval, int64_t seed) {
  return {"RandomUniform",
          cohort::initializers::RandomUniform(minval, maxval, seed),
          {{"seed", SeedInFile(seed)}, {"minval", minval}, {"maxval", maxval}}};
}
Initializer TruncatedNormal(double mean, double stddev, int64_t seed) {
  return {"TruncatedNormal", cohort::initializers::TruncatedNormal(mean, stddev, seed),
          NormalInFile(mean, stddev, seed)};
}
Initializer VarianceScaling(double scale, ops::FanMode mode, ops::Distribution distribution, int64_t seed) {
  return {
      "VarianceScaling",
      cohort::initializers::VarianceScaling(scale, mode, distribution, seed),
      {{"seed", SeedInFile(seed)}, {"scale", scale}, {"mode", NameOf(mode)}, {"distribution", NameOf(distribution)}}};
}
Initializer GlorotUniform(int64_t seed) {
  return Scaled("GlorotUniform", cohort::initializers::GlorotUniform(seed), seed);
}
Initializer GlorotNormal(int64_t seed) {
  return Scaled("GlorotNormal", cohort::initializers::GlorotNormal(seed), seed);
}
Initializer HeUniform(int64_t seed) { return Scaled("HeUniform", cohort::initializers::HeUniform(seed), seed); }
Initializer HeNormal(int64_t seed) { return Scaled("HeNormal", cohort::initializers::HeNormal(seed), seed); }
Initializer LecunUniform(int64_t seed) {
  return Scaled("LecunUniform", cohort::initializers::LecunUniform(seed), seed);
}
Initializer LecunNormal(int64_t seed) { return Scaled("LecunNormal", cohort::initializers::LecunNormal(seed), seed); }
Initializer Orthogonal(double gain, int64_t seed) {
  return {"Orthogonal", cohort::initializers::Orthogonal(gain, seed), {{"seed", SeedInFile(seed)}, {"gain", gain}}};
}

}  // namespace initializers
namespace {

// Which axes count as fans: ours follow from the shape.
void ReadAxes(ConfigReader& reader) {
  reader.OnlyDefault("input_axes", nullptr);
  reader.OnlyDefault("output_axes", nullptr);
}

template <Initializer (*kMake)(int64_t)>
Initializer ReadScaled(ConfigReader& reader) {
  ReadAxes(reader);
  return kMake(ReadSeed(reader));
}

template <Initializer (*kMake)(double, double, int64_t)>
Initializer ReadPair(ConfigReader& reader, const char* first_name, double first, const char* second_name,
                     double second) {
  reader.Read(first_name, first);
  reader.Read(second_name, second);
  return kMake(first, second, ReadSeed(reader));
}

Initializer ReadConstant(ConfigReader& reader) {
  double value = 0;
  reader.Read("value", value);
  return initializers::Constant(value);
}

Initializer ReadOrthogonal(ConfigReader& reader) {
  double gain = 1.0;
  reader.Read("gain", gain);
  return initializers::Orthogonal(gain, ReadSeed(reader));
}

Initializer ReadVarianceScaling(ConfigReader& reader) {
  double scale = 1.0;
  ops::FanMode mode = ops::FanMode::kFanIn;
  ops::Distribution distribution = ops::Distribution::kTruncatedNormal;
  reader.Read("scale", scale);
  reader.ReadBy("mode", [&](const ConfigValue& value) {
    static const NameTable<ops::FanMode> table(
        "mode",
        {{"fan_in", ops::FanMode::kFanIn}, {"fan_out", ops::FanMode::kFanOut}, {"fan_avg", ops::FanMode::kFanAvg}});
    mode = table.Find(value.AsString());
  });
  reader.ReadBy("distribution", [&](const ConfigValue& value) {
    static const NameTable<ops::Distribution> table("distribution",
                                                    {{"uniform", ops::Distribution::kUniform},
                                                     {"truncated_normal", ops::Distribution::kTruncatedNormal},
                                                     {"untruncated_normal", ops::Distribution::kUntruncatedNormal}});
    distribution = table.Find(value.AsString());
  });
  ReadAxes(reader);
  return initializers::VarianceScaling(scale, mode, distribution, ReadSeed(reader));
}

}  // namespace

Initializer DeserializeInitializer(const ConfigValue& value) {
  if (value.is_null()) return {};
  const std::string name = NameIn(value);
  if (!name.empty()) return name;
  using namespace initializers;
  static const ConfigMakers<Initializer> makers(
      "initializer",
      {{"Zeros", [](ConfigReader&) { return Zeros(); }},
       {"Ones", [](ConfigReader&) { return Ones(); }},
       {"Constant", ReadConstant},
       {"RandomNormal", [](ConfigReader& r) { return ReadPair<RandomNormal>(r, "mean", 0.0, "stddev", 0.05); }},
       {"RandomUniform", [](ConfigReader& r) { return ReadPair<RandomUniform>(r, "minval", -0.05, "maxval", 0.05); }},
       {"TruncatedNormal", [](ConfigReader& r) { return ReadPair<TruncatedNormal>(r, "mean", 0.0, "stddev", 0.05); }},
       {"VarianceScaling", ReadVarianceScaling},
       {"GlorotUniform", ReadScaled<GlorotUniform>},
       {"GlorotNormal", ReadScaled<GlorotNormal>},
       {"HeUniform", ReadScaled<HeUniform>},
       {"HeNormal", ReadScaled<HeNormal>},
       {"LecunUniform", ReadScaled<LecunUniform>},
       {"LecunNormal", ReadScaled<LecunNormal>},
       {"Orthogonal", ReadOrthogonal}});
  return MakeFromConfig("initializer", makers, value);
}

}  // namespace cohort::keras
