#include "cohort/backends/cuda/kernels/join.cu.h"

namespace cohort::cuda {
namespace {

template <typename T, bool kCut>
struct JoinPieces {
  JoinArgs args;
  int64_t pieces;
  Divider columns;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < pieces; i += t.step()) {
      int64_t outer;
      const int64_t column = columns.Split(i, &outer);
      int low = 0, high = args.count - 1;  // the part is among these: the last one that starts at `column` or before
      while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (args.starts[middle] <= column) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      const int64_t width = args.starts[low + 1] - args.starts[low];
      T* part = static_cast<T*>(args.parts[low]) + outer * width + column - args.starts[low];
      T* whole = static_cast<T*>(args.whole) + outer * args.row + args.first + column;
      if (kCut) {
        *part = *whole;
      } else {
        *whole = *part;
      }
    }
  }
};

}  // namespace

void LaunchJoin(Driver& driver, StreamHandle stream, const JoinArgs& args, bool cut) {
  const int64_t columns = args.starts[args.count];
  const int64_t pieces = args.outer * columns;
  ForMoves(args.piece_bytes, "a join", [&]<typename T>(T) {
    if (cut) {
      Launch(driver, stream, SizeFor(pieces), JoinPieces<T, true>{args, pieces, Divider(columns)});
    } else {
      Launch(driver, stream, SizeFor(pieces), JoinPieces<T, false>{args, pieces, Divider(columns)});
    }
  });
}

}  // namespace cohort::cuda
