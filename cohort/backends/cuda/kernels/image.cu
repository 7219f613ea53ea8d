// Images of other sizes, their gradients, and images whose pixels are moved. Each thread computes one element of the
// result, as the CPU's kernels do. A gradient by the images adds up what the pixels of the result that are next to an
// element give to it, in their order, so nothing is added by several threads.
#include <cmath>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/kernels/divider.h"
#include "cohort/backends/cuda/kernels/image.cu.h"

namespace cohort::cuda {
namespace {

// Takes numbers of elements of images apart.
struct Points {
  Divider rows, columns, channels;

  Points(const int64_t (&size)[2], int64_t channels_of_image)
      : rows(size[0]), columns(size[1]), channels(channels_of_image) {}
};
struct Point {
  int64_t image, row, column, channel;

  COHORT_KERNEL Point(int64_t number, const Points& points) {
    int64_t rest;
    channel = points.channels.Split(number, &rest);
    column = points.columns.Split(rest, &rest);
    row = points.rows.Split(rest, &image);
  }
};

COHORT_KERNEL int64_t IndexIn(const int64_t (&size)[2], int64_t channels, int64_t image, int64_t row, int64_t column,
                              int64_t channel) {
  return ((image * size[0] + row) * size[1] + column) * channels + channel;
}

template <typename T>
COHORT_KERNEL float AsFloat(T value) {
  return static_cast<float>(static_cast<Wide<T>>(value));
}

template <typename T>
COHORT_KERNEL T FromFloat(float value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return value >= 0 ? static_cast<uint8_t>(value < 255 ? value : 255) : uint8_t{0};
  } else {
    return static_cast<T>(value);
  }
}

COHORT_KERNEL int64_t Inside(float at, int64_t size) {
  const auto whole = static_cast<int64_t>(at);
  return whole < 0 ? 0 : whole < size ? whole : size - 1;
}

// The place of a row or column of a result: between two rows or columns of the image.
struct Place {
  int64_t lower, upper;
  float part;

  COHORT_KERNEL Place(const ResizeSizes& s, int axis, int64_t i) {
    const auto number = static_cast<float>(i);
    const float at = s.half_pixel_centers ? (number + 0.5f) * s.scale[axis] - 0.5f : number * s.scale[axis];
    lower = Inside(std::floor(at), s.in[axis]);
    upper = Inside(std::ceil(at), s.in[axis]);
    part = at - std::floor(at);
  }
};

COHORT_KERNEL int64_t NearestPlace(const ResizeSizes& s, int axis, int64_t i) {
  const float at = (static_cast<float>(i) + (s.half_pixel_centers ? 0.5f : 0.0f)) * s.scale[axis];
  return Inside(s.align_corners ? std::round(at) : std::floor(at), s.in[axis]);
}

// Returns the first row or column of the result whose place, which grows with it, is not below `in`.
template <typename PlaceOf>
COHORT_KERNEL int64_t FirstFrom(int64_t in, int64_t out, const PlaceOf& place) {
  int64_t first = 0, end = out;
  while (first < end) {
    const int64_t middle = (first + end) / 2;
    if (place(middle) < in) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first;
}

template <typename T>
struct ResizeBilinearKernel {
  ResizeSizes s;
  Points points;
  int64_t count;
  const T* x;
  float* y;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < count; i += t.step()) {
      const Point p(i, points);
      const Place row(s, 0, p.row), column(s, 1, p.column);
      const auto at = [&](int64_t r, int64_t c) {
        return AsFloat(x[IndexIn(s.in, s.channels, p.image, r, c, p.channel)]);
      };
      const float above = at(row.lower, column.lower), below = at(row.upper, column.lower);
      const float top = above + (at(row.lower, column.upper) - above) * column.part;
      const float bottom = below + (at(row.upper, column.upper) - below) * column.part;
      y[i] = top + (bottom - top) * row.part;
    }
  }
};

