#include "cohort/collective/gradient_reduction.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "cohort/collective/bucketing.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/join.h"

namespace cohort::collective {
namespace {

void Check(const std::vector<std::vector<Output>>& replicas, const GradientReduction& how) {
  if (!how.devices.empty() && how.devices.size() != replicas.size()) {
    throw InvalidArgumentError(
        StrCat("[collective] expected the devices of ", replicas.size(), " replicas; got ", how.devices.size()));
  }
  for (size_t r = 1; r < replicas.size(); ++r) {
    if (replicas[r].size() != replicas[0].size()) {
      throw InvalidArgumentError(StrCat("[collective] replica ", r, " has ", replicas[r].size(),
                                        " gradients, replica 0 has ", replicas[0].size()));
    }
    for (size_t i = 0; i < replicas[r].size(); ++i) {
      const Output& one = replicas[r][i];
      const Output& first = replicas[0][i];
      if (one.dtype() == first.dtype() && one.shape() == first.shape()) continue;
      throw InvalidArgumentError(StrCat("[collective] gradient ", i, " is ", one.dtype(), one.shape(), " at replica ",
                                        r, " ('", one.name(), "'), ", first.dtype(), first.shape(), " at replica 0 ('",
                                        first.name(), "')"));
    }
  }
}

GradientSize SizeOf(const Output& gradient) {
  const Shape& shape = gradient.shape();
  if (!shape.IsFullyDefined()) return {gradient.dtype(), -1};
  return {gradient.dtype(), shape.num_elements() * static_cast<int64_t>(DTypeSize(gradient.dtype()))};
}

// The values that one replica gets for the gradients of one bucket.
std::vector<Output> ReduceBucket(const std::vector<Output>& gradients, const GradientReduction& how,
                                 const ops::CollectiveKeys& keys) {
  const std::string name = StrCat("gradients/bucket_", keys.instance_key);
  if (gradients.size() == 1) return {ops::CollectiveReduce(gradients[0], keys, "Add", how.final_op, name)};
  std::vector<Output> flat;
  std::vector<int64_t> sizes;
  for (const Output& gradient : gradients) {
    flat.push_back(ops::Reshape(gradient, {-1}));
    sizes.push_back(gradient.shape().num_elements());
  }
  const Output sum = ops::CollectiveReduce(ops::Concat(flat, 0), keys, "Add", how.final_op, name);
  std::vector<Output> parts = ops::SplitV(sum, sizes, 0);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::vector<int64_t> dims(gradients[i].shape().dims().begin(), gradients[i].shape().dims().end());
    parts[i] = ops::Reshape(parts[i], dims);
  }
  return parts;
}

}  // namespace

std::vector<std::vector<Output>> ReduceGradients(const std::vector<std::vector<Output>>& replicas,
                                                 const GradientReduction& how) {
  Check(replicas, how);
  std::vector<std::vector<Output>> reduced = replicas;
  if (replicas.empty() || replicas[0].empty()) return reduced;
  std::vector<size_t> order(replicas[0].size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return replicas[0][a].node->id() < replicas[0][b].node->id(); });
  std::vector<GradientSize> sizes;
  for (const size_t i : order) sizes.push_back(SizeOf(replicas[0][i]));
  Graph& graph = replicas[0][0].graph();
  ops::CollectiveKeys keys = how.keys;
  for (const Bucket& bucket : BucketGradients(sizes, how.bytes_per_pack)) {
    keys.instance_key = ops::NextInstanceKey(graph);
    for (size_t r = 0; r < replicas.size(); ++r) {
      std::optional<DeviceScope> device;
      if (!how.devices.empty()) device.emplace(graph, how.devices[r]);
      std::vector<Output> gradients;
      for (const int i : bucket.gradients) gradients.push_back(replicas[r][order[static_cast<size_t>(i)]]);
      const std::vector<Output> sums = ReduceBucket(gradients, how, keys);
      for (size_t i = 0; i < sums.size(); ++i) reduced[r][order[static_cast<size_t>(bucket.gradients[i])]] = sums[i];
    }
  }
  return reduced;
}

}  // namespace cohort::collective
