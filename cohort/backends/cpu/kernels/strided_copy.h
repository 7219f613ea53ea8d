// One copy loop for all ops that move elements between regular positions: transpose, slices, padding, tiles, reversal.
// Internal to backends/cpu/kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/strided_layout.h"

namespace cohort::cpu {

using cohort::DenseStrides;
using cohort::StridedLayout;

template <typename T>
void CopyRun(const StridedLayout::Dim& d, const T* from, T* to) {
  if (d.to == 1 && d.from == 1) {
    std::copy(from, from + d.size, to);
  } else if (d.to == 1 && d.from == 0) {
    std::fill(to, to + d.size, *from);
  } else {
    for (int64_t i = 0; i < d.size; ++i) to[i * d.to] = from[i * d.from];
  }
}

template <typename T>
void CopyTiles(const StridedLayout::Dim& rows, const StridedLayout::Dim& columns, const T* from, T* to) {
  constexpr int64_t kTile = StridedLayout::kTile;
  for (int64_t i0 = 0; i0 < rows.size; i0 += kTile) {
    const int64_t i1 = std::min(i0 + kTile, rows.size);
    for (int64_t j0 = 0; j0 < columns.size; j0 += kTile) {
      const int64_t j1 = std::min(j0 + kTile, columns.size);
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j) to[i * rows.to + j] = from[i + j * columns.from];
      }
    }
  }
}

// Copies every element of the layout, on up to `threads` threads. Requires: source and target do not overlap.
template <typename T>
void CopyStrided(StridedLayout layout, const T* from, T* to, int threads) {
  if (layout.elements() == 0) return;
  if (layout.rank() == 0) {
    *to = *from;
    return;
  }
  const bool tiles = layout.PrepareTiles();
  const size_t inner = tiles ? 2 : 1;
  const size_t outer_rank = layout.rank() - inner;
  int64_t outer = 1;
  for (size_t d = 0; d < outer_rank; ++d) outer *= layout.dim(d).size;
  ForBlocks(
      outer, threads,
      [&](int64_t begin, int64_t end) {
        std::array<int64_t, StridedLayout::kMaxDims> index{};
        int64_t source = 0, target = 0, rest = begin;
        for (size_t d = outer_rank; d-- > 0;) {
          index[d] = rest % layout.dim(d).size;
          rest /= layout.dim(d).size;
          source += index[d] * layout.dim(d).from;
          target += index[d] * layout.dim(d).to;
        }
        for (int64_t run = begin; run < end; ++run) {
          if (tiles) {
            CopyTiles(layout.dim(outer_rank), layout.dim(outer_rank + 1), from + source, to + target);
          } else {
            CopyRun(layout.dim(outer_rank), from + source, to + target);
          }
          for (size_t d = outer_rank; d-- > 0;) {
            source += layout.dim(d).from;
            target += layout.dim(d).to;
            if (++index[d] < layout.dim(d).size) break;
            source -= layout.dim(d).size * layout.dim(d).from;
            target -= layout.dim(d).size * layout.dim(d).to;
            index[d] = 0;
          }
        }
      },
      layout.elements() / outer);
}

}  // namespace cohort::cpu
