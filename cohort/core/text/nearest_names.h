// Suggestions for misspelt names in error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

// Returns Levenshtein's distance, with lower and upper case taken as equal: how many letters have to be changed, added
// or removed to make `a` to `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns those of `known` that `name` may have meant, the nearest first, at most `count`: their distance is at most 1
// + a third of the name's length.
std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string>& known, size_t count = 3);

// Returns "; did you mean A, B?" for an error message; "" if no name is near.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& known);

}  // namespace cohort
