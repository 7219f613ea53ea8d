#include "cohort/estimator/v1.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"

namespace cohort::layers {

Output Dense(Output inputs, int64_t units, const DenseOptions& options) {
  if (units < 1) throw InvalidArgumentError(StrCat("[layers::Dense] expected at least 1 unit; got ", units));
  const Shape& shape = inputs.shape();
  if (shape.rank() != 2 || shape.dim(1) < 0) {
    throw InvalidArgumentError(StrCat("[layers::Dense] expected inputs of the shape [batch, n] with a known n; got ",
                                      inputs.name(), " ", shape));
  }
  Graph& graph = inputs.graph();
  const NameScope scope(graph, options.name);
  const ops::Variable kernel =
      ops::GetVariable(graph, "kernel", Shape{shape.dim(1), units}, inputs.dtype(),
                       options.kernel_initializer ? options.kernel_initializer : initializers::GlorotUniform());
  Output result = ops::MatMul(inputs, kernel);
  if (options.use_bias) {
    const ops::Variable bias =
        ops::GetVariable(graph, "bias", Shape{units}, inputs.dtype(),
                         options.bias_initializer ? options.bias_initializer : initializers::Zeros());
    result = ops::BiasAdd(result, bias);
  }
  return options.activation(result);
}

}  // namespace cohort::layers

namespace cohort::losses {

Output MeanSquaredError(Output labels, Output predictions, const NodeName& name) {
  if (!labels.shape().IsCompatibleWith(predictions.shape())) {
    throw InvalidArgumentError(StrCat("[losses::MeanSquaredError] expected labels and predictions of one shape; got ",
                                      labels.name(), " ", labels.shape(), " and ", predictions.name(), " ",
                                      predictions.shape()));
  }
  return ops::Mean(ops::SquaredDifference(predictions, labels), name);
}

}  // namespace cohort::losses

namespace cohort::metrics {

Metric Mean(Output values, const std::string& name) {
  Graph& graph = values.graph();
  const NameScope scope(graph, name);
  const ops::VariableOptions local{.trainable = false, .local = true, .dtype = DType::kFloat32};
  ops::VariableOptions total_options = local, count_options = local;
  total_options.name = "total";
  count_options.name = "count";
  const ops::Variable total(graph, Shape{}, initializers::Zeros(), total_options);
  const ops::Variable count(graph, Shape{}, initializers::Zeros(), count_options);
  const Output numbers = values.dtype() == DType::kFloat32 ? values : ops::Cast(values, DType::kFloat32);
  Node* update = ops::Group(
      graph, {total.AssignAdd(ops::Sum(numbers)), count.AssignAdd(ops::Cast(ops::Size(numbers), DType::kFloat32))});
  return {total.value() / ops::Maximum(count.value(), 1.0f), update};
}

Metric Accuracy(Output labels, Output predictions, const std::string& name) {
  return Mean(ops::Cast(ops::Equal(labels, predictions), DType::kFloat32), name);
}

Metric MeanSquaredError(Output labels, Output predictions, const std::string& name) {
  return Mean(ops::SquaredDifference(predictions, labels), name);
}

}  // namespace cohort::metrics
