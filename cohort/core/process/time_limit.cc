#include "cohort/core/process/time_limit.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {

std::chrono::milliseconds TimeLimit(const std::optional<std::chrono::milliseconds>& option, const char* variable,
                                    std::chrono::milliseconds otherwise) {
  if (option) return *option;
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  constexpr double kMost = 1e9;  // 30 years, which milliseconds can hold
  double seconds = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, seconds);
  if (error != std::errc() || stop != end || !(seconds >= 0 && seconds <= kMost)) {
    throw InvalidArgumentError(
        StrCat("[environment] expected seconds from 0 (no limit) to ", kMost, " in ", variable, "; got '", text, "'"));
  }
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

std::chrono::milliseconds ProgressLimit(const std::optional<std::chrono::milliseconds>& option) {
  if (option && option->count() < 0) {
    throw InvalidArgumentError(
        StrCat("[options] expected a progress_limit of at least 0 (0: no limit); got ", option->count(), " ms"));
  }
  return std::min(TimeLimit(option, "COHORT_PROGRESS_LIMIT", std::chrono::minutes(10)), kLongestLimit);
}

}  // namespace cohort
