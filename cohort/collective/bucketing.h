// Decides which gradients are reduced together. A pure function makes the decision.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/dtype.h"

namespace cohort::collective {

// The facts about one gradient on which its bucket depends.
struct GradientSize {
  DType dtype = DType::kFloat32;
  int64_t bytes = -1;  // -1: not known before the step
};

// Gradients that are reduced by one collective.
struct Bucket {
  DType dtype = DType::kInvalid;
  std::vector<int> gradients;  // positions in the argument of BucketGradients, ascending
};

// The largest size of a bucket if bytes_per_pack is 0. Larger packs need fewer messages. Smaller packs leave less to
// reduce after the last gradient is ready, and a step waits for this rest. With the network of examples/fashion_mnist
// on two processes this wait is 1 ms on loopback and 5 ms through 1 Gbit/s; with packs of 4 MiB it is 3 ms and 12 ms.
inline constexpr int64_t kBytesPerPack = 1024 * 1024;

// Puts `gradients` into buckets. Requires: they are in the order in which the backward pass makes them. The gradients
// of a bucket have the same dtype, and together at most bytes_per_pack bytes. A gradient gets a bucket of its own, and
// is then reduced in its own memory, if its size is half of that or more, or unknown. The buckets are ordered by their
// last gradients, which is the order in which they become ready. Throws InvalidArgumentError for a negative
// bytes_per_pack.
std::vector<Bucket> BucketGradients(const std::vector<GradientSize>& gradients, int64_t bytes_per_pack = 0);

}  // namespace cohort::collective
