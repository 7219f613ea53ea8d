// ConfigReader: the configuration of one object in a Keras file, option by option. Internal to keras/.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "cohort/keras/files/config.h"
#include "cohort/keras/names.h"

namespace cohort::keras {

// Every option has to be asked for: Finish throws for those that were not. Throws InvalidArgumentError, with option and
// class, for values of another type.
class ConfigReader {
 public:
  // `what`: "optimizer", for errors. `value`: {"class_name", "config", ...}.
  ConfigReader(const char* what, const ConfigValue& value);

  const std::string& class_name() const { return class_name_; }

  // Where the value is missing or null nothing is read.
  void ReadBy(const char* name, const std::function<void(const ConfigValue&)>& read);
  void Read(const char* name, bool& to);
  void Read(const char* name, int& to);
  void Read(const char* name, int64_t& to);
  void Read(const char* name, double& to);
  void Read(const char* name, std::optional<double>& to);
  void Read(const char* name, std::string& to);
  // Throws InvalidArgumentError where the value is missing.
  const ConfigValue& Required(const char* name);
  void Ignore(const char* name) { asked_.insert(name); }
  // Where Keras has more than we have: the default alone.
  void OnlyDefault(const char* name, const ConfigValue& value);
  void Finish() const;

 private:
  const char* const what_;
  const std::string class_name_;
  const ConfigValue config_;
  std::set<std::string> asked_;
};

// By a name alone, or the name of a function in Keras's form for functions; "" otherwise.
std::string NameIn(const ConfigValue& value);

template <typename Result>
using ConfigMakers = NameTable<std::function<Result(ConfigReader&)>>;

// Reads the whole object by the maker of its class.
template <typename Result>
Result MakeFromConfig(const char* what, const ConfigMakers<Result>& makers, const ConfigValue& value) {
  ConfigReader reader(what, value);
  Result result = makers.Find(reader.class_name())(reader);
  reader.Finish();
  return result;
}

}  // namespace cohort::keras
