#include "cohort/keras/files/config_reader.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {

ConfigReader::ConfigReader(const char* what, const ConfigValue& value)
    : what_(what), class_name_(value.At("class_name").AsString()), config_(value.At("config")) {
  config_.AsObject();
}

void ConfigReader::ReadBy(const char* name, const std::function<void(const ConfigValue&)>& read) {
  asked_.insert(name);
  const ConfigValue* found = config_.Find(name);
  if (found == nullptr || found->is_null()) return;
  try {
    read(*found);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(StrCat(error.what(), " (", name, " of the ", what_, " ", class_name_, ")"));
  }
}

void ConfigReader::Read(const char* name, bool& to) {
  ReadBy(name, [&](const ConfigValue& value) { to = value.AsBool(); });
}
void ConfigReader::Read(const char* name, int& to) {
  ReadBy(name, [&](const ConfigValue& value) {
    const int64_t number = value.AsInt();
    if (!std::in_range<int>(number)) {
      throw InvalidArgumentError(StrCat("[keras/serialization] expected a number of 32 bits; got ", number));
    }
    to = static_cast<int>(number);
  });
}
void ConfigReader::Read(const char* name, int64_t& to) {
  ReadBy(name, [&](const ConfigValue& value) { to = value.AsInt(); });
}
void ConfigReader::Read(const char* name, double& to) {
  ReadBy(name, [&](const ConfigValue& value) { to = value.AsDouble(); });
}
void ConfigReader::Read(const char* name, std::optional<double>& to) {
  ReadBy(name, [&](const ConfigValue& value) { to = value.AsDouble(); });
}
void ConfigReader::Read(const char* name, std::optional<int64_t>& to) {
  ReadBy(name, [&](const ConfigValue& value) { to = value.AsInt(); });
}
void ConfigReader::Read(const char* name, std::string& to) {
  ReadBy(name, [&](const ConfigValue& value) { to = value.AsString(); });
}

bool ConfigReader::IsNull(const char* name) const {
  const ConfigValue* found = config_.Find(name);
  return found != nullptr && found->is_null();
}

const ConfigValue& ConfigReader::Required(const char* name) {
  asked_.insert(name);
  const ConfigValue* found = config_.Find(name);
  if (found != nullptr && !found->is_null()) return *found;
  throw InvalidArgumentError(
      StrCat("[keras/serialization] expected a ", what_, " ", class_name_, " with '", name, "'; it has none"));
}

void ConfigReader::OnlyDefault(const char* name, const ConfigValue& value) {
  ReadBy(name, [&](const ConfigValue& found) {
    if (found.ToJson() == value.ToJson()) return;
    throw InvalidArgumentError(StrCat("[keras/serialization] expected ", value.ToJson(),
                                      ", since others are not implemented; got ", found.ToJson()));
  });
}

void ConfigReader::Finish() const {
  for (const auto& [name, value] : config_.AsObject()) {
    if (asked_.count(name) > 0) continue;
    throw InvalidArgumentError(StrCat("[keras/serialization] expected a ", what_, " ", class_name_,
                                      " with options that are known; got '", name, "'"));
  }
}

std::string NameIn(const ConfigValue& value) {
  if (value.is_string()) return value.AsString();
  const ConfigValue* config = value.Find("config");
  return config != nullptr && config->is_string() ? config->AsString() : "";
}

}  // namespace cohort::keras
