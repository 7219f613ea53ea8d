// Sums of rows by index. The positions, sorted by row, are cut into chunks. A thread adds up one column of one chunk.
// The sums of rows that lie inside of a chunk are results. A row that goes on in other chunks has a partial sum in
// each; the second kernel adds these in the order of the chunks. So the same values give the same bits.
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/limits.h"
#include "cohort/backends/cuda/dialect/wrapping.h"
#include "cohort/backends/cuda/kernels/moves.h"
#include "cohort/backends/cuda/kernels/segment_sum.cu.h"

namespace cohort::cuda {
namespace {

constexpr int64_t kChunk = 64;

int64_t ChunksOf(int64_t n) { return (n + kChunk - 1) / kChunk; }

template <typename T>
struct SumChunks {
  using W = Wide<T>;
  SegmentSumArgs args;
  Divider columns;

  COHORT_KERNEL uint64_t RowAt(int64_t place) const {
    if (place < 0 || place >= args.n) return RowOrder::kNoRow;
    const uint64_t key = args.order.keys[place];
    return key == RowOrder::kNoRow ? key : key >> args.order.bits;
  }
  // Returns the row of `out` for the row that begins at `place`.
  COHORT_KERNEL int64_t OutRow(int64_t place) const {
    const uint64_t mask = (uint64_t{1} << args.order.bits) - 1;
    return static_cast<int64_t>(args.at_first ? args.order.keys[place] & mask : RowAt(place));
  }
  COHORT_KERNEL void operator()(const Thread& t) const {
    const int64_t chunks = (args.n + kChunk - 1) / kChunk;
    const uint64_t mask = (uint64_t{1} << args.order.bits) - 1;
    const auto* data = static_cast<const T*>(args.data);
    auto* out = static_cast<T*>(args.out);
    auto* first_sums = static_cast<W*>(args.partial);      // of rows that began in a chunk before
    auto* last_sums = first_sums + chunks * args.columns;  // of rows that begin here and go on in the next chunk
    for (int64_t i = t.first(); i < chunks * args.columns; i += t.step()) {
      int64_t chunk;
      const int64_t column = columns.Split(i, &chunk);
      const int64_t begin = chunk * kChunk;
      const int64_t end = begin + kChunk < args.n ? begin + kChunk : args.n;
      const uint64_t before = RowAt(begin - 1);
      W sum = 0;
      int64_t first = begin;  // where the row begins, if that is in this chunk
      for (int64_t place = begin; place < end; ++place) {
        const uint64_t row = RowAt(place);
        if (row == RowOrder::kNoRow) break;
        const auto position = static_cast<int64_t>(args.order.keys[place] & mask);
        sum = AddOf(sum, static_cast<W>(data[position * args.columns + column]));
        const bool goes_on = RowAt(place + 1) == row;
        if (goes_on && place + 1 < end) continue;
        if (row == before) {
          first_sums[i] = sum;
        } else if (goes_on) {
          last_sums[i] = sum;
        } else {
          out[OutRow(first) * args.columns + column] = static_cast<T>(sum);
        }
        sum = 0;
        first = place + 1;
      }
    }
  }
};

// Adds up the partial sums of a row, on the threads of the chunk in which the row begins.
template <typename T>
struct SumPartials {
  using W = Wide<T>;
  SumChunks<T> chunks_of;
  Divider columns;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const SegmentSumArgs& args = chunks_of.args;
    const int64_t chunks = (args.n + kChunk - 1) / kChunk;
    const auto* first_sums = static_cast<const W*>(args.partial);
    const auto* last_sums = first_sums + chunks * args.columns;
    for (int64_t i = t.first(); i < (chunks - 1) * args.columns; i += t.step()) {
      int64_t chunk;
      const int64_t column = columns.Split(i, &chunk);
      const int64_t begin = chunk * kChunk;
      const uint64_t row = chunks_of.RowAt(begin + kChunk - 1);
      if (row == RowOrder::kNoRow || row != chunks_of.RowAt(begin + kChunk) || row == chunks_of.RowAt(begin - 1))
        continue;
      W sum = last_sums[i];
      for (int64_t next = chunk + 1; next < chunks && chunks_of.RowAt(next * kChunk) == row; ++next) {
        sum = AddOf(sum, first_sums[next * args.columns + column]);
      }
      int64_t first = begin + kChunk - 1;
      while (first > begin && chunks_of.RowAt(first - 1) == row) --first;
      static_cast<T*>(args.out)[chunks_of.OutRow(first) * args.columns + column] = static_cast<T>(sum);
    }
  }
};

template <typename Index>
struct FirstPositions {
  const Index* indices;
  int64_t n;
  int64_t limit;  // indices below 0 and from here on do not count
  RowOrder order;
  Index* rows;

  COHORT_KERNEL void operator()(const Thread& t) const {
    constexpr Index kNone = kLowest<Index>;
    const uint64_t mask = (uint64_t{1} << order.bits) - 1;
    for (int64_t i = t.first(); i < n; i += t.step()) {
      const Index index = indices[i];
      if (index < 0 || static_cast<int64_t>(index) >= limit) rows[i] = index == kNone ? Index{-1} : index;
      const uint64_t key = order.keys[i];
      if (key == RowOrder::kNoRow) continue;
      const uint64_t row = key >> order.bits;
      const bool repeats = i > 0 && order.keys[i - 1] >> order.bits == row;
      rows[key & mask] = repeats ? kNone : static_cast<Index>(row);
    }
  }
};

}  // namespace

int64_t SegmentSumPartialBytes(ElementType type, int64_t n, int64_t columns) {
  int64_t bytes = 0;
  ForNumbers(type, "a sum of rows",
             [&]<typename T>(T) { bytes = 2 * ChunksOf(n) * columns * static_cast<int64_t>(sizeof(Wide<T>)); });
  return bytes;
}

void LaunchSegmentSum(Driver& driver, StreamHandle stream, ElementType type, const SegmentSumArgs& args) {
  ForNumbers(type, "a sum of rows", [&]<typename T>(T) {
    const SumChunks<T> chunks{args, Divider(args.columns)};
    Launch(driver, stream, SizeFor(ChunksOf(args.n) * args.columns), chunks);
    if (ChunksOf(args.n) == 1) return;
    Launch(driver, stream, SizeFor((ChunksOf(args.n) - 1) * args.columns), SumPartials<T>{chunks, chunks.columns});
  });
}

void LaunchFirstPositions(Driver& driver, StreamHandle stream, ElementType index, const void* indices, int64_t n,
                          int64_t limit, const RowOrder& order, void* rows) {
  ForIndices(index, "the first positions of rows", [&]<typename Index>(Index) {
    Launch(driver, stream, SizeFor(n),
           FirstPositions<Index>{static_cast<const Index*>(indices), n, limit, order, static_cast<Index*>(rows)});
  });
}

}  // namespace cohort::cuda
