// Writes log lines to stderr: `YYYY-MM-DD HH:MM:SS.uuuuuu: I [component] message`. The environment variable
// COHORT_LOG_LEVEL sets the lowest level that is written: debug, info (the default), warning, error or off.
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/str_cat.h"

namespace cohort {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Returns whether lines of this level are written. Thread-safe.
bool LogEnabled(LogLevel level);
// Writes one line if lines of this level are written. Thread-safe.
void Log(LogLevel level, std::string_view component, const std::string& message);

// The following functions build the message from `args` with StrCat, but only if it is written.
template <typename... Args>
void LogDebug(std::string_view component, const Args&... args) {
  if (LogEnabled(LogLevel::kDebug)) Log(LogLevel::kDebug, component, StrCat(args...));
}
template <typename... Args>
void LogInfo(std::string_view component, const Args&... args) {
  if (LogEnabled(LogLevel::kInfo)) Log(LogLevel::kInfo, component, StrCat(args...));
}
template <typename... Args>
void LogWarning(std::string_view component, const Args&... args) {
  if (LogEnabled(LogLevel::kWarning)) Log(LogLevel::kWarning, component, StrCat(args...));
}
template <typename... Args>
void LogError(std::string_view component, const Args&... args) {
  if (LogEnabled(LogLevel::kError)) Log(LogLevel::kError, component, StrCat(args...));
}

}  // namespace cohort
