#include "tests/chaos/counting_model.h"

#include <cmath>

#include "cohort/core/str_cat.h"

namespace cohort::testing {

CountingModel::CountingModel(const ClusterSpec& cluster, int worker, int variables, int64_t size) : size(size) {
  const DeviceScope replica(
      graph, train::ReplicaDeviceSetter({.worker_device = StrCat("/job:worker/task:", worker), .cluster = cluster}));
  global_step = ops::GetOrCreateGlobalStep(graph);
  x = ops::Placeholder(graph, DType::kFloat32, Shape{size}, "x");
  std::vector<Output> parts;
  for (int i = 0; i < variables; ++i) {
    weights.emplace_back(graph, Shape{size}, initializers::Zeros(), ops::VariableOptions{.name = StrCat("w_", i)});
    parts.push_back(ops::Sum(weights.back() * x));
  }
  loss = ops::AddN(parts);
  train::GradientDescentOptimizer optimizer(kLearningRate);
  train = optimizer.Minimize(loss, global_step);
}

Tensor CountingModel::Ones() const { return Tensor::Vector(std::vector<float>(static_cast<size_t>(size), 1.0f)); }

int64_t CountingModel::Applied(const Tensor& value) {
  const std::vector<float> elements = value.ToVector<float>();
  const float steps = -elements.at(0) / kLearningRate;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] != elements[0]) {
      throw InternalError(StrCat("half an update: element 0 is ", elements[0], ", element ", i, " is ", elements[i]));
    }
  }
  if (steps != std::round(steps)) throw InternalError(StrCat("no whole number of updates: ", elements[0]));
  return static_cast<int64_t>(steps);
}

}  // namespace cohort::testing
