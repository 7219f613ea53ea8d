// Pools and their gradients. Each thread computes one element of the result. A gradient by the input adds up what the
// windows around an element give to it, in the order of the windows, so nothing is added by several threads.
#include "cohort/backends/cuda/kernels/pooling.cu.h"

namespace cohort::cuda {
namespace {

// An element of an image.
struct Point {
  int64_t image;
  int64_t row;
  int64_t column;
  int64_t channel;

  // `size` is the number of rows and of columns.
  COHORT_KERNEL Point(int64_t number, const int64_t (&size)[2], int64_t channels) {
    channel = number % channels;
    int64_t rest = number / channels;
    column = rest % size[1];
    rest /= size[1];
    row = rest % size[0];
    image = rest / size[0];
  }
};

// The places from `begin` to `end` - 1 along one axis.
struct Span {
  int64_t begin;
  int64_t end;
};

// Returns the elements of window `place` that are inside the image.
COHORT_KERNEL Span InsideOf(const PoolSizes& s, int axis, int64_t place) {
  const int64_t first = place * s.strides[axis] - s.before[axis];
  const int64_t last = first + s.window[axis];
  return {first < 0 ? 0 : first, last < s.in[axis] ? last : s.in[axis]};
}

// Returns the windows that have element `at`.
COHORT_KERNEL Span WindowsAround(const PoolSizes& s, int axis, int64_t at) {
  const int64_t distance = at + s.before[axis];
  const int64_t reach = distance - s.window[axis];
  const int64_t first = reach < 0 ? 0 : reach / s.strides[axis] + 1;
  const int64_t last = distance / s.strides[axis] + 1;
  return {first, last < s.out[axis] ? last : s.out[axis]};
}

COHORT_KERNEL int64_t IndexIn(const int64_t (&size)[2], int64_t channels, int64_t image, int64_t row, int64_t column,
                              int64_t channel) {
  return ((image * size[0] + row) * size[1] + column) * channels + channel;
}

// The largest element of a window.
struct Largest {
  int64_t at = -1;  // its index in the image
  int64_t place = 0;

  template <typename T>
  COHORT_KERNEL Largest(const PoolSizes& s, const T* x, const Point& p, Activation of_x = Activation::kNone) {
    const Span rows = InsideOf(s, 0, p.row), columns = InsideOf(s, 1, p.column);
    const int64_t first_row = p.row * s.strides[0] - s.before[0], first_column = p.column * s.strides[1] - s.before[1];
    float best = 0;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        const int64_t index = IndexIn(s.in, s.channels, p.image, row, column, p.channel);
        const auto value = static_cast<float>(Activated(of_x, x[index]));
        if (at >= 0 && !(value > best) && value == value) continue;
        if (at >= 0 && best != best) continue;  // the first NaN stays
        at = index;
        best = value;
        place = (row - first_row) * s.window[1] + column - first_column;
      }
    }
  }
};

template <typename T, typename Place>
struct MaxPoolKernel {
  PoolSizes s;
  int64_t count;
  const T* x;
  Activation of_x;
  T* y;
  Place* places;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t i = thread.first(); i < count; i += thread.step()) {
      const Largest largest(s, x, Point(i, s.out, s.channels), of_x);
      y[i] = Activated(of_x, x[largest.at]);
      if (places != nullptr) places[i] = static_cast<Place>(largest.place);
    }
  }
};

template <typename T, typename Place>
struct MaxPoolGradientKernel {
  PoolSizes s;
  int64_t count;
  const Place* places;
  const T* dy;
  AppliedGradient applied;
  T* dx;

  // Each window has one place, so each element is asked for once.
  COHORT_KERNEL float GradientOf(int64_t window) const {
    const T g = dy[window];
    if (applied.activated == nullptr) return static_cast<float>(g);
    return static_cast<float>(applied.Apply(g, static_cast<const T*>(applied.activated)[window]));
  }

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t i = thread.first(); i < count; i += thread.step()) {
      const Point p(i, s.in, s.channels);
      const Span rows = WindowsAround(s, 0, p.row), columns = WindowsAround(s, 1, p.column);
      float sum = 0;
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        for (int64_t column = columns.begin; column < columns.end; ++column) {
          const int64_t place = (p.row + s.before[0] - row * s.strides[0]) * s.window[1] +  //
                                (p.column + s.before[1] - column * s.strides[1]);
          const int64_t window = IndexIn(s.out, s.channels, p.image, row, column, p.channel);
          if (static_cast<int64_t>(places[window]) == place) sum += GradientOf(window);
        }
      }
      dx[i] = T(sum);
    }
  }
};

