// Network: what the tests of recorded steps train. For tests only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/core/tensor.h"
#include "cohort/core/testing/seeded_noise.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/softmax.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"

namespace cohort::cuda {

inline Tensor Labels(int64_t rows, int64_t classes, int64_t seed) {
  Tensor labels(DType::kInt64, Shape{rows});
  for (int64_t i = 0; i < rows; ++i) labels.data<int64_t>()[i] = (i * 7 + seed) % classes;
  return labels;
}

enum class Rule { kDescent, kMomentum, kAdam };

// A network of two layers with a training step, in a session of its own. Its variables have no values before
// Initialize.
class Network {
 public:
  static constexpr int64_t kInputs = 6, kHidden = 10, kClasses = 4;

  Network(Rule rule, const SessionConfig& config) : scope_(graph_, "/device:GPU:0") {
    x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, kInputs}, "x");
    labels = ops::Placeholder(graph_, DType::kInt64, Shape{-1}, "labels");
    rate = ops::Placeholder(graph_, DType::kFloat32, Shape{}, "rate");
    const auto variable = [&](const Shape& shape, const char* name, int64_t seed) {
      variables.emplace_back(graph_, SeededNoise(shape, seed), ops::VariableOptions{.name = name});
      return variables.back().value();
    };
    const Output w1 = variable(Shape{kInputs, kHidden}, "w1", 1), b1 = variable(Shape{kHidden}, "b1", 2);
    const Output w2 = variable(Shape{kHidden, kClasses}, "w2", 3), b2 = variable(Shape{kClasses}, "b2", 4);
    const Output hidden = ops::Relu(ops::BiasAdd(ops::MatMul(x, w1), b1));
    const Output logits = ops::BiasAdd(ops::MatMul(hidden, w2), b2);
    loss = ops::Mean(ops::SparseSoftmaxCrossEntropyWithLogits({.labels = labels, .logits = logits}));
    step = Update(rule);
    session = std::make_unique<Session>(graph_, "", config);
    initializer_ = ops::GlobalVariablesInitializer(graph_);
  }
  void Initialize() { session->Run(initializer_); }

  // Adds the updates of all variables by the rule.
  Node* Update(Rule rule) {
    std::vector<Output> handles;
    for (const ops::Variable& variable : variables) handles.push_back(variable.handle());
    const std::vector<Gradient> gradients = Gradients({loss}, handles);
    const auto slot = [&](const ops::Variable& variable, const char* name) {
      return ops::Variable(graph_, Tensor::Zeros(DType::kFloat32, variable.value().shape()),
                           {.name = StrCat(variable.name(), "/", name)})
          .handle();
    };
    const Output momentum = ops::Const(graph_, 0.9f), beta2 = ops::Const(graph_, 0.99f);
    const ops::Variable power1(graph_, Tensor::Scalar(0.9f), {.name = "power1"});
    const ops::Variable power2(graph_, Tensor::Scalar(0.99f), {.name = "power2"});
    const ops::AdamScalars adam{power1.value(), power2.value(), rate, momentum, beta2, ops::Const(graph_, 1e-7f)};
    std::vector<Node*> updates;
    for (size_t i = 0; i < handles.size(); ++i) {
      const Output gradient = ToDense(gradients[i]);
      const ops::Variable& v = variables[i];
      if (rule == Rule::kDescent) updates.push_back(ops::ResourceApplyGradientDescent(handles[i], rate, gradient));
      if (rule == Rule::kMomentum) {
        updates.push_back(ops::ResourceApplyMomentum(handles[i], slot(v, "momentum"), rate, gradient, momentum));
      }
      if (rule == Rule::kAdam) {
        updates.push_back(ops::ResourceApplyAdam(handles[i], slot(v, "m"), slot(v, "v"), adam, gradient));
      }
    }
    if (rule == Rule::kAdam) {
      const ControlDependencies after(graph_, updates);
      updates.push_back(power1.Assign(power1.value() * momentum));
      updates.push_back(power2.Assign(power2.value() * beta2));
    }
    return ops::Group(graph_, updates, "step");
  }

  FeedList Feeds(int64_t rows, int64_t seed) const {
    return {{x, SeededNoise(Shape{rows, kInputs}, 100 + seed)},
            {labels, Labels(rows, kClasses, seed)},
            {rate, Tensor::Scalar(0.05f / static_cast<float>(1 + seed))}};
  }
  Tensor Train(int64_t rows, int64_t seed) { return session->Run(Feeds(rows, seed), {loss}, {step})[0]; }
  std::vector<Tensor> Values() {
    std::vector<Output> reads;
    for (const VariableInfo* info : graph_.variables()) reads.push_back(info->value);
    return session->Run(reads);
  }

  Graph graph_;
  DeviceScope scope_;
  Output x, labels, rate, loss;
  std::vector<ops::Variable> variables;
  Node* step = nullptr;
  Node* initializer_ = nullptr;
  std::unique_ptr<Session> session;
};

}  // namespace cohort::cuda
