// Arena: one block of memory in which the large values of a run of a plan lie. What a plan's kernels ask for is learned
// in its first runs, and later ones give them slices of a block. Between runs the block waits, warm, for the next run
// of this plan or of another one: a program's plans, which seldom run at the same time, share the largest one's.
//
// A plan is a guess; a slice is handed out only when nobody holds what lay in its place before. Whoever keeps a tensor
// longer than the plan thought (a slice or reshape of it, a resource, a fetch) keeps its slice, and whatever would lie
// there comes from the caching allocator in that run. So sizes, aliases and orders that change cost memory, never
// correctness.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/core/buffer.h"
#include "cohort/core/mutex.h"
#include "cohort/runtime/plan/arena_plan.h"

namespace cohort {

// Smaller blocks are the C library's as ever.
constexpr size_t kArenaFromBytes = 32 * 1024;

struct ArenaStats {
  int64_t plans = 0;         // made so far
  int64_t planned = 0;       // values that have a place in the latest one
  int64_t bytes = 0;         // of its block
  int64_t slices = 0;        // handed out
  int64_t from_outside = 0;  // large values that the caching allocator gave instead
  int64_t escapees = 0;      // values that are known to outlive the run that made them
};

// What is known of the memory of a plan's kernels. Thread-safe.
class ArenaPlanner {
 public:
  // `leaves[node]`: all that the node allocates is for others than this plan and never lies in an arena.
  explicit ArenaPlanner(std::vector<bool> leaves);
  ArenaPlanner(const ArenaPlanner&) = delete;
  ArenaPlanner& operator=(const ArenaPlanner&) = delete;

  ArenaStats stats() const;
  // Whether any run has asked for a large value.
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }

 private:
  friend class StepAllocator;
  struct PlannedValue;
  // A value is known by the node that asked for it and how many large ones that node had asked for before in the run.
  using Key = std::pair<int32_t, int32_t>;
  struct Plan;
  class Arena;
  class Slice;
  struct Seen {
    size_t bytes = 0;
    int32_t first = 0;  // nodes that asked for memory while the value was there
    int32_t last = 0;
    bool escaped = false;  // was still there when its run had ended
    // Takes in what another run has seen; whether that changes anything.
    bool Join(const Seen& other);
  };
  struct Counts {
    int64_t slices = 0;
    int64_t from_outside = 0;
  };
  // The latest one, never null.
  std::shared_ptr<const Plan> plan();
  // A run is over. `seen`: where it was not as its plan says.
  void Learn(const std::vector<std::pair<Key, Seen>>& seen, const Counts& counts);
  void MakePlan() COHORT_REQUIRES(mu_);

  const std::vector<bool> leaves_;
  std::atomic<bool> in_use_{false};
  mutable Mutex mu_;
  std::map<Key, Seen> known_ COHORT_GUARDED_BY(mu_);
  std::shared_ptr<const Plan> plan_ COHORT_GUARDED_BY(mu_);
  // New plans become rarer, so that sizes that never settle do not cost a plan each run.
  bool stale_ COHORT_GUARDED_BY(mu_) = false;     // more is known than plan_ says
  int64_t surprises_ COHORT_GUARDED_BY(mu_) = 0;  // runs since the latest plan that were not as they were planned
  int64_t surprises_for_plan_ COHORT_GUARDED_BY(mu_) = 1;
  ArenaStats stats_ COHORT_GUARDED_BY(mu_);
};

// The memory of one run at a time: what its kernels allocate comes from here. For the thread that runs the kernels
// alone (which may change where the change is ordered), unlike other allocators; the buffers are like any.
class StepAllocator final : public Allocator {
 public:
  explicit StepAllocator(ArenaPlanner& planner) : planner_(planner) {}
  ~StepAllocator() override;

  // What is allocated from now on is for this node.
  void BeginNode(int32_t node) {
    node_ = node;
    ordinal_ = 0;
  }
  BufferPtr Allocate(size_t bytes) override {
    return bytes < kArenaFromBytes ? HostAllocator().Allocate(bytes) : AllocateLarge(bytes);
  }
  MemorySpace space() const override { return MemorySpace::Host(); }
  // After the run's own tensors are gone: what somebody still holds is never planned again, and its block lives until
  // it is released. A run that has failed teaches nothing else.
  void EndRun(bool ok) {
    if (plan_ != nullptr) Finish(ok);
  }

 private:
  using Key = ArenaPlanner::Key;
  using PlannedValue = ArenaPlanner::PlannedValue;
  // A value that was there when the run last looked.
  struct Live {
    Key key;
    ArenaPlanner::Slice* slice;  // null where the value lies outside
    BufferPtr outside;           // held a second time: unique once the value's own buffer is gone
    size_t bytes;
    size_t begin;  // of the slice, in its block
    size_t end;
    int32_t first;  // as far as known, from the plan or this run
    int32_t last;
    bool news;  // this run has seen something that the plan does not say
  };

  BufferPtr AllocateLarge(size_t bytes);
  void Finish(bool ok);
  // Whether the value can have the place that is planned for it; then there is a block.
  bool Fits(const PlannedValue& planned, size_t bytes);
  // Drops what is no longer there; the rest is there together with a value of the present node.
  void LookAround();
  void Note(const Live& value, bool escaped);

  ArenaPlanner& planner_;
  int32_t node_ = 0;
  int32_t ordinal_ = 0;
  std::shared_ptr<const ArenaPlanner::Plan> plan_;  // null until the run asks for a large value
  ArenaPlanner::Arena* arena_ = nullptr;
  std::vector<Live> live_;
  std::vector<std::pair<Key, ArenaPlanner::Seen>> news_;
  ArenaPlanner::Counts counts_;
};

}  // namespace cohort
