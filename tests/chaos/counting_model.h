// CountingModel: a training graph whose variables count the steps that were applied to them. So a test can see from
// outside what happened to each step.
//
//   w_i: [size] f32 on a parameter server, 0 at first; loss = sum_i sum(w_i * x), so that d loss / d w_i = x;
//   one step with x = 1: w_i -= kLearningRate, then global_step += 1.
//
// With two parameter servers global_step, w_1, w_3, ... are on ps/0 and w_0, w_2, ... on ps/1 (round robin).
#pragma once

#include <vector>

#include "cohort/cohort.h"

namespace cohort::testing {

inline constexpr float kLearningRate = 0.5f;  // a power of two: sums of it are exact

struct CountingModel {
  // Builds the graph as worker `worker` of the cluster builds it.
  CountingModel(const ClusterSpec& cluster, int worker, int variables, int64_t size);

  Tensor Ones() const;
  // Returns the number of steps that were applied to a variable with this value. Throws InternalError if its elements
  // differ, or if they are not a whole number of steps.
  static int64_t Applied(const Tensor& value);

  Graph graph;
  int64_t size;
  Output x;  // [size] f32, fed
  std::vector<ops::Variable> weights;
  ops::Variable global_step;
  Output loss;  // scalar f32
  Node* train;
};

}  // namespace cohort::testing
