// TimeLimit: a limit that an option, a variable of the environment or a default sets.
#pragma once

#include <chrono>
#include <optional>

namespace cohort {

// Returns `option` if it is set. Otherwise returns as many seconds as the environment's `variable` says, or `otherwise`
// if that variable is not set or empty. Throws InvalidArgumentError, with the variable and its value, if the value is
// not a number of seconds from 0 to 1e9.
std::chrono::milliseconds TimeLimit(const std::optional<std::chrono::milliseconds>& option, const char* variable,
                                    std::chrono::milliseconds otherwise);

// Returns the limit without progress of steps and collectives: `option`, else COHORT_PROGRESS_LIMIT, else 10 minutes.
// Zero means that there is no limit. Throws what TimeLimit throws, and InvalidArgumentError if `option` is negative.
std::chrono::milliseconds ProgressLimit(const std::optional<std::chrono::milliseconds>& option);

}  // namespace cohort
