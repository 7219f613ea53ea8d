#include "cohort/backends/cuda/dialect/limits.h"
#include "cohort/backends/cuda/dialect/report.h"
#include "cohort/backends/cuda/kernels/gather.cu.h"
#include "cohort/backends/cuda/kernels/moves.h"

namespace cohort::cuda {
namespace {

template <typename T, typename Index>
struct GatherPieces {
  GatherArgs args;
  int64_t pieces;
  Divider inner;
  Divider n;
  Divider outer;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const auto* indices = static_cast<const Index*>(args.indices);
    for (int64_t i = t.first(); i < pieces; i += t.step()) {
      int64_t rest, block;  // block: batch * outer
      const int64_t piece = inner.Split(i, &rest);
      const int64_t column = n.Split(rest, &block);
      const int64_t position = outer.Divide(block) * args.n + column;
      const int64_t row = static_cast<int64_t>(indices[position]);
      const bool good = row >= 0 && row < args.dim;
      if (!good) ReportError(args.check.word, args.check.number, position, [&](int64_t p) { return indices[p]; });
      static_cast<T*>(args.out)[i] =
          good ? static_cast<const T*>(args.params)[(block * args.dim + row) * args.inner + piece] : T();
    }
  }
};

template <typename Index>
struct CheckIndices {
  const Index* indices;
  int64_t n;
  int64_t rows;
  IndexRange range;
  IndexCheck check;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < n; i += t.step()) {
      const int64_t index = static_cast<int64_t>(indices[i]);
      const bool good_below =
          range == IndexRange::kRowsOrNegative || (range == IndexRange::kRowsOrNone && indices[i] == kLowest<Index>);
      if (index >= rows || (index < 0 && !good_below)) {
        ReportError(check.word, check.number, i, [this](int64_t p) { return indices[p]; });
      }
    }
  }
};

template <typename T, typename Index>
struct OneHotElements {
  OneHotArgs args;
  Divider depth;
  Divider inner;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const T on = *static_cast<const T*>(args.on);
    const T off = *static_cast<const T*>(args.off);
    for (int64_t i = t.first(); i < args.elements; i += t.step()) {
      int64_t rest, outer;
      const int64_t column = inner.Split(i, &rest);
      const int64_t at = depth.Split(rest, &outer);
      const Index index = static_cast<const Index*>(args.indices)[outer * args.inner + column];
      static_cast<T*>(args.out)[i] = static_cast<int64_t>(index) == at ? on : off;
    }
  }
};

}  // namespace

void LaunchGather(Driver& driver, StreamHandle stream, ElementType index, const GatherArgs& args) {
  const int64_t pieces = args.batch * args.outer * args.n * args.inner;
  ForMoves(args.piece_bytes, "a gather", [&]<typename T>(T) {
    ForIndices(index, "a gather", [&]<typename Index>(Index) {
      Launch(driver, stream, SizeFor(pieces),
             GatherPieces<T, Index>{args, pieces, Divider(args.inner), Divider(args.n), Divider(args.outer)});
    });
  });
}

void LaunchIndexCheck(Driver& driver, StreamHandle stream, ElementType index, const void* indices, int64_t n,
                      int64_t rows, IndexRange range, const IndexCheck& check) {
  ForIndices(index, "a check", [&]<typename Index>(Index) {
    Launch(driver, stream, SizeFor(n), CheckIndices<Index>{static_cast<const Index*>(indices), n, rows, range, check});
  });
}

void LaunchOneHot(Driver& driver, StreamHandle stream, ElementType index, const OneHotArgs& args) {
  ForSizes(args.element_bytes, "OneHot", [&]<typename T>(T) {
    ForIntegers(index, "the indices of OneHot", [&]<typename Index>(Index) {
      Launch(driver, stream, SizeFor(args.elements),
             OneHotElements<T, Index>{args, Divider(args.depth), Divider(args.inner)});
    });
  });
}

}  // namespace cohort::cuda