template <typename T>
struct PickLargestKernel {
  PoolSizes s;
  int64_t count;
  const T* x;
  const T* from;
  T* picked;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t i = thread.first(); i < count; i += thread.step()) {
      picked[i] = from[Largest(s, x, Point(i, s.out, s.channels)).at];
    }
  }
};

template <typename T>
struct AvgPoolKernel {
  PoolSizes s;
  int64_t count;
  const T* x;
  Activation of_x;
  T* y;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t i = thread.first(); i < count; i += thread.step()) {
      const Point p(i, s.out, s.channels);
      const Span rows = InsideOf(s, 0, p.row), columns = InsideOf(s, 1, p.column);
      float sum = 0;
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        for (int64_t column = columns.begin; column < columns.end; ++column) {
          sum += static_cast<float>(Activated(of_x, x[IndexIn(s.in, s.channels, p.image, row, column, p.channel)]));
        }
      }
      y[i] = T(sum / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin)));
    }
  }
};

template <typename T>
struct AvgPoolGradientKernel {
  PoolSizes s;
  int64_t count;
  const T* dy;
  AppliedGradient applied;
  T* dx;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t i = thread.first(); i < count; i += thread.step()) {
      const Point p(i, s.in, s.channels);
      const Span rows = WindowsAround(s, 0, p.row), columns = WindowsAround(s, 1, p.column);
      float sum = 0;
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const Span high = InsideOf(s, 0, row);
        for (int64_t column = columns.begin; column < columns.end; ++column) {
          const Span wide = InsideOf(s, 1, column);
          const auto elements = static_cast<float>((high.end - high.begin) * (wide.end - wide.begin));
          sum += static_cast<float>(dy[IndexIn(s.out, s.channels, p.image, row, column, p.channel)]) / elements;
        }
      }
      const T result(sum);
      const bool applies = applied.activated != nullptr;
      dx[i] = applies ? applied.Apply(result, static_cast<const T*>(applied.activated)[i]) : result;
    }
  }
};

// Calls fn with a T of the type.
template <typename Fn>
void ForPools(ElementType type, const Fn& fn) {
  type == ElementType::kBfloat16 ? fn(BFloat16()) : fn(float());
}

// Calls fn with a Place of the size that the places of the pool have.
template <typename Fn>
void ForPlaces(const PoolSizes& sizes, const Fn& fn) {
  sizes.place_bytes() == 1 ? fn(uint8_t()) : fn(int64_t());
}

}  // namespace

void LaunchMaxPool(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes, const void* x,
                   void* y, void* places, Activation of_x) {
  ForPools(type, [&]<typename T>(T) {
    ForPlaces(sizes, [&]<typename Place>(Place) {
      Launch(driver, stream, SizeFor(sizes.out_count()),
             MaxPoolKernel<T, Place>{sizes, sizes.out_count(), static_cast<const T*>(x), of_x, static_cast<T*>(y),
                                     static_cast<Place*>(places)});
    });
  });
}

void LaunchMaxPoolGradient(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes,
                           const void* places, const void* dy, void* dx, const AppliedGradient& applied) {
  ForPools(type, [&]<typename T>(T) {
    ForPlaces(sizes, [&]<typename Place>(Place) {
      Launch(driver, stream, SizeFor(sizes.in_count()),
             MaxPoolGradientKernel<T, Place>{sizes, sizes.in_count(), static_cast<const Place*>(places),
                                             static_cast<const T*>(dy), applied, static_cast<T*>(dx)});
    });
  });
}

void LaunchPickLargest(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes, const void* x,
                       const void* from, void* picked) {
  ForPools(type, [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(sizes.out_count()),
           PickLargestKernel<T>{sizes, sizes.out_count(), static_cast<const T*>(x), static_cast<const T*>(from),
                                static_cast<T*>(picked)});
  });
}

void LaunchAvgPool(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes, const void* x,
                   void* y, Activation of_x) {
  ForPools(type, [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(sizes.out_count()),
           AvgPoolKernel<T>{sizes, sizes.out_count(), static_cast<const T*>(x), of_x, static_cast<T*>(y)});
  });
}

void LaunchAvgPoolGradient(Driver& driver, StreamHandle stream, ElementType type, const PoolSizes& sizes,
                           const void* dy, void* dx, const AppliedGradient& applied) {
  ForPools(type, [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(sizes.in_count()),
           AvgPoolGradientKernel<T>{sizes, sizes.in_count(), static_cast<const T*>(dy), applied, static_cast<T*>(dx)});
  });
}

}  // namespace cohort::cuda
