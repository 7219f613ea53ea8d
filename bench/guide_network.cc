#include "bench/guide_network.h"

#include <cmath>

namespace cohort {

Tensor SineValues(DType dtype, const Shape& shape, float scale) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const float value = scale * std::sin(static_cast<float>(i % 9973));
    if (dtype == DType::kFloat32)
      tensor.data<float>()[i] = value;
    else
      tensor.data<bfloat16>()[i] = bfloat16(value);
  }
  return tensor;
}

GuideNetwork::GuideNetwork(int64_t batch, DType dtype, const GuideNetworkOptions& options) : dtype_(dtype) {
  const DeviceScope device(graph_, options.device);
  const Tensor images = SineValues(DType::kFloat32, Shape{batch, 28, 28, 1}, 1.0f);
  Tensor labels(DType::kInt32, Shape{batch});
  for (int64_t i = 0; i < batch; ++i) labels.data<int32_t>()[i] = static_cast<int32_t>(i % 10);
  Output x, y;
  if (options.keeps_batch) {
    x = ops::Variable(graph_, images, {.name = "images", .trainable = false}).value();
    y = ops::Variable(graph_, labels, {.name = "labels", .trainable = false}).value();
  } else {
    x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, 28, 28, 1}, "images");
    y = ops::Placeholder(graph_, DType::kInt32, Shape{-1}, "labels");
    inputs_ = {x, y};
    feeds_ = {images, labels};
  }
  Output h = Finished(ops::Conv2D(Computed(x), Weights({3, 3, 1, 128}, 9), {.padding = "SAME"}), 128);
  for (const GuideSeparable& l : kGuideSeparables) {
    h = ops::DepthwiseConv2dNative(h, Weights({3, 3, l.in, 1}, 9), {.padding = "SAME"});
    h = Finished(ops::Conv2D(h, Weights({1, 1, l.in, l.out}, l.in)), l.out);
    if (l.pooled) h = ops::MaxPool(h);
  }
  h = Finished(ops::MatMul(ops::Reshape(h, {-1, kGuideFlat}), Weights({kGuideFlat, 512}, kGuideFlat)), 512);
  const Output logits = ops::BiasAdd(ops::MatMul(h, Weights({512, 10}, 512)), Computed(Variable(Shape{10}, 0)));
  loss_ =
      ops::Mean(ops::SparseSoftmaxCrossEntropyWithLogits({.labels = y, .logits = ops::Cast(logits, DType::kFloat32)}));
  train_ = options.momentum > 0 ? train::MomentumOptimizer(options.learning_rate, options.momentum).Minimize(loss_)
                                : train::GradientDescentOptimizer(options.learning_rate).Minimize(loss_);
  init_ = ops::GlobalVariablesInitializer(graph_);
}

namespace {

SessionConfig WithThreads(int threads) {
  SessionConfig config;
  config.intra_op_parallelism_threads = threads;
  return config;
}

}  // namespace

GuideNetwork::Run::Run(GuideNetwork& network, int threads)
    : network_(network),
      session_(network.graph_, "", WithThreads(threads)),
      step_(session_.MakeCallable(network.inputs_, {network.loss_}, {network.train_})),
      train_(session_.MakeCallable(network.inputs_, {}, {network.train_})) {
  session_.Run(network.init_);
}

Output GuideNetwork::Computed(Output value) { return value.dtype() == dtype_ ? value : ops::Cast(value, dtype_); }

Output GuideNetwork::Variable(const Shape& shape, float scale) {
  const ops::Variable variable(graph_, ops::Const(graph_, SineValues(DType::kFloat32, shape, scale)), {});
  return variable.value();
}

Output GuideNetwork::Weights(const Shape& shape, int64_t fan_in) {
  return Computed(Variable(shape, 1.2f / std::sqrt(static_cast<float>(fan_in))));
}

Output GuideNetwork::Finished(Output value, int64_t channels) {
  return ops::Selu(ops::BiasAdd(value, Computed(Variable(Shape{channels}, 0))));
}

namespace {

keras::LayerRef Separable(int64_t filters) {
  return keras::SeparableConv2D(filters, 3, {.padding = "same", .activation = "selu"});
}

}  // namespace

keras::Sequential KerasGuideNetwork(const keras::ModelOptions& options) {
  return keras::Sequential(
      {keras::Input(Shape{28, 28, 1}), keras::Conv2D(128, 3, {.padding = "same", .activation = "selu"}), Separable(128),
       keras::MaxPooling2D(2), Separable(256), Separable(256), keras::MaxPooling2D(2), Separable(512), Separable(512),
       keras::MaxPooling2D(2), keras::Flatten(), keras::Dense(512, {.activation = "selu"}),
       keras::Dense(10, {.activation = "softmax"})},
      options);
}

}  // namespace cohort
