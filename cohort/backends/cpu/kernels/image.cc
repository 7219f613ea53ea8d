// Images of other sizes, their gradients, and images whose pixels are moved. Places are computed in float32, as
// TensorFlow does. Threads share the rows of results, so that results do not depend on the number of threads.
#include <cmath>
#include <cstring>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/image_geometry.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

using cpu::Wide;

// The sizes of the smaller or larger images, and of those that they are made of.
struct Sizes {
  int64_t batch, channels;
  int64_t in_rows, in_columns;
  int64_t rows, columns;

  Sizes(const Shape& in, const Shape& out)
      : batch(out.dim(0)),
        channels(out.dim(3)),
        in_rows(in.dim(1)),
        in_columns(in.dim(2)),
        rows(out.dim(1)),
        columns(out.dim(2)) {}
};

// The place of a row or column of a result: between two rows or columns of the image.
struct Place {
  int64_t lower, upper;
  float part;  // how far it is from `lower` to `upper`
};

std::vector<Place> BilinearPlaces(int64_t in, int64_t out, const ops::ResizeOptions& options) {
  const float scale = ops::ResizeScale(in, out, options.align_corners);
  std::vector<Place> places;
  for (int64_t i = 0; i < out; ++i) {
    const auto number = static_cast<float>(i);
    const float at = options.half_pixel_centers ? (number + 0.5f) * scale - 0.5f : number * scale;
    const float lower = std::floor(at);
    places.push_back({std::clamp<int64_t>(static_cast<int64_t>(lower), 0, in - 1),
                      std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, in - 1), at - lower});
  }
  return places;
}

std::vector<int64_t> NearestPlaces(int64_t in, int64_t out, const ops::ResizeOptions& options) {
  const float scale = ops::ResizeScale(in, out, options.align_corners);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + (options.half_pixel_centers ? 0.5f : 0.0f)) * scale;
    const float whole = options.align_corners ? std::round(at) : std::floor(at);
    places.push_back(std::min(static_cast<int64_t>(whole), in - 1));
  }
  return places;
}

template <typename T>
float AsFloat(T value) {
  return static_cast<float>(static_cast<Wide<T>>(value));
}

// Requires: T is floating or uint8.
template <typename T>
T FromFloat(float value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return value >= 0 ? static_cast<uint8_t>(std::min(value, 255.0f)) : uint8_t{0};
  } else {
    return static_cast<T>(value);
  }
}

class ResizeBase : public OpKernel {
 protected:
  explicit ResizeBase(const KernelConstruction& c)
      : dtype_(c.attr<DType>("T")), options_{c.attr<bool>("align_corners"), c.attr<bool>("half_pixel_centers")} {
    ops::CheckResizeOptions(options_);
  }

  // Makes the gradient by images, row by row: add(number, sum) adds to the row `sum`, which is zero before, what the
  // gradients of the result give to it. `number` counts the rows of all images. An element costs about `cost`.
  template <typename T, typename Add>
  static void MakeRows(KernelContext& ctx, const Sizes& s, Tensor& output, int64_t cost, const Add& add) {
    using W = Wide<T>;
    const int64_t row = s.in_columns * s.channels;
    Tensor sums = std::is_same_v<T, W> ? output : ctx.AllocateTemp(kDTypeOf<W>, output.shape());
    auto* all = static_cast<W*>(sums.raw_data());
    T* out = output.data<T>();
    cpu::ForBlocks(
        s.batch * s.in_rows, ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          for (int64_t number = begin; number < end; ++number) {
            W* sum = all + number * row;
            std::fill(sum, sum + row, W(0));
            add(number, sum);
            if constexpr (std::is_same_v<T, W>) continue;
            for (int64_t i = 0; i < row; ++i) out[number * row + i] = static_cast<T>(sum[i]);
          }
        },
        row * cost);
  }

  DType dtype() const { return dtype_; }
  const ops::ResizeOptions& options() const { return options_; }

 private:
  const DType dtype_;
  const ops::ResizeOptions options_;
};

