#include "cohort/keras/callbacks/path_template.h"

#include <cctype>
#include <cmath>
#include <cstdio>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/monitor.h"

namespace cohort::keras {
namespace {

[[noreturn]] void Fail(const std::string& path_template, const std::string& what) {
  throw InvalidArgumentError(StrCat("[keras/callbacks] ", what, " in the file name '", path_template, "'"));
}

bool IsWhole(double value) { return std::abs(value) < 1e15 && value == std::floor(value); }

// `format` is "02d", ".4f", ...
std::string Formatted(const std::string& path_template, const std::string& format, double value) {
  if (format.empty()) return IsWhole(value) ? std::to_string(static_cast<long long>(value)) : PythonNumber(value);
  size_t i = 0;
  const auto skip_digits = [&] {
    while (i < format.size() && std::isdigit(static_cast<unsigned char>(format[i]))) ++i;
  };
  skip_digits();
  if (i < format.size() && format[i] == '.') {
    ++i;
    skip_digits();
  }
  const bool known = i + 1 == format.size() && std::string("defg").find(format[i]) != std::string::npos && i <= 6;
  if (!known || (format[i] == 'd' && format.find('.') != std::string::npos)) {
    Fail(path_template, StrCat("expected a format such as 02d or .4f; got '", format, "'"));
  }
  char text[512];
  const std::string numbers = format.substr(0, i);
  if (format[i] == 'd') {
    std::snprintf(text, sizeof text, ("%" + numbers + "lld").c_str(), static_cast<long long>(value));
  } else {
    std::snprintf(text, sizeof text, ("%" + numbers + format[i]).c_str(), value);
  }
  return text;
}

std::string Value(const std::string& path_template, const std::string& field, const Logs& values) {
  const size_t colon = field.find(':');
  const std::string name = field.substr(0, colon);
  const std::optional<double> value = FindLog(values, name);
  if (!value) {
    std::string known;
    for (const auto& [key, unused] : values) known += (known.empty() ? "" : ", ") + key;
    Fail(path_template, StrCat("expected one of {", known, "}; got {", name, "}"));
  }
  return Formatted(path_template, colon == std::string::npos ? "" : field.substr(colon + 1), *value);
}

}  // namespace

std::string FillIn(const std::string& path_template, const Logs& values) {
  std::string path;
  for (size_t i = 0; i < path_template.size(); ++i) {
    const char c = path_template[i];
    const bool doubled = i + 1 < path_template.size() && path_template[i + 1] == c;
    if ((c == '{' || c == '}') && doubled) {
      path += c;
      ++i;
    } else if (c == '{') {
      const size_t end = path_template.find('}', i);
      if (end == std::string::npos) Fail(path_template, "expected a closing brace");
      path += Value(path_template, path_template.substr(i + 1, end - i - 1), values);
      i = end;
    } else {
      path += c;
    }
  }
  return path;
}

}  // namespace cohort::keras
