#include "cohort/backends/cuda/kernels/strided_copy.cu.h"

namespace cohort::cuda {
namespace {

template <typename T>
struct CopyPieces {
  StridedCopyArgs args;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const T* from = static_cast<const T*>(args.from);
    T* to = static_cast<T*>(args.to);
    for (int64_t i = t.first(); i < args.pieces; i += t.step()) {
      int64_t rest = i, source = 0, target = 0;
      for (int d = args.rank - 1; d > 0; --d) {
        int64_t outer;
        const int64_t index = args.dims[d].size.Split(rest, &outer);
        source += index * args.dims[d].from;
        target += index * args.dims[d].to;
        rest = outer;
      }
      if (args.rank > 0) {
        source += rest * args.dims[0].from;
        target += rest * args.dims[0].to;
      }
      to[target] = from[source];
    }
  }
};

// A block moves a square tile through shared memory, so that neighbouring threads read neighbouring elements of the
// source and write neighbouring elements of the target.
template <typename T>
struct CopyTransposed {
  static constexpr bool kWaits = true;
  static constexpr int64_t kTile = 32;
  static constexpr int64_t kRowsOfThreads = 8;

  StridedCopyArgs args;
  int64_t tiles;
  Divider row_tiles;
  Divider column_tiles;

  COHORT_KERNEL void operator()(const Thread& t) const {
    COHORT_SHARED(t, T, tile, kTile * (kTile + 1));
    const CopyDim& rows = args.dims[args.rank - 2];
    const CopyDim& columns = args.dims[args.rank - 1];
    const int64_t x = t.thread(0), y = t.thread(1);
    for (int64_t block = t.block(); block < tiles; block += t.blocks()) {
      int64_t rest, outer;
      const int64_t c0 = column_tiles.Split(block, &rest) * kTile;
      const int64_t r0 = row_tiles.Split(rest, &outer) * kTile;
      int64_t source = 0, target = 0;
      for (int d = args.rank - 3; d >= 0; --d) {
        int64_t next;
        const int64_t index = args.dims[d].size.Split(outer, &next);
        source += index * args.dims[d].from;
        target += index * args.dims[d].to;
        outer = next;
      }
      const T* from = static_cast<const T*>(args.from) + source;
      T* to = static_cast<T*>(args.to) + target;
      for (int64_t c = y; c < kTile; c += kRowsOfThreads) {
        if (r0 + x < rows.size.divisor() && c0 + c < columns.size.divisor()) {
          tile[c * (kTile + 1) + x] = from[r0 + x + (c0 + c) * columns.from];
        }
      }
      t.Sync();
      for (int64_t r = y; r < kTile; r += kRowsOfThreads) {
        if (r0 + r < rows.size.divisor() && c0 + x < columns.size.divisor()) {
          to[(r0 + r) * rows.to + c0 + x] = tile[x * (kTile + 1) + r];
        }
      }
      t.Sync();  // the next tile is written to the same memory
    }
  }
};

template <typename T>
struct PutPieces {
  PutSliceArgs args;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const T filler = args.fill == nullptr ? T() : *static_cast<const T*>(args.fill);
    for (int64_t i = t.first(); i < args.elements; i += t.step()) {
      int64_t rest = i, source = 0;
      bool inside = true;
      for (int d = args.rank - 1; d >= 0; --d) {
        const PutSliceArgs::Dim& dim = args.dims[d];
        int64_t outer;
        const int64_t away = dim.size.Split(rest, &outer) - dim.begin;
        const int64_t index = dim.stride == 1 ? away : away / dim.stride;
        inside = inside && index * dim.stride == away && index >= 0 && index < dim.count;
        source += index * dim.from;
        rest = outer;
      }
      static_cast<T*>(args.to)[i] = inside ? static_cast<const T*>(args.from)[source] : filler;
    }
  }
};

}  // namespace

void LaunchStridedCopy(Driver& driver, StreamHandle stream, const StridedCopyArgs& args) {
  ForMoves(args.piece_bytes, "a strided copy",
           [&]<typename T>(T) { Launch(driver, stream, SizeFor(args.pieces), CopyPieces<T>{args}); });
}

void LaunchTransposedCopy(Driver& driver, StreamHandle stream, const StridedCopyArgs& args) {
  ForSizes(args.piece_bytes, "a transposed copy", [&]<typename T>(T) {
    using Kernel = CopyTransposed<T>;
    const auto tiles_of = [](const CopyDim& dim) { return (dim.size.divisor() + Kernel::kTile - 1) / Kernel::kTile; };
    const CopyDim& rows = args.dims[args.rank - 2];
    const CopyDim& columns = args.dims[args.rank - 1];
    const int64_t outer = args.pieces / (rows.size.divisor() * columns.size.divisor());
    const int64_t tiles = outer * tiles_of(rows) * tiles_of(columns);
    LaunchSize size;
    size.threads[0] = Kernel::kTile;
    size.threads[1] = Kernel::kRowsOfThreads;
    size.blocks[0] = static_cast<uint32_t>(tiles < 65535 ? tiles : 65535);
    Launch(driver, stream, size, Kernel{args, tiles, Divider(tiles_of(rows)), Divider(tiles_of(columns))});
  });
}

void LaunchPutSlice(Driver& driver, StreamHandle stream, const PutSliceArgs& args) {
  ForSizes(args.element_bytes, "a padded copy",
           [&]<typename T>(T) { Launch(driver, stream, SizeFor(args.elements), PutPieces<T>{args}); });
}

}  // namespace cohort::cuda
