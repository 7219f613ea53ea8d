// Arena: one block of memory that holds the large values of a run of a plan. The first runs of a plan learn what its
// kernels allocate. Later runs give the kernels slices of a block. Between runs the block is kept for the next run of
// this plan or of another plan. The plans of a program seldom run at the same time, so they share the block of the
// largest plan.
//
// An offset plan says where in the block each value lies. It is made from what earlier runs did, and it may be wrong
// for the next run. So a slice is handed out only if no value holds memory of that place. If a tensor lives longer than
// planned (because of a view, a resource or a fetch), it keeps its slice. A value that was planned for the same place
// in the same run then comes from the caching allocator. So a wrong offset plan costs memory, and the results stay
// correct.
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

// Smaller values come from HostAllocator().
constexpr size_t kArenaFromBytes = 32 * 1024;

// Statistics of an ArenaPlanner since it was made.
struct ArenaStats {
  int64_t plans = 0;         // offset plans that were made
  int64_t planned = 0;       // values that have a place in the latest offset plan
  int64_t bytes = 0;         // size of the latest offset plan's block
  int64_t slices = 0;        // slices that were handed out
  int64_t from_outside = 0;  // other large values: they did not come from the arena
  int64_t escapees = 0;      // values that are known to live longer than the run that made them
};

// Learns what the kernels of one plan allocate, and plans the places of the values. The executor owns it. Thread-safe.
class ArenaPlanner {
 public:
  // If `leaves[node]` is true, values of the node are kept after the step. They never lie in an arena.
  explicit ArenaPlanner(std::vector<bool> leaves);
  ArenaPlanner(const ArenaPlanner&) = delete;
  ArenaPlanner& operator=(const ArenaPlanner&) = delete;

  ArenaStats stats() const;
  // Returns whether a run has ever asked for a large value that may lie in an arena.
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }

 private:
  friend class StepAllocator;
  struct PlannedValue;
  // Identifies a value: the node that asked for it, and how many large values that node had asked for before in the
  // same run.
  using Key = std::pair<int32_t, int32_t>;
  struct Plan;
  class Arena;
  class Slice;
  // The facts that runs have learned about one value.
  struct Seen {
    size_t bytes = 0;
    int32_t first = 0;  // `first`, `last`: the first and the last node that allocated while the value existed
    int32_t last = 0;
    bool escaped = false;  // the value still existed when its run had ended
    // Adds what another run has seen. Returns whether this changes anything.
    bool Join(const Seen& other);
  };
  struct Counts {
    int64_t slices = 0;
    int64_t from_outside = 0;
  };
  // Returns the latest offset plan, never null.
  std::shared_ptr<const Plan> plan();
  // Called at the end of a run. `seen` has the values that were not as the run's offset plan says.
  void Learn(const std::vector<std::pair<Key, Seen>>& seen, const Counts& counts);
  void MakePlan() COHORT_REQUIRES(mu_);

  const std::vector<bool> leaves_;
  std::atomic<bool> in_use_{false};
  mutable Mutex mu_;
  std::map<Key, Seen> known_ COHORT_GUARDED_BY(mu_);
  std::shared_ptr<const Plan> plan_ COHORT_GUARDED_BY(mu_);
  // Plans are made more and more rarely. So sizes that change in every run do not cost a plan in every run.
  bool stale_ COHORT_GUARDED_BY(mu_) = false;              // more is known than plan_ says
  int64_t surprises_ COHORT_GUARDED_BY(mu_) = 0;           // runs since the latest plan that differed from it
  int64_t surprises_for_plan_ COHORT_GUARDED_BY(mu_) = 1;  // so many lead to a new plan; doubles each time
  ArenaStats stats_ COHORT_GUARDED_BY(mu_);
};

// Allocates the memory of one run at a time. A StepRun owns it. Unlike other allocators it is not thread-safe: one
// thread at a time runs the kernels and calls it. (The step may move to another thread between two kernels.) The
// buffers that it returns may be used and freed on any thread.
class StepAllocator final : public Allocator {
 public:
  explicit StepAllocator(ArenaPlanner& planner) : planner_(planner) {}
  ~StepAllocator() override;

  // Says that the next allocations are for this node. The run calls it before each kernel.
  void BeginNode(int32_t node) {
    node_ = node;
    ordinal_ = 0;
  }
  BufferPtr Allocate(size_t bytes) override {
    return bytes < kArenaFromBytes ? HostAllocator().Allocate(bytes) : AllocateLarge(bytes);
  }
  MemorySpace space() const override { return MemorySpace::Host(); }
  // Ends the run. Requires: the run has released its own tensors. If something still holds a value of the run, later
  // offset plans give no place to this value, and the block that contains the value lives until the value is released.
  // `ok` says whether the run has succeeded. If not, the planner learns only of values in the arena that are still
  // held.
  void EndRun(bool ok) {
    if (plan_ != nullptr) Finish(ok);
  }

 private:
  using Key = ArenaPlanner::Key;
  using PlannedValue = ArenaPlanner::PlannedValue;
  // A value that existed when the run last checked.
  struct Live {
    Key key;
    ArenaPlanner::Slice* slice;  // null if the value does not lie in the arena
    BufferPtr outside;           // a second reference to the value's memory; it is unique when the value is gone
    size_t bytes;
    size_t begin;  // `begin`, `end`: of the slice in its block
    size_t end;
    int32_t first;  // `first`, `last`: what the plan says, widened by what this run has seen
    int32_t last;
    bool news;  // this run has seen something that the plan does not say
  };

  BufferPtr AllocateLarge(size_t bytes);
  void Finish(bool ok);
  // Returns whether the value can have the place that is planned for it. Makes the block if there is none.
  bool Fits(const PlannedValue& planned, size_t bytes);
  // Removes values that no longer exist from live_. Notes that the others still exist while the present node allocates.
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