class ResizeBilinearKernel final : public ResizeBase {
 public:
  explicit ResizeBilinearKernel(const KernelConstruction& c) : ResizeBase(c) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    Tensor& output = ctx.AllocateOutput(0, ops::ResizedShape(images.shape(), ctx.input(1)));
    if (output.num_elements() == 0) return;
    const Sizes s(images.shape(), output.shape());
    cpu::ForAllNumbers(dtype(), "ResizeBilinear", [&]<typename T>(T) {
      Interpolate(s, images.data<T>(), output.data<float>(), ctx.num_threads());
    });
  }

 private:
  template <typename T>
  void Interpolate(const Sizes& s, const T* images, float* output, int threads) const {
    const auto rows = BilinearPlaces(s.in_rows, s.rows, options());
    const auto columns = BilinearPlaces(s.in_columns, s.columns, options());
    const int64_t in_row = s.in_columns * s.channels, out_row = s.columns * s.channels;
    cpu::ForBlocks(
        s.batch * s.rows, threads,
        [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const Place& row = rows[static_cast<size_t>(r % s.rows)];
            const T* image = images + r / s.rows * s.in_rows * in_row;
            InterpolateRow(image + row.lower * in_row, image + row.upper * in_row, row.part, columns, s.channels,
                           output + r * out_row);
          }
        },
        out_row * 8);
  }

  template <typename T>
  static void InterpolateRow(const T* above, const T* below, float part, const std::vector<Place>& columns,
                             int64_t channels, float* out) {
    for (const Place& column : columns) {
      const int64_t left = column.lower * channels, right = column.upper * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const float above_left = AsFloat(above[left + c]), below_left = AsFloat(below[left + c]);
        const float top = above_left + (AsFloat(above[right + c]) - above_left) * column.part;
        const float bottom = below_left + (AsFloat(below[right + c]) - below_left) * column.part;
        *out++ = top + (bottom - top) * part;
      }
    }
  }
};

class ResizeBilinearGradKernel final : public ResizeBase {
 public:
  explicit ResizeBilinearGradKernel(const KernelConstruction& c) : ResizeBase(c) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& grads = ctx.input(0);
    const Shape& images = ctx.input(1).shape();
    ops::CheckResizeGradient(grads.shape(), images);
    Tensor& output = ctx.AllocateOutput(0, images);
    if (output.num_elements() == 0) return;
    const Sizes s(images, grads.shape());
    cpu::ForFloating(dtype(), "ResizeBilinearGrad",
                     [&]<typename T>(T) { Share<T>(ctx, s, grads.data<float>(), output); });
  }

 private:
  // Adds what each row of the gradients that is next to a row of the images gives to it.
  template <typename T>
  void Share(KernelContext& ctx, const Sizes& s, const float* grads, Tensor& output) const {
    const auto rows = BilinearPlaces(s.in_rows, s.rows, options());
    const auto columns = BilinearPlaces(s.in_columns, s.columns, options());
    const auto add = [&](int64_t number, Wide<T>* sum) {
      const int64_t in = number % s.in_rows;
      const auto first =
          std::partition_point(rows.begin(), rows.end(), [in](const Place& row) { return row.upper < in; });
      for (auto row = first; row != rows.end() && row->lower <= in; ++row) {
        const float* grad = grads + (number / s.in_rows * s.rows + (row - rows.begin())) * s.columns * s.channels;
        if (row->lower == in) AddRow(grad, 1 - row->part, columns, s.channels, sum);
        if (row->upper == in) AddRow(grad, row->part, columns, s.channels, sum);
      }
    };
    MakeRows<T>(ctx, s, output, 8 * (1 + s.rows / s.in_rows) * (1 + s.columns / s.in_columns), add);
  }

  template <typename W>
  static void AddRow(const float* grad, float weight, const std::vector<Place>& columns, int64_t channels, W* sum) {
    for (const Place& column : columns) {
      for (int64_t c = 0; c < channels; ++c) {
        const float g = *grad++ * weight;
        sum[column.lower * channels + c] += static_cast<W>(g * (1 - column.part));
        sum[column.upper * channels + c] += static_cast<W>(g * column.part);
      }
    }
  }
};

