// Ops of images: known pixels, what they refuse, places that are no numbers, and threads. The cases of
// tests/ops/image_cases.cc compare them with TensorFlow.
#include "cohort/ops/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;
using Pixels = std::vector<float>;

Tensor ImagesOf(const Pixels& values, const Shape& shape) { return Tensor::Vector(values).Reshaped(shape); }

TEST(ImageTest, PlacesOfPixels) {
  Graph graph;
  const Output row = ops::Const(graph, ImagesOf({0, 10, 20}, Shape{1, 1, 3, 1}));
  const auto resized = [&](const ops::ResizeOptions& options) {
    return Interpreter().Run1(ops::ResizeBilinear(row, {1, 6}, options)).ToVector<float>();
  };
  const auto nearest = [&](const ops::ResizeOptions& options) {
    return Interpreter().Run1(ops::ResizeNearestNeighbor(row, {1, 6}, options)).ToVector<float>();
  };
  EXPECT_THAT(resized({}), ElementsAre(0, 5, 10, 15, 20, 20));
  EXPECT_THAT(resized({.half_pixel_centers = true}), ElementsAre(0, 2.5f, 7.5f, 12.5f, 17.5f, 20));
  EXPECT_THAT(resized({.align_corners = true}), ElementsAre(0, 4, 8, 12, 16, 20));
  EXPECT_THAT(nearest({}), ElementsAre(0, 0, 10, 10, 20, 20));
  EXPECT_THAT(nearest({.half_pixel_centers = true}), ElementsAre(0, 0, 10, 10, 20, 20));
  EXPECT_THAT(nearest({.align_corners = true}), ElementsAre(0, 0, 10, 10, 20, 20));
}

// A graph of unknown origin may feed any tensor where the op wants a scalar.
TEST(ImageTest, TheFillValueIsOneNumber) {
  for (const Pixels& fill : {Pixels{}, {1, 2}}) {
    Graph graph;
    const Output pixels = ops::Const(graph, ImagesOf({1, 2, 3, 4}, Shape{1, 2, 2, 1}));
    const Output transform = ops::Const(graph, ImagesOf({1, 0, 5, 0, 1, 5, 0, 0}, Shape{1, 8}));
    const Output value = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
    const Output moved = ops::ImageProjectiveTransformV3(pixels, transform, {2, 2}, value);
    EXPECT_THROW(Interpreter().Run1(moved, {{value, Tensor::Vector(fill)}}), InvalidArgumentError);
  }
}

TEST(ImageTest, PlacesThatAreNoNumbersGiveTheFillValue) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor pixels = ImagesOf({1, 2, 3, 4}, Shape{1, 2, 2, 1});
  for (const char* fill_mode : {"CONSTANT", "REFLECT", "WRAP", "NEAREST"}) {
    for (const char* interpolation : {"NEAREST", "BILINEAR"}) {
      const auto moved = [&](float by) {
        Graph graph;
        const Output transform = ops::Const(graph, ImagesOf({1, 0, by, 0, 1, by, 0, 0}, Shape{1, 8}));
        return Interpreter()
            .Run1(ops::ImageProjectiveTransformV3(ops::Const(graph, pixels), transform, {2, 2}, 7.0f,
                                                  {interpolation, fill_mode}))
            .ToVector<float>();
      };
      EXPECT_THAT(moved(nan), Each(7)) << fill_mode << interpolation;
      for (const float far : {infinity, -infinity, 3e38f, -3e38f, 1e20f, -1e20f}) {
        const Pixels y = moved(far);
        if (std::string(fill_mode) == "CONSTANT") {
          EXPECT_THAT(y, Each(7));
        }
        for (const float pixel : y) EXPECT_TRUE(pixel >= 1 && pixel <= 7) << fill_mode << interpolation << far;
      }
    }
  }
}

