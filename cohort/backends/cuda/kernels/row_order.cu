// A bitonic sort. A block sorts kTile keys in shared memory. The steps of the sort that compare keys further away from
// each other go through device memory.
#include <string>

#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/kernels/row_order.cu.h"

namespace cohort::cuda {
namespace {

constexpr int64_t kTile = 2048;
constexpr int64_t kMostThreads = 256;
constexpr int kMostBits = 41;  // a launch has less than 2^31 blocks, each for a tile

template <typename Index>
struct MakeKeys {
  const Index* indices;
  int64_t n;
  int64_t rows;
  RowOrder order;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < order.size; i += t.step()) {
      const int64_t row = i < n ? static_cast<int64_t>(indices[i]) : -1;
      order.keys[i] = row >= 0 && row < rows ? (static_cast<uint64_t>(row) << order.bits) | static_cast<uint64_t>(i)
                                             : RowOrder::kNoRow;
    }
  }
};

// Compares the keys of pair `pair`, whose distance is `away`. Keys are to rise in a run of `run` keys, and to fall in
// the next.
COHORT_KERNEL void CompareAndSwap(uint64_t* keys, int64_t first_of_keys, int64_t pair, int64_t away, int64_t run) {
  const int64_t low = pair / away * away * 2 + pair % away;
  const bool rises = ((first_of_keys + low) & run) == 0;
  const uint64_t a = keys[low];
  const uint64_t b = keys[low + away];
  if ((a > b) == rises) {
    keys[low] = b;
    keys[low + away] = a;
  }
}

// Runs the steps of a sort whose pairs lie inside a tile: of the runs from `first_run` to `last_run`.
struct SortTiles {
  static constexpr bool kWaits = true;
  uint64_t* keys;
  int64_t tile;  // keys of a tile, a power of two, at most kTile
  int64_t first_run;
  int64_t last_run;

  COHORT_KERNEL void operator()(const Thread& t) const {
    COHORT_SHARED(t, uint64_t, own, kTile);
    const int64_t first = t.block() * tile;
    for (int64_t i = t.thread(); i < tile; i += t.threads()) own[i] = keys[first + i];
    t.Sync();
    for (int64_t run = first_run; run <= last_run; run *= 2) {
      for (int64_t away = run / 2 < tile / 2 ? run / 2 : tile / 2; away > 0; away /= 2) {
        for (int64_t pair = t.thread(); pair < tile / 2; pair += t.threads()) {
          CompareAndSwap(own, first, pair, away, run);
        }
        t.Sync();
      }
    }
    for (int64_t i = t.thread(); i < tile; i += t.threads()) keys[first + i] = own[i];
  }
};

struct SortFar {
  uint64_t* keys;
  int64_t pairs;
  int64_t away;
  int64_t run;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t pair = t.first(); pair < pairs; pair += t.step()) CompareAndSwap(keys, 0, pair, away, run);
  }
};

}  // namespace

RowOrder RowOrderFor(int64_t n) {
  RowOrder order;
  while ((int64_t{1} << order.bits) < n) ++order.bits;
  order.size = int64_t{1} << order.bits;
  return order;
}

bool RowOrderFits(const RowOrder& order, int64_t rows) {
  return order.bits <= kMostBits && rows < (int64_t{1} << (62 - order.bits));
}

void LaunchRowOrder(Driver& driver, StreamHandle stream, ElementType index, const void* indices, int64_t n,
                    int64_t rows, const RowOrder& order) {
  if (index == ElementType::kInt64) {
    Launch(driver, stream, SizeFor(order.size),
           MakeKeys<int64_t>{static_cast<const int64_t*>(indices), n, rows, order});
  } else {
    Launch(driver, stream, SizeFor(order.size),
           MakeKeys<int32_t>{static_cast<const int32_t*>(indices), n, rows, order});
  }
  if (order.size == 1) return;
  const int64_t tile = order.size < kTile ? order.size : kTile;
  LaunchSize size;
  size.threads[0] = static_cast<uint32_t>(tile / 2 < kMostThreads ? tile / 2 : kMostThreads);
  size.blocks[0] = static_cast<uint32_t>(order.size / tile);
  Launch(driver, stream, size, SortTiles{order.keys, tile, 2, tile});
  for (int64_t run = 2 * tile; run <= order.size; run *= 2) {
    for (int64_t away = run / 2; away >= tile; away /= 2) {
      Launch(driver, stream, SizeFor(order.size / 2), SortFar{order.keys, order.size / 2, away, run});
    }
    Launch(driver, stream, size, SortTiles{order.keys, tile, run, run});
  }
}

}  // namespace cohort::cuda
