#include "cohort/core/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>

namespace cohort {
namespace {

spdlog::level::level_enum LevelFromEnvironment() {
  const char* text = std::getenv("COHORT_LOG_LEVEL");
  return text == nullptr ? spdlog::level::info : spdlog::level::from_str(text);
}

spdlog::logger& Logger() {
  // Never destroyed: threads may log while the process ends.
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger("cohort", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%d %H:%M:%S.%f: %L %v");
    made->set_level(LevelFromEnvironment());
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

bool LogEnabled(LogLevel level) { return Logger().should_log(ToSpdlog(level)); }

void Log(LogLevel level, std::string_view component, const std::string& message) {
  Logger().log(ToSpdlog(level), "[{}] {}", component, message);
}

}  // namespace cohort