class ResizeNearestKernel final : public ResizeBase {
 public:
  explicit ResizeNearestKernel(const KernelConstruction& c) : ResizeBase(c) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    Tensor& output = ctx.AllocateOutput(0, ops::ResizedShape(images.shape(), ctx.input(1)));
    if (output.num_elements() == 0) return;
    const Sizes s(images.shape(), output.shape());
    const auto rows = NearestPlaces(s.in_rows, s.rows, options());
    const auto columns = NearestPlaces(s.in_columns, s.columns, options());
    const auto pixel = static_cast<int64_t>(DTypeSize(dtype())) * s.channels;
    const auto* from = static_cast<const char*>(images.raw_data());
    auto* to = static_cast<char*>(output.raw_data());
    cpu::ForBlocks(
        s.batch * s.rows, ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const int64_t in = r / s.rows * s.in_rows + rows[static_cast<size_t>(r % s.rows)];
            char* out = to + r * s.columns * pixel;
            for (const int64_t column : columns) {
              std::memcpy(out, from + (in * s.in_columns + column) * pixel, static_cast<size_t>(pixel));
              out += pixel;
            }
          }
        },
        s.columns * s.channels);
  }
};

class ResizeNearestGradKernel final : public ResizeBase {
 public:
  explicit ResizeNearestGradKernel(const KernelConstruction& c) : ResizeBase(c) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& grads = ctx.input(0);
    Tensor& output = ctx.AllocateOutput(0, ops::ResizedShape(grads.shape(), ctx.input(1)));
    if (output.num_elements() == 0) return;
    const Sizes s(output.shape(), grads.shape());
    cpu::ForFloating(dtype(), "ResizeNearestNeighborGrad",
                     [&]<typename T>(T) { Share(ctx, s, grads.data<T>(), output); });
  }

 private:
  template <typename T>
  void Share(KernelContext& ctx, const Sizes& s, const T* grads, Tensor& output) const {
    const auto rows = NearestPlaces(s.in_rows, s.rows, options());
    const auto columns = NearestPlaces(s.in_columns, s.columns, options());
    const auto add = [&](int64_t number, Wide<T>* sum) {
      const auto [first, last] = std::equal_range(rows.begin(), rows.end(), number % s.in_rows);
      for (auto row = first; row != last; ++row) {
        const T* grad = grads + (number / s.in_rows * s.rows + (row - rows.begin())) * s.columns * s.channels;
        for (const int64_t column : columns) {
          for (int64_t c = 0; c < s.channels; ++c) sum[column * s.channels + c] += static_cast<Wide<T>>(*grad++);
        }
      }
    };
    MakeRows<T>(ctx, s, output, 2 * (1 + s.rows / s.in_rows) * (1 + s.columns / s.in_columns), add);
  }
};

// Where a place outside of [0, length) is taken from. The result may still be outside, or NaN: then the pixel is the
// fill value.
float ReflectedPlace(float at, int64_t size) {
  const auto length = static_cast<float>(size);
  if (at < 0) {
    at += 2 * length * std::trunc(-at / (2 * length));
    at = at < -length ? at + 2 * length : -at - 1;
  } else if (at > length - 1) {
    at -= 2 * length * std::trunc(at / (2 * length));
    if (at >= length) at = 2 * length - at - 1;
  }
  return std::clamp(at, 0.0f, length - 1);
}
float WrappedPlace(float at, int64_t size) {
  const auto length = static_cast<float>(size), last = length - 1;
  if (size <= 1) return at == at ? 0 : at;
  if (at < 0) {
    at += length * (std::trunc(-at / last) + 1);
  } else if (at > last) {
    at -= length * std::trunc(at / last);
  }
  return std::clamp(at, 0.0f, last);
}
float NearestPlace(float at, int64_t size) { return std::clamp(at, 0.0f, static_cast<float>(size - 1)); }
float UnchangedPlace(float at, int64_t) { return at; }

using PlaceFunction = float (*)(float at, int64_t size);

PlaceFunction PlaceFunctionOf(const std::string& fill_mode) {
  if (fill_mode == "REFLECT") return ReflectedPlace;
  if (fill_mode == "WRAP") return WrappedPlace;
  if (fill_mode == "NEAREST") return NearestPlace;
  return UnchangedPlace;
}

// Places above it, and NaN, have no distances to pixels.
constexpr float kMostPlace = 1 << 23;

bool Inside(float at, int64_t size) { return at >= 0 && at < static_cast<float>(size); }

// One image, whose pixels outside are the fill value.
template <typename T>
struct FilledImage {
  const T* pixels;
  int64_t rows, columns, channels;
  T fill;

