// The models of keras_models.h with layers for sequences and images. test_keras_models.py and test_keras_saving.py have
// the models of the same names.
#include "tests/interop/keras_models.h"

namespace cohort::keras {
namespace {

ModelMakers ConvolvedSequenceModels() {
  return {
      {"conv1d",
       [] {
         return Numbers({Input(Shape{9, 4}),
                         Conv1D(6, 3, {.strides = 2, .padding = "same", .groups = 2, .activation = "selu"}),
                         Conv1D(4, 2, {.padding = "causal", .dilation_rate = 2, .activation = "tanh"})});
       }},
      {"depthwise_conv1d",
       [] {
         return Numbers({Input(Shape{9, 2}),
                         DepthwiseConv1D(3, {.padding = "same", .depth_multiplier = 2, .activation = "tanh"})});
       }},
      {"separable_conv1d",
       [] {
         const SeparableConv1DOptions options = {
             .strides = 2, .padding = "same", .depth_multiplier = 2, .activation = "selu"};
         return Numbers({Input(Shape{9, 2}), SeparableConv1D(6, 3, options)});
       }},
      {"conv1d_transpose",
       [] {
         return Numbers({Input(Shape{5, 2}),
                         Conv1DTranspose(4, 3, {.strides = 2, .padding = "same", .activation = "tanh"}),
                         Conv1DTranspose(3, 2, {.strides = 3, .output_padding = 1, .activation = "tanh"})});
       }},
      {"up_sampling_1d",
       [] {
         return Numbers({Input(Shape{5, 4}), Dense(4, {.activation = "tanh"}), UpSampling1D(3),
                         Conv1D(4, 4, {.strides = 2, .activation = "tanh"})});
       }},
      {"cropping_1d",
       [] {
         return Numbers({Input(Shape{7, 4}), ZeroPadding1D({2, 1}), Conv1D(6, 3, {.activation = "tanh"}),
                         Cropping1D({1, 2}), ZeroPadding1D(), Conv1D(4, 2, {.activation = "tanh"})});
       }},
      {"pools_1d",
       [] {
         return Numbers({Input(Shape{9, 4}), Conv1D(6, 2, {.activation = "tanh"}),
                         MaxPooling1D(3, {.strides = 2, .padding = "same"}),
                         Conv1D(6, 2, {.padding = "same", .activation = "tanh"}),
                         AveragePooling1D(2, {.strides = 1, .padding = "same"})});
       }},
      {"global_max_pooling_1d",
       [] {
         return Chain({Input(Shape{6, 4}), Conv1D(8, 3, {.activation = "tanh"}), GlobalMaxPooling1D(), Dense(3)});
       }},
      {"repeat_vector",
       [] {
         return Numbers(
             {Input(Shape{6}), Dense(5, {.activation = "tanh"}), RepeatVector(4), Dense(3, {.activation = "tanh"})});
       }},
  };
}

ModelMakers ResizingModels() {
  return {
      {"conv2d_transpose",
       [] {
         const Conv2DTransposeOptions padded = {
             .strides = {2, 3}, .padding = "same", .output_padding = RowsColumns(1, 2), .activation = "tanh"};
         return Numbers({Input(Shape{3, 4, 2}),
                         Conv2DTranspose(5, 3, {.strides = 2, .padding = "same", .activation = "tanh"}),
                         Conv2DTranspose(4, {3, 2}, padded), Conv2D(4, 3, {.strides = 3, .activation = "tanh"})});
       }},
      {"conv2d_transpose_valid",
       [] {
         const Conv2DTransposeOptions padded = {
             .strides = 3, .output_padding = RowsColumns(1, 0), .activation = "tanh"};
         return Numbers({Input(Shape{3, 4, 2}), Conv2DTranspose(5, {3, 2}, {.activation = "tanh", .use_bias = false}),
                         Conv2DTranspose(4, 2, padded), Conv2D(4, 3, {.strides = 3, .activation = "tanh"})});
       }},
      {"up_sampling",
       [] {
         return Numbers({Input(Shape{4, 4, 2}), Conv2D(4, 2, {.activation = "tanh"}), UpSampling2D({2, 3}),
                         Conv2D(4, 3, {.strides = 2, .activation = "tanh"}),
                         UpSampling2D({3, 2}, {.interpolation = "bilinear"}),
                         Conv2D(4, 2, {.strides = 2, .activation = "tanh"})});
       }},
      {"cropping",
       [] {
         return Numbers({Input(Shape{8, 7, 2}), Conv2D(4, 2, {.activation = "tanh"}), Cropping2D({{1, 2}, {0, 1}}),
                         Conv2D(4, 2, {.activation = "tanh"}), Cropping2D()});
       }},
  };
}

// Dot products of vectors and of matrices.
ModelPtr Dots() {
  const LayerTensor x = Input(Shape{5, 4}, {.name = "x"});
  const LayerTensor a = Dense(4, {.activation = "tanh", .name = "a"})(x);
  const LayerTensor b = Dense(4, {.activation = "tanh", .name = "b"})(x);
  const LayerTensor products = Dot({2, 1})({Permute({2, 1})(a), b});
  const LayerTensor cosines = Dot(2, {.normalize = true})({a, b});
  const LayerTensor one = Dot(-1)({Flatten()(a), Flatten()(b)});
  const LayerTensor joined = Concatenate()({Flatten()(products), Flatten()(cosines), one});
  return std::make_unique<Model>(std::vector<LayerTensor>{x},
                                 std::vector<LayerTensor>{Dense(3, {.name = "end"})(joined)});
}

ModelMakers NormalizationModels() {
  return {
      {"dots", Dots},
      {"group_normalization",
       [] {
         return Numbers({Input(Shape{5, 4, 3}), Conv2D(6, 2, {.use_bias = false}), GroupNormalization(3),
                         Activation("tanh"), Conv2D(4, 2, {.use_bias = false}),
                         GroupNormalization(-1, {.epsilon = 0.01, .scale = false}), Activation("tanh")});
       }},
      {"unit_normalization",
       [] {
         return Numbers({Input(Shape{4, 6}), Dense(8), UnitNormalization(), Dense(6, {.activation = "tanh"}),
                         UnitNormalization({.axis = {1, 2}})});
       }},
      {"slopes",
       [] {
         return Numbers({Input(Shape{4, 4, 2}), Conv2D(6, 2),
                         PReLU({.alpha_initializer = initializers::Constant(0.2), .shared_axes = {1, 2}}), Conv2D(4, 2),
                         PReLU(), Conv2D(4, 1), ELU(), Conv2D(4, 1), ELU({.alpha = 0.5})});
       }},
      {"noise",
       [] {
         return Chain({Input(Shape{4, 5, 2}), GaussianNoise(0.5), Conv2D(4, 2), SpatialDropout2D(0.25, {.seed = 3}),
                       GaussianDropout(0.25), Reshape({12, 4}), SpatialDropout1D(0.5), Dense(3),
                       AlphaDropout(0.25, {.seed = 4}), Flatten(), Dense(3)});
       }},
  };
}

// The random layers of "augmented_images" draw from ranges of one number, so that Keras draws the same ones.
ModelMakers PreparedImageModels() {
  return {
      {"resized_images",
       [] {
         return Numbers({Input(Shape{6, 7, 2}), Conv2D(4, 2, {.activation = "tanh"}), Resizing(9, 5),
                         Conv2D(4, 2, {.activation = "tanh"}), Resizing(5, 6, {.interpolation = "nearest"}),
                         Resizing(4, 4, {.crop_to_aspect_ratio = true}),
                         Resizing(5, 8, {.pad_to_aspect_ratio = true, .fill_value = 0.5}), CenterCrop(4, 5),
                         Conv2D(4, 2, {.activation = "tanh"}), CenterCrop(6, 2)});
       }},
      {"augmented_images",
       [] {
         return Numbers({Input(Shape{6, 7, 2}), RandomBrightness({0.25, 0.25}, {.value_range = {-2, 2}}),
                         RandomContrast(0, {.value_range = {-1, 2}}), RandomRotation({0.3, 0.3}),
                         RandomTranslation({0.2, 0.2}, {-0.1, -0.1}, {.fill_mode = "constant", .fill_value = 0.5}),
                         RandomZoom({-0.2, -0.2}, FactorRange(0.3, 0.3), {.fill_mode = "wrap"}),
                         RandomRotation({0.25, 0.25}, {.fill_mode = "nearest", .interpolation = "nearest"}),
                         Conv2D(4, 2, {.activation = "tanh"})});
       }},
      {"augmentation",
       [] {
         return Chain({Input(Shape{6, 7, 2}), Rescaling(0.5), RandomFlip("horizontal", {.seed = 3}), RandomCrop(6, 7),
                       RandomContrast({0.2, 0.4}, {.value_range = {-5, 5}, .seed = 4}),
                       RandomBrightness(0.1, {.value_range = {-5, 5}}), RandomTranslation(0.2, {-0.1, 0.3}),
                       RandomRotation(0.1, {.fill_mode = "wrap", .interpolation = "nearest", .seed = 5}),
                       RandomZoom({-0.2, 0.3}, {}, {.fill_mode = "constant", .fill_value = 0.25}),
                       RandomZoom(0.1, FactorRange(0.2), {.fill_mode = "nearest"}), RandomFlip(), CenterCrop(5, 4),
                       Conv2D(4, 2), Flatten(), Dense(3)});
       }},
  };
}

}  // namespace

ModelMakers VisionModels() {
  ModelMakers all = ConvolvedSequenceModels();
  all.merge(ResizingModels());
  all.merge(NormalizationModels());
  all.merge(PreparedImageModels());
  return all;
}

}  // namespace cohort::keras