template <typename T>
struct ResizeBilinearGradientKernel {
  ResizeSizes s;
  Points points;
  int64_t count;
  const float* dy;
  T* dx;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < count; i += t.step()) {
      const Point p(i, points);
      const int64_t first_row = FirstFrom(p.row, s.out[0], [this](int64_t r) { return Place(s, 0, r).upper; });
      const int64_t first_column = FirstFrom(p.column, s.out[1], [this](int64_t c) { return Place(s, 1, c).upper; });
      Wide<T> sum = 0;
      for (int64_t r = first_row; r < s.out[0]; ++r) {
        const Place row(s, 0, r);
        if (row.lower > p.row) break;
        if (row.lower == p.row) AddRow(p, r, 1 - row.part, first_column, sum);
        if (row.upper == p.row) AddRow(p, r, row.part, first_column, sum);
      }
      dx[i] = static_cast<T>(sum);
    }
  }

  COHORT_KERNEL void AddRow(const Point& p, int64_t r, float weight, int64_t first_column, Wide<T>& sum) const {
    for (int64_t c = first_column; c < s.out[1]; ++c) {
      const Place column(s, 1, c);
      if (column.lower > p.column) break;
      const float g = dy[IndexIn(s.out, s.channels, p.image, r, c, p.channel)] * weight;
      if (column.lower == p.column) sum += static_cast<Wide<T>>(g * (1 - column.part));
      if (column.upper == p.column) sum += static_cast<Wide<T>>(g * column.part);
    }
  }
};

template <typename T>
struct ResizeNearestKernel {
  ResizeSizes s;
  Points points;
  int64_t count;
  const T* x;
  T* y;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < count; i += t.step()) {
      const Point p(i, points);
      const int64_t row = NearestPlace(s, 0, p.row), column = NearestPlace(s, 1, p.column);
      y[i] = x[IndexIn(s.in, s.channels, p.image, row, column, p.channel)];
    }
  }
};

template <typename T>
struct ResizeNearestGradientKernel {
  ResizeSizes s;
  Points points;
  int64_t count;
  const T* dy;
  T* dx;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const auto row_of = [this](int64_t r) { return NearestPlace(s, 0, r); };
    const auto column_of = [this](int64_t c) { return NearestPlace(s, 1, c); };
    for (int64_t i = t.first(); i < count; i += t.step()) {
      const Point p(i, points);
      const int64_t first_row = FirstFrom(p.row, s.out[0], row_of);
      const int64_t first_column = FirstFrom(p.column, s.out[1], column_of);
      Wide<T> sum = 0;
      for (int64_t r = first_row; r < s.out[0] && row_of(r) == p.row; ++r) {
        for (int64_t c = first_column; c < s.out[1] && column_of(c) == p.column; ++c) {
          sum += static_cast<Wide<T>>(dy[IndexIn(s.out, s.channels, p.image, r, c, p.channel)]);
        }
      }
      dx[i] = static_cast<T>(sum);
    }
  }
};

COHORT_KERNEL float Clamped(float at, float last) { return at < 0 ? 0 : last < at ? last : at; }

// Returns where a place outside of [0, size) is taken from. The result may still be outside, or NaN.
COHORT_KERNEL float FilledPlace(FillMode mode, float at, int64_t size) {
  const auto length = static_cast<float>(size);
  const float last = length - 1;
  if (mode == FillMode::kConstant) return at;
  if (mode == FillMode::kNearest) return Clamped(at, last);
  if (mode == FillMode::kReflect) {
    if (at < 0) {
      at += 2 * length * std::trunc(-at / (2 * length));
      at = at < -length ? at + 2 * length : -at - 1;
    } else if (at > last) {
      at -= 2 * length * std::trunc(at / (2 * length));
      if (at >= length) at = 2 * length - at - 1;
    }
    return Clamped(at, last);
  }
  if (size <= 1) return at == at ? 0 : at;
  if (at < 0) {
    at += length * (std::trunc(-at / last) + 1);
  } else if (at > last) {
    at -= length * std::trunc(at / last);
  }
  return Clamped(at, last);
}

// Places above it, and NaN, have no distances to pixels.
constexpr float kMostPlace = 1 << 23;