  T At(float row, float column, int64_t channel) const {
    if (!Inside(row, rows) || !Inside(column, columns)) return fill;
    return pixels[(static_cast<int64_t>(row) * columns + static_cast<int64_t>(column)) * channels + channel];
  }
  T Nearest(float row, float column, int64_t channel) const { return At(std::round(row), std::round(column), channel); }
  T Bilinear(float row, float column, int64_t channel) const {
    const float top = std::floor(row), left = std::floor(column), bottom = top + 1, right = left + 1;
    if (!(std::abs(row) < kMostPlace && std::abs(column) < kMostPlace)) return fill;
    const auto between = [&](float at) {
      return (right - column) * AsFloat(At(at, left, channel)) + (column - left) * AsFloat(At(at, right, channel));
    };
    return FromFloat<T>((bottom - row) * between(top) + (row - top) * between(bottom));
  }
};

// Adds the gradients of pixels to those of one image.
template <typename W>
struct ImageSums {
  W* sums;
  int64_t rows, columns, channels;

  template <typename T>
  void Nearest(float row, float column, const T* grad) const {
    Add(std::round(row), std::round(column), 1, grad);
  }
  template <typename T>
  void Bilinear(float row, float column, const T* grad) const {
    if (!(std::abs(row) < kMostPlace && std::abs(column) < kMostPlace)) return;
    const float top = std::floor(row), left = std::floor(column), bottom = top + 1, right = left + 1;
    Add(top, left, (bottom - row) * (right - column), grad);
    Add(top, right, (bottom - row) * (column - left), grad);
    Add(bottom, left, (row - top) * (right - column), grad);
    Add(bottom, right, (row - top) * (column - left), grad);
  }

 private:
  template <typename T>
  void Add(float row, float column, float weight, const T* grad) const {
    if (!Inside(row, rows) || !Inside(column, columns)) return;
    W* sum = sums + (static_cast<int64_t>(row) * columns + static_cast<int64_t>(column)) * channels;
    for (int64_t c = 0; c < channels; ++c) sum[c] += static_cast<W>(weight) * static_cast<W>(grad[c]);
  }
};

class ProjectiveBase : public OpKernel {
 protected:
  explicit ProjectiveBase(const KernelConstruction& c)
      : dtype_(c.attr<DType>("dtype")),
        nearest_(c.attr<std::string>("interpolation") == "NEAREST"),
        place_(PlaceFunctionOf(c.attr<std::string>("fill_mode"))) {}

  // Allocates images of the size that input `size` says, from the images and transforms at inputs 0 and 1.
  static Tensor& AllocateImages(KernelContext& ctx, int size, const char* what) {
    const Shape& images = ctx.input(0).shape();
    ops::CheckResizedImages(images);
    ops::CheckTransforms(images, ctx.input(1).shape());
    const std::vector<int64_t> known = ops::IntegerValues(ctx.input(size));
    ops::CheckImageSize(known, what);
    return ctx.AllocateOutput(0, Shape{images.dim(0), known[0], known[1], images.dim(3)});
  }
  // Returns the transform of an image.
  static const float* TransformOf(const KernelContext& ctx, int64_t image) {
    const Tensor& transforms = ctx.input(1);
    return transforms.data<float>() + (transforms.shape().dim(0) == 1 ? 0 : image * 8);
  }

  // Calls at(row, column, i) with the place in `from`, which has rows and columns, of each pixel i of a row of the
  // result, or skip(i) for a pixel without a place.
  template <typename Image, typename At, typename Skip>
  void ForRow(const float* t, const Image& from, int64_t y, int64_t columns, const At& at, const Skip& skip) const {
    const auto fy = static_cast<float>(y);
    for (int64_t i = 0; i < columns; ++i) {
      const auto x = static_cast<float>(i);
      const float k = t[6] * x + t[7] * fy + 1;
      if (k == 0) {
        skip(i);
        continue;
      }
      const float column = place_((t[0] * x + t[1] * fy + t[2]) / k, from.columns);
      at(place_((t[3] * x + t[4] * fy + t[5]) / k, from.rows), column, i);
    }
  }

  DType dtype() const { return dtype_; }
  bool nearest() const { return nearest_; }

 private:
  const DType dtype_;
  const bool nearest_;
  const PlaceFunction place_;
};

class ProjectiveTransformKernel final : public ProjectiveBase {
 public:
  explicit ProjectiveTransformKernel(const KernelConstruction& c) : ProjectiveBase(c) {}

