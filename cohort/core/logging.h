// Log lines to stderr: `YYYY-MM-DD HH:MM:SS.uuuuuu: I [component] message`. COHORT_LOG_LEVEL = debug, info
// (default), warning, error or off.
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/str_cat.h"

namespace cohort {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

bool LogEnabled(LogLevel level);
// Thread-safe; one line a call.
void Log(LogLevel level, std::string_view component, const std::string& message);

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
