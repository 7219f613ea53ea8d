#include "cohort/core/text/nearest_names.h"

#include <algorithm>
#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort {

size_t EditDistance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

std::vector<std::string> NearestNames(std::string_view name, const std::vector<std::string>& known, size_t count) {
  std::vector<std::pair<size_t, std::string>> close;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(name, candidate);
    if (distance <= 1 + name.size() / 3) close.emplace_back(distance, candidate);
  }
  std::sort(close.begin(), close.end());
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min(close.size(), count); ++i) nearest.push_back(close[i].second);
  return nearest;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string> nearest = NearestNames(name, known);
  return nearest.empty() ? "" : StrCat("; did you mean ", StrJoin(nearest, ", "), "?");
}

}  // namespace cohort
