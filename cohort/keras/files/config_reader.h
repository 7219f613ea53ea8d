// ConfigReader: reads the configuration of one object in a Keras file, option by option. Internal to keras/.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "cohort/keras/files/config.h"
#include "cohort/keras/names.h"

namespace cohort::keras {

// Reads one object. Every option must be read or ignored: Finish throws if the configuration has other options. Throws
// InvalidArgumentError, with option and class, for a value of another type. One thread.
class ConfigReader {
 public:
  // `what` is the kind of the object ("optimizer"), for errors. `value` is {"class_name", "config", ...}.
  ConfigReader(const char* what, const ConfigValue& value);

  const std::string& class_name() const { return class_name_; }

  // These functions do nothing if the value is missing or null.
  void ReadBy(const char* name, const std::function<void(const ConfigValue&)>& read);
  void Read(const char* name, bool& to);
  void Read(const char* name, int& to);
  void Read(const char* name, int64_t& to);
  void Read(const char* name, double& to);
  void Read(const char* name, std::optional<double>& to);
  void Read(const char* name, std::string& to);
  // Throws InvalidArgumentError if the value is missing.
  const ConfigValue& Required(const char* name);
  void Ignore(const char* name) { asked_.insert(name); }
  // Reads an option for which Cohort has only Keras's default. Throws if the file has another value.
  void OnlyDefault(const char* name, const ConfigValue& value);
  // Throws InvalidArgumentError if the configuration has an option that was neither read nor ignored.
  void Finish() const;

 private:
  const char* const what_;
  const std::string class_name_;
  const ConfigValue config_;
  std::set<std::string> asked_;
};

// Returns the name in `value`, which may be a text or a function in Keras's form. Otherwise returns "".
std::string NameIn(const ConfigValue& value);

template <typename Result>
using ConfigMakers = NameTable<std::function<Result(ConfigReader&)>>;

// Reads a whole object, by the maker of its class.
template <typename Result>
Result MakeFromConfig(const char* what, const ConfigMakers<Result>& makers, const ConfigValue& value) {
  ConfigReader reader(what, value);
  Result result = makers.Find(reader.class_name())(reader);
  reader.Finish();
  return result;
}

}  // namespace cohort::keras