template <typename T>
struct ProjectiveKernel {
  ProjectiveArgs args;
  Points points;
  int64_t count;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    const T fill = FromFloat<T>(args.fill);
    T* out = static_cast<T*>(args.out);
    for (int64_t i = thread.first(); i < count; i += thread.step()) {
      const Point p(i, points);
      const float* t = args.transforms + (args.one_transform ? 0 : p.image * 8);
      const auto x = static_cast<float>(p.column), y = static_cast<float>(p.row);
      const float k = t[6] * x + t[7] * y + 1;
      if (k == 0) {
        out[i] = fill;
        continue;
      }
      const float column = FilledPlace(args.fill_mode, (t[0] * x + t[1] * y + t[2]) / k, args.in[1]);
      const float row = FilledPlace(args.fill_mode, (t[3] * x + t[4] * y + t[5]) / k, args.in[0]);
      out[i] = args.nearest ? At(p, fill, std::round(row), std::round(column)) : Between(p, fill, row, column);
    }
  }

  COHORT_KERNEL T At(const Point& p, T fill, float row, float column) const {
    const bool inside =
        row >= 0 && row < static_cast<float>(args.in[0]) && column >= 0 && column < static_cast<float>(args.in[1]);
    if (!inside) return fill;
    return static_cast<const T*>(args.images)[IndexIn(args.in, args.channels, p.image, static_cast<int64_t>(row),
                                                      static_cast<int64_t>(column), p.channel)];
  }
  COHORT_KERNEL T Between(const Point& p, T fill, float row, float column) const {
    const float top = std::floor(row), left = std::floor(column), bottom = top + 1, right = left + 1;
    if (!(std::abs(row) < kMostPlace && std::abs(column) < kMostPlace)) return fill;
    const auto between = [&](float at) {
      return (right - column) * AsFloat(At(p, fill, at, left)) + (column - left) * AsFloat(At(p, fill, at, right));
    };
    return FromFloat<T>((bottom - row) * between(top) + (row - top) * between(bottom));
  }
};

}  // namespace

void LaunchResizeBilinear(Driver& driver, StreamHandle stream, ElementType type, const ResizeSizes& sizes,
                          const void* x, float* y) {
  ForNumbers(type, "ResizeBilinear", [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(sizes.out_count()),
           ResizeBilinearKernel<T>{sizes, Points(sizes.out, sizes.channels), sizes.out_count(),
                                   static_cast<const T*>(x), y});
  });
}

void LaunchResizeBilinearGradient(Driver& driver, StreamHandle stream, ElementType type, const ResizeSizes& sizes,
                                  const float* dy, void* dx) {
  ForFloating(type, "ResizeBilinearGrad", [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(sizes.in_count()),
           ResizeBilinearGradientKernel<T>{sizes, Points(sizes.in, sizes.channels), sizes.in_count(), dy,
                                           static_cast<T*>(dx)});
  });
}

void LaunchResizeNearest(Driver& driver, StreamHandle stream, size_t bytes, const ResizeSizes& sizes, const void* x,
                         void* y) {
  ForSizes(bytes, "ResizeNearestNeighbor", [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(sizes.out_count()),
           ResizeNearestKernel<T>{sizes, Points(sizes.out, sizes.channels), sizes.out_count(), static_cast<const T*>(x),
                                  static_cast<T*>(y)});
  });
}

void LaunchResizeNearestGradient(Driver& driver, StreamHandle stream, ElementType type, const ResizeSizes& sizes,
                                 const void* dy, void* dx) {
  ForFloating(type, "ResizeNearestNeighborGrad", [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(sizes.in_count()),
           ResizeNearestGradientKernel<T>{sizes, Points(sizes.in, sizes.channels), sizes.in_count(),
                                          static_cast<const T*>(dy), static_cast<T*>(dx)});
  });
}

void LaunchProjectiveTransform(Driver& driver, StreamHandle stream, ElementType type, const ProjectiveArgs& args) {
  const int64_t count = args.batch * args.size[0] * args.size[1] * args.channels;
  const Points points(args.size, args.channels);
  if (type == ElementType::kUint8) {
    return Launch(driver, stream, SizeFor(count), ProjectiveKernel<uint8_t>{args, points, count});
  }
  ForFloating(type, "ImageProjectiveTransformV3", [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(count), ProjectiveKernel<T>{args, points, count});
  });
}

}  // namespace cohort::cuda