  void Compute(KernelContext& ctx) override {
    Tensor& output = AllocateImages(ctx, 2, "output_shape");
    if (output.num_elements() == 0) return;
    if (dtype() == DType::kUint8) return Transform<uint8_t>(ctx, output);
    cpu::ForFloating(dtype(), "ImageProjectiveTransformV3", [&]<typename T>(T) { Transform<T>(ctx, output); });
  }

 private:
  template <typename T>
  void Transform(KernelContext& ctx, Tensor& output) const {
    const Sizes s(ctx.input(0).shape(), output.shape());
    const T* images = ctx.input(0).data<T>();
    const T fill = FromFloat<T>(ctx.input(3).scalar<float>());
    T* out = output.data<T>();
    const auto make_row = [&](int64_t r) {
      const int64_t image = r / s.rows;
      const FilledImage<T> from = {images + image * s.in_rows * s.in_columns * s.channels, s.in_rows, s.in_columns,
                                   s.channels, fill};
      T* to = out + r * s.columns * s.channels;
      ForRow(
          TransformOf(ctx, image), from, r % s.rows, s.columns,
          [&](float row, float column, int64_t i) {
            for (int64_t c = 0; c < s.channels; ++c) {
              to[i * s.channels + c] = nearest() ? from.Nearest(row, column, c) : from.Bilinear(row, column, c);
            }
          },
          [&](int64_t i) { std::fill(to + i * s.channels, to + (i + 1) * s.channels, fill); });
    };
    cpu::ForBlocks(
        s.batch * s.rows, ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) make_row(r);
        },
        s.columns * s.channels * 16);
  }
};

// Threads share the images: within one, the order of the pixels is that of their sums.
class ProjectiveTransformGradKernel final : public ProjectiveBase {
 public:
  explicit ProjectiveTransformGradKernel(const KernelConstruction& c) : ProjectiveBase(c) {}

  void Compute(KernelContext& ctx) override {
    Tensor& output = AllocateImages(ctx, 2, "size");
    if (output.num_elements() == 0) return;
    cpu::ForFloating(dtype(), "ImageProjectiveTransformV3Grad", [&]<typename T>(T) { Share<T>(ctx, output); });
  }

 private:
  template <typename T>
  void Share(KernelContext& ctx, Tensor& output) const {
    using W = Wide<T>;
    const Sizes s(output.shape(), ctx.input(0).shape());
    Tensor sums = std::is_same_v<T, W> ? output : ctx.AllocateTemp(kDTypeOf<W>, output.shape());
    const int64_t pixels = s.in_rows * s.in_columns * s.channels;
    const auto make_image = [&](int64_t image) {
      const ImageSums<W> to = {static_cast<W*>(sums.raw_data()) + image * pixels, s.in_rows, s.in_columns, s.channels};
      std::fill(to.sums, to.sums + pixels, W(0));
      for (int64_t y = 0; y < s.rows; ++y) {
        const T* grad = ctx.input(0).data<T>() + (image * s.rows + y) * s.columns * s.channels;
        ForRow(
            TransformOf(ctx, image), to, y, s.columns,
            [&](float row, float column, int64_t i) {
              nearest() ? to.Nearest(row, column, grad + i * s.channels)
                        : to.Bilinear(row, column, grad + i * s.channels);
            },
            [](int64_t) {});
      }
      if constexpr (std::is_same_v<T, W>) return;
      T* out = output.data<T>() + image * pixels;
      for (int64_t i = 0; i < pixels; ++i) out[i] = static_cast<T>(to.sums[i]);
    };
    cpu::ForBlocks(
        s.batch, ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          for (int64_t image = begin; image < end; ++image) make_image(image);
        },
        pixels + s.rows * s.columns * s.channels * 16);
  }
};

}  // namespace

void RegisterImageKernels(KernelRegistry& registry) {
  registry.Register<ResizeBilinearKernel>("ResizeBilinear", "CPU");
  registry.Register<ResizeBilinearGradKernel>("ResizeBilinearGrad", "CPU");
  registry.Register<ResizeNearestKernel>("ResizeNearestNeighbor", "CPU");
  registry.Register<ResizeNearestGradKernel>("ResizeNearestNeighborGrad", "CPU");
  registry.Register<ProjectiveTransformKernel>("ImageProjectiveTransformV3", "CPU");
  registry.Register<ProjectiveTransformGradKernel>("ImageProjectiveTransformV3Grad", "CPU");
}

}  // namespace cohort
