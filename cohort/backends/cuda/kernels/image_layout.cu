#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/kernels/image_layout.cu.h"

namespace cohort::cuda {
namespace {

// A block moves a square of elements through shared memory, so that both reads and writes are of neighbours.
template <typename T>
struct TransposeKernel {
  static constexpr bool kWaits = true;
  static constexpr int kSide = 32;
  static constexpr int kRowsAtOnce = 8;

  int64_t rows;
  int64_t columns;
  int64_t squares_across;
  const T* from;
  T* to;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    COHORT_SHARED(thread, T, square, kSide * (kSide + 1));
    const int x = static_cast<int>(thread.thread() % kSide);
    const int y = static_cast<int>(thread.thread() / kSide);
    const int64_t first_row = thread.block() / squares_across * kSide;
    const int64_t first_column = thread.block() % squares_across * kSide;
    for (int i = y; i < kSide; i += kRowsAtOnce) {
      const int64_t row = first_row + i, column = first_column + x;
      if (row < rows && column < columns) square[i * (kSide + 1) + x] = from[row * columns + column];
    }
    thread.Sync();
    for (int i = y; i < kSide; i += kRowsAtOnce) {
      const int64_t row = first_row + x, column = first_column + i;
      if (row < rows && column < columns) to[column * rows + row] = square[x * (kSide + 1) + i];
    }
  }
};

template <typename T>
struct ImageCopyKernel {
  ImageCopy copy;
  const T* from;
  T* to;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    const int64_t count = copy.batch * copy.to_rows * copy.to_columns * copy.channels;
    for (int64_t i = thread.first(); i < count; i += thread.step()) {
      const int64_t channel = i % copy.channels;
      int64_t rest = i / copy.channels;
      const int64_t column = rest % copy.to_columns - copy.left;
      rest /= copy.to_columns;
      const int64_t row = rest % copy.to_rows - copy.top;
      const int64_t image = rest / copy.to_rows;
      const bool inside = row >= 0 && row < copy.from_rows && column >= 0 && column < copy.from_columns;
      to[i] =
          inside ? from[((image * copy.from_rows + row) * copy.from_columns + column) * copy.channels + channel] : T(0);
    }
  }
};

}  // namespace

void LaunchTranspose(Driver& driver, StreamHandle stream, size_t element_bytes, int64_t rows, int64_t columns,
                     const void* from, void* to) {
  ForSizes(element_bytes, "a transpose", [&]<typename T>(T) {
    using Kernel = TransposeKernel<T>;
    const int64_t across = (columns + Kernel::kSide - 1) / Kernel::kSide;
    const int64_t down = (rows + Kernel::kSide - 1) / Kernel::kSide;
    LaunchSize size;
    size.threads[0] = Kernel::kSide * Kernel::kRowsAtOnce;
    size.blocks[0] = static_cast<uint32_t>(across * down);
    Launch(driver, stream, size, Kernel{rows, columns, across, static_cast<const T*>(from), static_cast<T*>(to)});
  });
}

void LaunchImageCopy(Driver& driver, StreamHandle stream, size_t element_bytes, const ImageCopy& copy, const void* from,
                     void* to) {
  ForSizes(element_bytes, "a copy of images", [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(copy.batch * copy.to_rows * copy.to_columns * copy.channels),
           ImageCopyKernel<T>{copy, static_cast<const T*>(from), static_cast<T*>(to)});
  });
}

}  // namespace cohort::cuda
