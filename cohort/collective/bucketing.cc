#include "cohort/collective/bucketing.h"

#include <algorithm>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {

std::vector<Bucket> BucketGradients(const std::vector<GradientSize>& gradients, int64_t bytes_per_pack) {
  if (bytes_per_pack < 0) {
    throw InvalidArgumentError(StrCat("[collective] expected bytes_per_pack from 0; got ", bytes_per_pack));
  }
  const int64_t limit = bytes_per_pack > 0 ? bytes_per_pack : kBytesPerPack;
  std::vector<Bucket> buckets;
  struct Open {
    std::vector<int> gradients;
    int64_t bytes = 0;
  };
  std::map<DType, Open> open;
  const auto close = [&](DType dtype) {
    Open& one = open[dtype];
    if (!one.gradients.empty()) buckets.push_back({dtype, std::move(one.gradients)});
    one = {};
  };
  for (int i = 0; i < static_cast<int>(gradients.size()); ++i) {
    const GradientSize& gradient = gradients[static_cast<size_t>(i)];
    if (gradient.bytes < 0 || gradient.bytes >= (limit + 1) / 2) {
      buckets.push_back({gradient.dtype, {i}});
      continue;
    }
    Open& one = open[gradient.dtype];
    if (one.bytes + gradient.bytes > limit) close(gradient.dtype);
    one.gradients.push_back(i);
    one.bytes += gradient.bytes;
  }
  for (const auto& [dtype, one] : open) close(dtype);
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const Bucket& a, const Bucket& b) { return a.gradients.back() < b.gradients.back(); });
  return buckets;
}

}  // namespace cohort::collective
