// Splits a list that a user wrote: StrSplit("a:1,b:2", ',').
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort {

// Returns the parts between the separators. Parts may be empty. An empty text has one part, which is empty.
inline std::vector<std::string> StrSplit(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.emplace_back(text);
  return parts;
}

}  // namespace cohort
