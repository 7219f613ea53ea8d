// A block sorts the positions of a row (a bitonic sort): in shared memory, or in device memory if the row is long.
#include <type_traits>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/kernels/top_k.cu.h"

namespace cohort::cuda {
namespace {

constexpr int64_t kTile = 4096;  // positions in shared memory
constexpr int64_t kMostThreads = 256;
constexpr int64_t kMostBlocks = 1024;

// The number of positions that are sorted: a power of two. Those behind the row come last.
int64_t PaddedSize(int64_t columns) {
  int64_t size = 1;
  while (size < columns) size *= 2;
  return size;
}

int64_t BlocksFor(int64_t rows) { return rows < kMostBlocks ? rows : kMostBlocks; }

template <typename T, typename Index>
struct SortRows {
  static constexpr bool kWaits = true;
  TopKArgs args;
  int64_t padded;

  // Returns whether position a comes before position b, which is another one.
  COHORT_KERNEL bool ComesBefore(const T* row, uint32_t a, uint32_t b) const {
    if (a >= args.columns || b >= args.columns) return a < b;
    const auto x = static_cast<Wide<T>>(row[a]);
    const auto y = static_cast<Wide<T>>(row[b]);
    if (x > y) return true;
    if (x < y) return false;
    if constexpr (std::is_floating_point_v<Wide<T>>) {
      if ((x != x) != (y != y)) return x != x;
    }
    return a < b;
  }

  COHORT_KERNEL void operator()(const Thread& t) const {
    COHORT_SHARED(t, uint32_t, tile, kTile);
    uint32_t* order = padded <= kTile ? tile : static_cast<uint32_t*>(args.scratch) + t.block() * padded;
    for (int64_t r = t.block(); r < args.rows; r += t.blocks()) {
      const T* row = static_cast<const T*>(args.in) + r * args.columns;
      for (int64_t i = t.thread(); i < padded; i += t.threads()) order[i] = static_cast<uint32_t>(i);
      t.Sync();
      for (int64_t run = 2; run <= padded; run *= 2) {
        for (int64_t away = run / 2; away > 0; away /= 2) {
          for (int64_t pair = t.thread(); pair < padded / 2; pair += t.threads()) {
            const int64_t low = pair / away * away * 2 + pair % away;
            const bool rises = (low & run) == 0;
            const uint32_t a = order[low];
            const uint32_t b = order[low + away];
            if (ComesBefore(row, b, a) == rises) {
              order[low] = b;
              order[low + away] = a;
            }
          }
          t.Sync();
        }
      }
      for (int64_t i = t.thread(); i < args.k; i += t.threads()) {
        static_cast<T*>(args.values)[r * args.k + i] = row[order[i]];
        static_cast<Index*>(args.indices)[r * args.k + i] = static_cast<Index>(order[i]);
      }
      t.Sync();  // before the next row
    }
  }
};

}  // namespace

int64_t TopKScratchBytes(int64_t rows, int64_t columns) {
  const int64_t padded = PaddedSize(columns);
  return padded <= kTile ? 0 : BlocksFor(rows) * padded * static_cast<int64_t>(sizeof(uint32_t));
}

void LaunchTopK(Driver& driver, StreamHandle stream, ElementType type, const TopKArgs& args) {
  const int64_t padded = PaddedSize(args.columns);
  LaunchSize size;
  size.blocks[0] = static_cast<uint32_t>(BlocksFor(args.rows));
  size.threads[0] = static_cast<uint32_t>(padded / 2 < 32 ? 32 : padded / 2 < kMostThreads ? padded / 2 : kMostThreads);
  ForNumbers(type, "TopKV2", [&]<typename T>(T) {
    if (args.wide_indices)
      Launch(driver, stream, size, SortRows<T, int64_t>{args, padded});
    else
      Launch(driver, stream, size, SortRows<T, int32_t>{args, padded});
  });
}

}  // namespace cohort::cuda