TEST(ImageTest, RefusesWhatDoesNotFit) {
  Graph graph;
  const Output images = ops::Const(graph, ImagesOf({1, 2, 3, 4}, Shape{1, 2, 2, 1}));
  const Output vector = ops::Const(graph, Pixels{1, 2});
  const Output eight = ops::Const(graph, ImagesOf(Pixels(24, 0), Shape{3, 8}));
  const auto refusal = [](const std::function<void()>& call) { return MessageOf<InvalidArgumentError>(call); };
  EXPECT_THAT(refusal([&] { ops::ResizeBilinear(images, {0, 2}); }), HasSubstr("got [0, 2]"));
  EXPECT_THAT(refusal([&] { ops::ResizeBilinear(images, {2}); }), HasSubstr("got [2]"));
  EXPECT_THAT(refusal([&] { ops::ResizeNearestNeighbor(vector, {2, 2}); }), HasSubstr("rank 4"));
  EXPECT_THAT(refusal([&] { ops::ResizeBilinear(images, {2, 2}, {true, true}); }), HasSubstr("got both"));
  EXPECT_THAT(refusal([&] { ops::ImageProjectiveTransformV3(images, eight, {2, 2}); }), HasSubstr("got [3,8]"));

  // The same if it is known only in the step.
  const Output unknown = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownDims(4));
  const Output size = ops::Placeholder(graph, DType::kInt32, Shape::UnknownDims(1));
  const Output transforms = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownDims(2));
  const Tensor good_size = Tensor::Vector<int32_t>({2, 2}), bad_size = Tensor::Vector<int32_t>({2, -1});
  const Tensor good = ImagesOf({1, 2, 3, 4}, Shape{1, 2, 2, 1}), no_rows(DType::kFloat32, Shape{1, 0, 2, 1});
  const auto message = [&](const Output& y, const Interpreter::Feeds& feeds) {
    return refusal([&] { Interpreter().Run1(y, feeds); });
  };
  EXPECT_THAT(message(ops::ResizeBilinear(unknown, size), {{unknown, good}, {size, bad_size}}),
              HasSubstr("got [2, -1]"));
  EXPECT_THAT(message(ops::ResizeNearestNeighbor(unknown, size), {{unknown, no_rows}, {size, good_size}}),
              HasSubstr("got [1,0,2,1]"));
  EXPECT_THAT(message(ops::ImageProjectiveTransformV3(unknown, transforms, size),
                      {{unknown, good}, {size, good_size}, {transforms, ImagesOf(Pixels(7, 0), Shape{1, 7})}}),
              HasSubstr("got [1,7]"));
}

TEST(ImageTest, IntegersHaveNoGradientAndFloatsHave) {
  Graph graph;
  const Output bytes = ops::Placeholder(graph, DType::kUint8, Shape{1, 2, 2, 1});
  const Output floats = ops::Placeholder(graph, DType::kFloat32, Shape{1, 2, 2, 1});
  const Output sizes[] = {ops::ResizeBilinear(bytes, {3, 3}), ops::ResizeBilinear(floats, {3, 3})};
  EXPECT_FALSE(Gradients({sizes[0]}, {bytes})[0].exists());
  EXPECT_TRUE(Gradients({sizes[1]}, {floats})[0].exists());
}

TEST(ImageTest, ThreadsDoNotChangeBits) {
  Tensor images(DType::kFloat32, Shape{2, 70, 60, 3});
  for (int64_t i = 0; i < images.num_elements(); ++i) {
    images.data<float>()[i] = std::sin(static_cast<float>(i * i % 1009));
  }
  const Tensor transforms = ImagesOf({0.8f, 0.3f, -2, -0.2f, 1.1f, 3, 0.001f, 0.002f}, Shape{1, 8});
  const auto all = [&](int threads) {
    Graph graph;
    const Output x = ops::Const(graph, images);
    const Output linear = ops::ResizeBilinear(x, {41, 90}, {.half_pixel_centers = true});
    const Output nearest = ops::ResizeNearestNeighbor(x, {41, 90});
    const Output moved =
        ops::ImageProjectiveTransformV3(x, ops::Const(graph, transforms), {70, 60}, 0.0f, {.fill_mode = "REFLECT"});
    const std::vector<Output> fetches = {linear,
                                         nearest,
                                         moved,
                                         Gradients({linear}, {x})[0].values,
                                         Gradients({nearest}, {x})[0].values,
                                         Gradients({moved}, {x})[0].values};
    std::vector<Pixels> values;
    for (const Tensor& value : Interpreter(threads).Run(fetches)) values.push_back(value.ToVector<float>());
    return values;
  };
  EXPECT_EQ(all(1), all(3));
}

}  // namespace
}  // namespace cohort
