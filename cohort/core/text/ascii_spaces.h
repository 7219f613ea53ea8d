// White space of ASCII: a space, \t, \n, \v, \f and \r, whatever the locale is.
#pragma once

#include <string_view>

namespace cohort {

inline constexpr std::string_view kSpaces = " \t\n\v\f\r";

// Returns the text from the first byte that is no white space on.
inline std::string_view WithoutLeadingSpaces(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  return begin == text.npos ? std::string_view() : text.substr(begin);
}
// Returns the text without white space at its begin and end.
inline std::string_view WithoutSpacesAround(std::string_view text) {
  text = WithoutLeadingSpaces(text);
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

}  // namespace cohort
