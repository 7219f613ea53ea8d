// A line of a scan is computed by one thread if there are many lines, and else by a block: its threads scan the line in
// parts of kThreads elements. Which of the two it is depends on the sizes alone, so the same values give the same bits.
#include <limits>
#include <type_traits>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/wrapping.h"
#include "cohort/backends/cuda/kernels/moves.h"
#include "cohort/backends/cuda/kernels/scan.cu.h"

namespace cohort::cuda {
namespace {

constexpr int64_t kLineThreads = 256;
constexpr int64_t kManyLines = 8192;
constexpr int64_t kShortLine = 64;
constexpr int64_t kMostLineBlocks = 65535;

struct ScanSum {
  template <typename W>
  COHORT_KERNEL static W Start() {
    return W(0);
  }
  template <typename W>
  COHORT_KERNEL static W Join(W a, W b) {
    return AddOf(a, b);
  }
};
struct ScanProduct {
  template <typename W>
  COHORT_KERNEL static W Start() {
    return W(1);
  }
  template <typename W>
  COHORT_KERNEL static W Join(W a, W b) {
    return MulOf(a, b);
  }
};

// Whether lines are to be computed by single threads.
bool LinesByThread(const AxisView& view) { return view.n <= kShortLine || view.outer * view.inner >= kManyLines; }

LaunchSize BlocksForLines(const AxisView& view) {
  const int64_t lines = view.outer * view.inner;
  LaunchSize size;
  size.threads[0] = static_cast<uint32_t>(kLineThreads);
  size.blocks[0] = static_cast<uint32_t>(lines < kMostLineBlocks ? lines : kMostLineBlocks);
  return size;
}

template <typename Op, typename T>
struct ScanByThread {
  ScanArgs args;
  Divider inner;

  COHORT_KERNEL void operator()(const Thread& t) const {
    using W = Wide<T>;
    const AxisView& view = args.view;
    for (int64_t line = t.first(); line < view.outer * view.inner; line += t.step()) {
      int64_t outer;
      const int64_t column = inner.Split(line, &outer);
      const int64_t start = outer * view.n * view.inner + column;
      W sum = Op::template Start<W>();
      for (int64_t i = 0; i < view.n; ++i) {
        const int64_t at = start + (args.reverse ? view.n - 1 - i : i) * view.inner;
        const W next = Op::Join(sum, static_cast<W>(static_cast<const T*>(args.x)[at]));
        static_cast<T*>(args.out)[at] = static_cast<T>(args.exclusive ? sum : next);
        sum = next;
      }
    }
  }
};

template <typename Op, typename T>
struct ScanByBlock {
  static constexpr bool kWaits = true;
  ScanArgs args;
  Divider inner;

  COHORT_KERNEL void operator()(const Thread& t) const {
    using W = Wide<T>;
    COHORT_SHARED(t, W, part, kLineThreads);
    const AxisView& view = args.view;
    const int64_t me = t.thread();
    for (int64_t line = t.block(); line < view.outer * view.inner; line += t.blocks()) {
      int64_t outer;
      const int64_t column = inner.Split(line, &outer);
      const int64_t start = outer * view.n * view.inner + column;
      W carry = Op::template Start<W>();
      for (int64_t first = 0; first < view.n; first += kLineThreads) {
        const int64_t i = first + me;
        const int64_t at = start + (args.reverse ? view.n - 1 - i : i) * view.inner;
        part[me] = i < view.n ? static_cast<W>(static_cast<const T*>(args.x)[at]) : Op::template Start<W>();
        t.Sync();
        for (int64_t away = 1; away < kLineThreads; away *= 2) {
          const W before = me >= away ? part[me - away] : Op::template Start<W>();
          t.Sync();
          if (me >= away) part[me] = Op::Join(before, part[me]);
          t.Sync();
        }
        const W own = args.exclusive ? (me > 0 ? Op::Join(carry, part[me - 1]) : carry) : Op::Join(carry, part[me]);
        if (i < view.n) static_cast<T*>(args.out)[at] = static_cast<T>(own);
        carry = Op::Join(carry, part[kLineThreads - 1]);
        t.Sync();  // the next part is written to the same memory
      }
    }
  }
};

template <typename Op>
void LaunchScanOf(Driver& driver, StreamHandle stream, ElementType type, const ScanArgs& args) {
  ForNumbers(type, "a scan", [&]<typename T>(T) {
    const Divider inner(args.view.inner);
    if (LinesByThread(args.view)) {
      Launch(driver, stream, SizeFor(args.view.outer * args.view.inner), ScanByThread<Op, T>{args, inner});
    } else {
      Launch(driver, stream, BlocksForLines(args.view), ScanByBlock<Op, T>{args, inner});
    }
  });
}

// The extreme element of some elements of a line. `at` is -1 if none beats the value with which a search begins.
template <typename W>
struct Extreme {
  W value;
  int64_t at;
};

template <bool kLargest, typename T, typename Index>
struct FindExtreme {
  using W = Wide<T>;
  ArgExtremumArgs args;
  Divider inner;

