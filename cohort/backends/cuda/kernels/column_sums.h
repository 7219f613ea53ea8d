// Sums over the rows of something with rows and columns, for kernels: SumColumns. A file *.cu includes it.
//
// The work has two stages, and the order of its additions depends on the sizes alone, so the same values give the same
// bits. In the first stage each thread adds some rows of one column. In the second stage the blocks add the threads'
// sums in float64, and hand the sum of each column to a function. If there are many sums of threads, groups of them are
// added in between.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

// How the rows and columns are divided among blocks and threads.
struct ColumnSums {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t block_columns = 1;  // a block adds this many columns
  int64_t block_rows = 1;     // this many threads of a block share a column
  int64_t chunks = 1;         // the rows are divided into so many parts, one a block
  int64_t chunk_rows = 1;

  static constexpr int64_t kThreads = 256;

  ColumnSums() = default;
  // A thread adds about `rows_of_thread` rows. Requires: all are at least 1.
  ColumnSums(int64_t all_rows, int64_t all_columns, int64_t rows_of_thread = 64)
      : rows(all_rows), columns(all_columns) {
    constexpr int64_t kMostChunks = 512;
    block_columns = columns < kThreads ? columns : kThreads;
    block_rows = kThreads / block_columns;
    chunks = Ceil(rows, block_rows * rows_of_thread);
    if (chunks > kMostChunks) chunks = kMostChunks;
    chunk_rows = Ceil(rows, chunks);
  }
  int64_t partials() const { return chunks * block_rows; }

  static int64_t Ceil(int64_t n, int64_t by) { return (n + by - 1) / by; }
};

// Returns the launch of the first stage: blocks(0) for the columns, blocks(1) for the chunks. A card takes 2^31 - 1
// blocks in the first direction, but only 65,535 in the second.
inline LaunchSize FirstStageSize(const ColumnSums& sums) {
  LaunchSize size;
  size.threads[0] = ColumnSums::kThreads;
  size.blocks[0] = static_cast<uint32_t>(ColumnSums::Ceil(sums.columns, sums.block_columns));
  size.blocks[1] = static_cast<uint32_t>(sums.chunks);
  return size;
}

// What a thread of the first stage does.
struct ColumnShare {
  bool works;  // false: the thread has nothing to do
  int64_t column;
  int64_t partial;  // the number of its sums among those of the column
  int64_t begin;    // its rows: begin, begin + step, ... below end
  int64_t end;
  int64_t step;

  COHORT_KERNEL ColumnShare(const Thread& thread, const ColumnSums& sums) {
    const int64_t lane = thread.thread() / sums.block_columns;
    column = thread.block() * sums.block_columns + thread.thread() % sums.block_columns;
    works = lane < sums.block_rows && column < sums.columns;
    partial = thread.block(1) * sums.block_rows + lane;
    const int64_t first = thread.block(1) * sums.chunk_rows;
    begin = first + lane;
    end = first + sums.chunk_rows < sums.rows ? first + sums.chunk_rows : sums.rows;
    step = sums.block_rows;
  }
};

// Returns how many bytes of scratch memory SumColumns needs for `values` sums of type A for each column.
template <typename A>
inline size_t ColumnSumsBytes(const ColumnSums& sums, int values = 1) {
  return static_cast<size_t>(sums.partials() * sums.columns * values) * sizeof(A);
}

// The first stage. Source has `void Add(int64_t row, int64_t column, A (&sums)[kValues]) const`.
template <typename A, int kValues, typename Source>
struct AddRowsKernel {
  Source source;
  ColumnSums sums;
  A* partial;  // [partials, kValues, columns]

  COHORT_KERNEL void operator()(const Thread& thread) const {
    const ColumnShare share(thread, sums);
    if (!share.works) return;
    A values[kValues] = {};
    for (int64_t row = share.begin; row < share.end; row += share.step) source.Add(row, share.column, values);
    for (int k = 0; k < kValues; ++k) {
      partial[(share.partial * kValues + k) * sums.columns + share.column] = values[k];
    }
  }
};

// How many of the threads' sums are added in between, and from how many on.
inline constexpr int64_t kGroup = 32;
inline constexpr int64_t kManyPartials = 256;

