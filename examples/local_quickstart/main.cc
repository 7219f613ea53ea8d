// Fits y = 2 x + 10 in one process, without a cluster.
#include <cstdio>
#include <random>

#include "cohort/cohort.h"

int main() {
  using namespace cohort;
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{32}, "x");
  const Output y = ops::Placeholder(graph, DType::kFloat32, Shape{32}, "y");
  const auto weight = ops::GetVariable(graph, "weight", Shape{1}, DType::kFloat32, ops::RandomNormal());
  const auto bias = ops::GetVariable(graph, "bias", Shape{1}, DType::kFloat32, ops::Zeros());
  const Output loss = ops::Mean(ops::SquaredDifference(x * weight + bias, y));
  Node* train = train::GradientDescentOptimizer(0.05).Minimize(loss);
  Node* init = ops::GlobalVariablesInitializer(graph);

  Session session(graph);
  session.Run(init);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int step = 1; step <= 500; ++step) {
    std::vector<float> xs(32), ys(32);
    for (size_t i = 0; i < xs.size(); ++i) {
      xs[i] = normal(random);
      ys[i] = 2 * xs[i] + 10 + 0.33f * normal(random);
    }
    const auto values = session.Run({{x, Tensor::Vector(xs)}, {y, Tensor::Vector(ys)}}, {loss}, {train});
    if (step % 100 == 0) std::printf("step %d: loss %f\n", step, values[0].scalar<float>());
  }
  const auto fitted = session.Run({weight.value(), bias.value()});
  std::printf("y = %f x + %f\n", fitted[0].data<float>()[0], fitted[1].data<float>()[0]);
}