  COHORT_KERNEL static bool Beats(W a, W b) { return kLargest ? a > b : a < b; }
  COHORT_KERNEL static W Worst() {
    if constexpr (std::numeric_limits<W>::has_infinity) {
      return kLargest ? -std::numeric_limits<W>::infinity() : std::numeric_limits<W>::infinity();
    } else {
      return kLargest ? std::numeric_limits<W>::lowest() : std::numeric_limits<W>::max();
    }
  }
  // Returns the first extreme element among `first`, `first + step`, ...
  COHORT_KERNEL Extreme<W> Search(int64_t line, int64_t first, int64_t step) const {
    int64_t outer;
    const int64_t column = inner.Split(line, &outer);
    const T* in = static_cast<const T*>(args.x) + outer * args.view.n * args.view.inner + column;
    Extreme<W> best{Worst(), -1};
    for (int64_t i = first; i < args.view.n; i += step) {
      const W value = static_cast<W>(in[i * args.view.inner]);
      if (Beats(value, best.value)) best = {value, i};
    }
    return best;
  }
  COHORT_KERNEL void Put(int64_t line, const Extreme<W>& best) const {
    static_cast<Index*>(args.out)[line] = static_cast<Index>(best.at < 0 ? 0 : best.at);
  }
};

template <bool kLargest, typename T, typename Index>
struct ExtremeByThread {
  FindExtreme<kLargest, T, Index> find;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const int64_t lines = find.args.view.outer * find.args.view.inner;
    for (int64_t line = t.first(); line < lines; line += t.step()) find.Put(line, find.Search(line, 0, 1));
  }
};

template <bool kLargest, typename T, typename Index>
struct ExtremeByBlock {
  static constexpr bool kWaits = true;
  FindExtreme<kLargest, T, Index> find;

  COHORT_KERNEL void operator()(const Thread& t) const {
    using Find = FindExtreme<kLargest, T, Index>;
    using W = typename Find::W;
    COHORT_SHARED(t, Extreme<W>, found, kLineThreads);
    const int64_t lines = find.args.view.outer * find.args.view.inner;
    const int64_t me = t.thread();
    for (int64_t line = t.block(); line < lines; line += t.blocks()) {
      found[me] = find.Search(line, me, kLineThreads);
      t.Sync();
      for (int64_t away = kLineThreads / 2; away > 0; away /= 2) {
        if (me < away) {
          const Extreme<W> other = found[me + away];
          const bool earlier = other.at >= 0 && other.value == found[me].value && other.at < found[me].at;
          if (Find::Beats(other.value, found[me].value) || earlier) found[me] = other;
        }
        t.Sync();
      }
      if (me == 0) find.Put(line, found[0]);
      t.Sync();  // the next line is written to the same memory
    }
  }
};

template <bool kLargest, typename T>
void LaunchExtreme(Driver& driver, StreamHandle stream, ElementType index, const ArgExtremumArgs& args) {
  const auto launch = [&]<typename Index>(Index) {
    const FindExtreme<kLargest, T, Index> find{args, Divider(args.view.inner)};
    if (LinesByThread(args.view)) {
      Launch(driver, stream, SizeFor(args.view.outer * args.view.inner), ExtremeByThread<kLargest, T, Index>{find});
    } else {
      Launch(driver, stream, BlocksForLines(args.view), ExtremeByBlock<kLargest, T, Index>{find});
    }
  };
  index == ElementType::kInt64 ? launch(int64_t()) : launch(int32_t());
}

}  // namespace

void LaunchScan(Driver& driver, StreamHandle stream, ScanOp op, ElementType type, const ScanArgs& args) {
  op == ScanOp::kSum ? LaunchScanOf<ScanSum>(driver, stream, type, args)
                     : LaunchScanOf<ScanProduct>(driver, stream, type, args);
}

void LaunchArgExtremum(Driver& driver, StreamHandle stream, ElementType type, ElementType index,
                       const ArgExtremumArgs& args) {
  const auto launch = [&]<typename T>(T) {
    args.largest ? LaunchExtreme<true, T>(driver, stream, index, args)
                 : LaunchExtreme<false, T>(driver, stream, index, args);
  };
  if (type == ElementType::kBool) return launch(bool());
  ForNumbers(type, "the place of an extreme element", launch);
}

}  // namespace cohort::cuda