// Adds groups of rows of [partials, columns]. The sums take the place of the first rows of the groups.
template <typename A>
struct AddGroupsKernel {
  A* partial;
  int64_t partials;
  int64_t columns;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    const int64_t count = (partials + kGroup - 1) / kGroup * columns;
    for (int64_t i = thread.first(); i < count; i += thread.step()) {
      const int64_t first = i / columns * kGroup, column = i % columns;
      const int64_t end = first + kGroup < partials ? first + kGroup : partials;
      double sum = 0;
      for (int64_t p = first; p < end; ++p) sum += static_cast<double>(partial[p * columns + column]);
      partial[first * columns + column] = static_cast<A>(sum);
    }
  }
};

// The second stage. Finish has `void Store(int64_t column, const double (&sums)[kValues]) const`.
template <typename A, int kValues, typename Finish>
struct AddPartialsKernel {
  static constexpr bool kWaits = true;
  static constexpr int64_t kThreads = 256;

  const A* partial;
  int64_t partials;
  int64_t step;  // only one of so many rows of `partial` counts
  int64_t columns;
  int64_t block_columns;  // at most 32
  Finish finish;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    COHORT_SHARED(thread, double, shared, kThreads* kValues);
    const int64_t block_rows = kThreads / block_columns;
    const int64_t row = thread.thread() / block_columns;
    const int64_t column = thread.block() * block_columns + thread.thread() % block_columns;
    const bool works = row < block_rows && column < columns;
    double values[kValues] = {};
    if (works) {
      for (int64_t p = row; p * step < partials; p += block_rows) {
        for (int k = 0; k < kValues; ++k) {
          values[k] += static_cast<double>(partial[(p * step * kValues + k) * columns + column]);
        }
      }
    }
    for (int k = 0; k < kValues; ++k) shared[k * kThreads + thread.thread()] = values[k];
    thread.Sync();
    int64_t half = 1;
    while (half < block_rows) half *= 2;
    for (half /= 2; half > 0; half /= 2) {
      if (row < half && row + half < block_rows) {
        for (int k = 0; k < kValues; ++k) {
          shared[k * kThreads + thread.thread()] += shared[k * kThreads + thread.thread() + half * block_columns];
        }
      }
      thread.Sync();
    }
    if (row != 0 || !works) return;
    for (int k = 0; k < kValues; ++k) values[k] = shared[k * kThreads + thread.thread()];
    finish.Store(column, values);
  }
};

// Writes factor * sum. T is a floating type.
template <typename T>
struct StoreSums {
  T* to;
  double factor;
  COHORT_KERNEL void Store(int64_t column, const double (&sums)[1]) const {
    to[column] = T(static_cast<Wide<T>>(factor * sums[0]));
  }
};

// Enqueues the second stage alone, for sums that another kernel has begun. Overwrites `partial`.
template <int kValues, typename A, typename Finish>
void AddPartials(Driver& driver, StreamHandle stream, A* partial, int64_t partials, int64_t columns,
                 const Finish& finish) {
  using Kernel = AddPartialsKernel<A, kValues, Finish>;
  const int64_t block_columns = columns < kWarpSize ? columns : kWarpSize;
  LaunchSize size;
  size.threads[0] = Kernel::kThreads;
  size.blocks[0] = static_cast<uint32_t>(ColumnSums::Ceil(columns, block_columns));
  const int64_t step = partials > kManyPartials ? kGroup : 1;
  if (step > 1) {
    const int64_t sums = ColumnSums::Ceil(partials, kGroup) * columns * kValues;
    Launch(driver, stream, SizeFor(sums), AddGroupsKernel<A>{partial, partials, columns * kValues});
  }
  Launch(driver, stream, size, Kernel{partial, partials, step, columns, block_columns, finish});
}

// Enqueues both stages. `scratch` has ColumnSumsBytes<A>(sums, kValues) bytes.
template <typename A, int kValues, typename Source, typename Finish>
void SumColumns(Driver& driver, StreamHandle stream, const ColumnSums& sums, const Source& source, const Finish& finish,
                void* scratch) {
  A* partial = static_cast<A*>(scratch);
  Launch(driver, stream, FirstStageSize(sums), AddRowsKernel<A, kValues, Source>{source, sums, partial});
  AddPartials<kValues>(driver, stream, partial, sums.partials(), sums.columns, finish);
}

}  // namespace cohort::cuda
