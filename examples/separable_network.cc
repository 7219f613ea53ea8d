#include "examples/separable_network.h"

#include <algorithm>

#include "examples/images.h"

namespace examples {

using namespace cohort;

ScaledImages LoadScaledImages(const std::string& data_dir, int64_t max_images, bool say) {
  constexpr int64_t kValidated = 5000;
  const data::ImageDataset all = LoadImages(data_dir, say);
  const auto most = [&](int64_t count) { return max_images > 0 ? std::min(count, max_images) : count; };
  const int64_t end = kValidated + most(all.train_labels.num_elements() - kValidated);
  data::StandardScaler scaler;
  const auto shaped = [](const Tensor& scaled) { return scaled.Reshaped(Shape{scaled.shape().dim(0), 28, 28, 1}); };
  const auto part = [&](const Tensor& images, const Tensor& labels, int64_t to) {
    return ImagePart{shaped(scaler.Transform(images.Slice(0, to))), labels.Slice(0, to)};
  };
  ScaledImages images;
  images.train = {shaped(scaler.FitTransform(all.train_images.Slice(kValidated, end))),
                  all.train_labels.Slice(kValidated, end)};
  images.validation = part(all.train_images, all.train_labels, most(kValidated));
  images.test = part(all.test_images, all.test_labels, most(all.test_labels.num_elements()));
  images.generated = all.generated;
  return images;
}

keras::Sequential SeparableNetwork(keras::DepthwiseFans fans, const keras::ModelOptions& options) {
  const auto separable = [fans](int64_t filters) {
    return keras::SeparableConv2D(filters, 3, {.padding = "same", .activation = "selu", .depthwise_fans = fans});
  };
  keras::Sequential model({}, options);
  model.Add(keras::Conv2D(128, 3, {.padding = "same", .activation = "selu", .input_shape = Shape{28, 28, 1}}));
  model.Add(separable(128));
  model.Add(keras::MaxPool2D(2));
  for (const int64_t filters : {256, 512}) {
    model.Add(separable(filters));
    model.Add(separable(filters));
    model.Add(keras::MaxPool2D(2));
  }
  model.Add(keras::Flatten());
  model.Add(keras::Dense(512, {.activation = "selu"}));
  model.Add(keras::Dense(10, {.activation = "softmax"}));
  return model;
}

}  // namespace examples
