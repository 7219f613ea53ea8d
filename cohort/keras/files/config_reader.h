// ConfigReader: reads the configuration of one object in a Keras file, option by option. Internal to keras/.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "cohort/keras/files/config.h"
#include "cohort/keras/names.h"

namespace cohort::keras {

// Reads one object. The caller reads or ignores each option by name, and then calls Finish. The functions throw
// InvalidArgumentError that names option and class if a value has another type. Used by one thread.
class ConfigReader {
 public:
  // `what` is the kind of the object ("optimizer"), for errors. `value` is {"class_name", "config", ...}.
  ConfigReader(const char* what, const ConfigValue& value);

  const std::string& class_name() const { return class_name_; }

  // Read stores the option `name` in `to`. ReadBy gives the option to `read`, which stores it; it is for options of
  // other types. If the option is missing or null, Read leaves `to` unchanged, and ReadBy does not call `read`.
  void ReadBy(const char* name, const std::function<void(const ConfigValue&)>& read);
  void Read(const char* name, bool& to);
  void Read(const char* name, int& to);
  void Read(const char* name, int64_t& to);
  void Read(const char* name, double& to);
  void Read(const char* name, std::optional<double>& to);
  void Read(const char* name, std::optional<int64_t>& to);
  void Read(const char* name, std::string& to);
  // Returns true if the option is there and is null. Does not count as reading it.
  bool IsNull(const char* name) const;
  // Returns the value. Throws InvalidArgumentError if it is missing or null.
  const ConfigValue& Required(const char* name);
  void Ignore(const char* name) { asked_.insert(name); }
  // Reads an option for which Cohort has only Keras's default, which is `value`. Throws InvalidArgumentError if the
  // option is neither missing nor null nor equal to `value`.
  void OnlyDefault(const char* name, const ConfigValue& value);
  // Throws InvalidArgumentError if the configuration has an option that was neither read nor ignored.
  void Finish() const;

 private:
  const char* const what_;
  const std::string class_name_;
  const ConfigValue config_;
  std::set<std::string> asked_;
};

// Returns the name that `value` has: `value` itself if it is a text, or the text "config" of an object (in this form
// Keras writes a function). Returns "" for other values.
std::string NameIn(const ConfigValue& value);

template <typename Result>
using ConfigMakers = NameTable<std::function<Result(ConfigReader&)>>;

// Makes an object: finds the maker of its class, calls the maker, and checks that the maker has read or ignored all
// options. Throws InvalidArgumentError for an unknown class, and what the maker and Finish throw.
template <typename Result>
Result MakeFromConfig(const char* what, const ConfigMakers<Result>& makers, const ConfigValue& value) {
  ConfigReader reader(what, value);
  Result result = makers.Find(reader.class_name())(reader);
  reader.Finish();
  return result;
}

}  // namespace cohort::keras
