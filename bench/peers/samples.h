// Statistics of samples, for the programs that measure. It uses only C++17 and the standard library, because peers are
// built by themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

// Returns the sample below which `fraction` of all samples are. Requires: there is at least one sample.
inline double Quantile(std::vector<double> samples, double fraction) {
  const size_t at = std::min(samples.size() - 1, static_cast<size_t>(fraction * static_cast<double>(samples.size())));
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(at), samples.end());
  return samples[at];
}

inline double Median(std::vector<double> samples) { return Quantile(std::move(samples), 0.5); }
