// How the memory of a run is learned and handed out. A run's StepAllocator notes which values exist while each node
// runs (LookAround), and reports what the plan does not know (Finish). The ArenaPlanner collects the reports (Learn)
// and sometimes makes a new plan (MakePlan). An Arena is the block of one run. A Slice is a place in it, which its
// reference count shows to be free or not.
#include "cohort/runtime/plan/arena.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/host_blocks.h"

namespace cohort {
namespace {

// The number of large values of one node that are planned. If a kernel asks for more, the rest comes from outside the
// arena.
constexpr int32_t kPlannedPerNode = 8;

// A value outside the arena. Its bytes lie in another buffer. The reference count of that buffer tells whether this one
// is gone.
class OutsideBuffer final : public Buffer {
 public:
  explicit OutsideBuffer(const BufferPtr& real) : Buffer(real->data(), real->size(), real->space()), real_(real) {}

 private:
  void Destroy() override { delete this; }
  BufferPtr real_;
};

}  // namespace

struct ArenaPlanner::PlannedValue {
  int32_t ordinal;
  size_t bytes;
  int32_t first;
  int32_t last;
  int32_t slice;  // -1: the value lies outside
  size_t offset;
};

struct ArenaPlanner::Plan {
  std::vector<int32_t> begin;  // for each node: index of its first value; one more element for the end
  std::vector<PlannedValue> values;
  std::vector<size_t> sizes;  // of each slice
  mutable std::atomic<bool> used{false};
  size_t total = 0;

  const PlannedValue* Find(int32_t node, int32_t ordinal) const {
    const int32_t end = begin[static_cast<size_t>(node) + 1];
    for (int32_t i = begin[static_cast<size_t>(node)]; i < end; ++i) {
      if (values[static_cast<size_t>(i)].ordinal == ordinal) return &values[static_cast<size_t>(i)];
    }
    return nullptr;
  }
};

// A place in an arena. It is free if nothing holds a reference to it.
class ArenaPlanner::Slice final : public Buffer {
 public:
  Slice() : Buffer(nullptr, 0, MemorySpace::Host()) { refs_.store(0, std::memory_order_relaxed); }
  ~Slice() override = default;
  void Place(Arena* arena, void* data) {
    arena_ = arena;
    data_ = data;
  }
  // Acquire: the last holder has finished its work with the bytes.
  bool free() const { return refs_.load(std::memory_order_acquire) == 0; }
  BufferPtr Take(size_t bytes);

 private:
  void Destroy() override;
  Arena* arena_ = nullptr;
};

// The block of one run. It lives until its last pin is gone. The run has a pin, and so has each slice that is in use.
class ArenaPlanner::Arena {
 public:
  explicit Arena(const Plan& plan)
      : block_(AllocateWholeHostBlock(plan.total, Replaced(plan))),
        slices_(std::make_unique<Slice[]>(plan.sizes.size())) {
    for (const PlannedValue& value : plan.values) {
      if (value.slice >= 0) slice(value.slice)->Place(this, static_cast<char*>(block_->data()) + value.offset);
    }
  }
  Slice* slice(int32_t i) { return &slices_[static_cast<size_t>(i)]; }
  void Pin() { pins_.fetch_add(1, std::memory_order_relaxed); }
  void Unpin() {
    if (pins_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  ~Arena() = default;
  // Returns the sizes of the blocks that the values had before there was this plan, when the plan is used for the first
  // time. These blocks are not needed any more.
  static std::span<const size_t> Replaced(const Plan& plan) {
    return plan.used.exchange(true) ? std::span<const size_t>() : std::span<const size_t>(plan.sizes);
  }
  const BufferPtr block_;
  const std::unique_ptr<Slice[]> slices_;
  std::atomic<int32_t> pins_{1};
};

BufferPtr ArenaPlanner::Slice::Take(size_t bytes) {
  size_ = bytes;
  refs_.store(1, std::memory_order_relaxed);
  arena_->Pin();
  return BufferPtr::Adopt(this);
}

void ArenaPlanner::Slice::Destroy() {
  Arena* arena = arena_;
  refs_.store(0, std::memory_order_release);
  arena->Unpin();  // may free this slice
}

ArenaPlanner::ArenaPlanner(std::vector<bool> leaves) : leaves_(std::move(leaves)) {
  auto empty = std::make_shared<Plan>();
  empty->begin.assign(leaves_.size() + 1, 0);
  MutexLock lock(mu_);
  plan_ = std::move(empty);
}

ArenaStats ArenaPlanner::stats() const {
  MutexLock lock(mu_);
  ArenaStats stats = stats_;
  stats.planned = static_cast<int64_t>(plan_->sizes.size());
  stats.bytes = static_cast<int64_t>(plan_->total);
  for (const auto& [key, seen] : known_) stats.escapees += seen.escaped ? 1 : 0;
  return stats;
}

std::shared_ptr<const ArenaPlanner::Plan> ArenaPlanner::plan() {
  in_use_.store(true, std::memory_order_relaxed);
  MutexLock lock(mu_);
  return plan_;
}

void ArenaPlanner::Learn(const std::vector<std::pair<Key, Seen>>& seen, const Counts& counts) {
  MutexLock lock(mu_);
  stats_.slices += counts.slices;
  stats_.from_outside += counts.from_outside;
  if (seen.empty()) return;
  bool leak = false;  // a slice is kept after the run; each later run would lose a block in the same way
  for (const auto& [key, news] : seen) {
    const auto [at, is_new] = known_.emplace(key, news);
    Seen& known = at->second;
    leak = leak || (!is_new && news.escaped && !known.escaped);
    const bool differs = is_new || known.Join(news);
    stale_ = stale_ || differs;
  }
  ++surprises_;
  if (!stale_ || (!leak && surprises_ < surprises_for_plan_)) return;
  if (surprises_ >= surprises_for_plan_) surprises_for_plan_ *= 2;
  MakePlan();
}

void ArenaPlanner::MakePlan() {
  auto plan = std::make_shared<Plan>();
  std::vector<Lifetime> lifetimes;
  plan->begin.assign(leaves_.size() + 1, 0);
  for (const auto& [key, seen] : known_) {  // sorted by node
    ++plan->begin[static_cast<size_t>(key.first) + 1];
    plan->values.push_back({key.second, seen.bytes, seen.first, seen.last, -1, 0});
    if (seen.escaped) continue;
    plan->values.back().slice = static_cast<int32_t>(plan->sizes.size());
    plan->sizes.push_back(seen.bytes);
    lifetimes.push_back({seen.bytes, seen.first, seen.last});
  }
  for (size_t node = 1; node < plan->begin.size(); ++node) plan->begin[node] += plan->begin[node - 1];
  const ArenaOffsets offsets = AssignOffsets(lifetimes);
  plan->total = offsets.total;
  for (PlannedValue& value : plan->values) {
    if (value.slice >= 0) value.offset = offsets.offsets[static_cast<size_t>(value.slice)];
  }
  plan_ = std::move(plan);
  stale_ = false;
  surprises_ = 0;
  ++stats_.plans;
}

bool ArenaPlanner::Seen::Join(const Seen& other) {
  const Seen before = *this;
  bytes = std::max(bytes, other.bytes);
  first = std::min(first, other.first);
  last = std::max(last, other.last);
  escaped = escaped || other.escaped;
  return bytes != before.bytes || first != before.first || last != before.last || escaped != before.escaped;
}

StepAllocator::~StepAllocator() = default;

void StepAllocator::LookAround() {
  for (size_t i = 0; i < live_.size();) {
    Live& value = live_[i];
    if (value.slice != nullptr ? value.slice->free() : value.outside->IsUnique()) {
      if (value.news) Note(value, false);
      if (i + 1 < live_.size()) value = std::move(live_.back());
      live_.pop_back();
      continue;
    }
    value.news = value.news || node_ < value.first || node_ > value.last;
    value.first = std::min(value.first, node_);
    value.last = std::max(value.last, node_);
    ++i;
  }
}

void StepAllocator::Note(const Live& value, bool escaped) {
  news_.emplace_back(value.key, ArenaPlanner::Seen{value.bytes, value.first, value.last, escaped});
}

BufferPtr StepAllocator::AllocateLarge(size_t bytes) {
  const Key key{node_, ordinal_++};
  const bool never = planner_.leaves_[static_cast<size_t>(node_)] || key.second >= kPlannedPerNode;
  const PlannedValue* planned = nullptr;
  if (!never) {
    if (plan_ == nullptr) plan_ = planner_.plan();
    LookAround();
    planned = plan_->Find(key.first, key.second);
    if (planned != nullptr && Fits(*planned, bytes)) {
      live_.push_back({key, arena_->slice(planned->slice), BufferPtr(), planned->bytes, planned->offset,
                       planned->offset + planned->bytes, planned->first, planned->last, false});
      ++counts_.slices;
      return live_.back().slice->Take(bytes);
    }
  }
  ++counts_.from_outside;
  // After the first run there is a plan, so single blocks of these sizes will not be asked for again.
  const bool passing = !never && plan_->values.empty();
  BufferPtr real = passing ? AllocatePassingHostBlock(bytes) : HostAllocator().Allocate(bytes);
  if (never || (planned != nullptr && planned->slice < 0)) return real;
  BufferPtr outside = BufferPtr::Adopt(new OutsideBuffer(real));
  Live value{key, nullptr, std::move(real), bytes, 0, 0, node_, node_, true};
  if (planned != nullptr) {
    value.news = bytes > planned->bytes;
    value.bytes = std::max(bytes, planned->bytes);
    value.first = planned->first;
    value.last = planned->last;
  }
  live_.push_back(std::move(value));
  return outside;
}

bool StepAllocator::Fits(const PlannedValue& planned, size_t bytes) {
  if (planned.slice < 0 || bytes > planned.bytes) return false;
  const size_t begin = planned.offset;
  const size_t end = begin + planned.bytes;
  const bool taken = std::any_of(live_.begin(), live_.end(), [&](const Live& value) {
    return value.slice != nullptr && begin < value.end && value.begin < end;
  });
  if (taken) return false;
  if (arena_ == nullptr) {
    try {
      arena_ = new ArenaPlanner::Arena(*plan_);
    } catch (const ResourceExhaustedError&) {
      return false;  // there may still be memory for single blocks
    }
  }
  return true;
}

void StepAllocator::Finish(bool ok) {
  if (!ok) news_.clear();
  for (const Live& value : live_) {
    const bool gone = value.slice != nullptr ? value.slice->free() : value.outside->IsUnique();
    if (ok ? !gone || value.news : value.slice != nullptr && !gone) Note(value, !gone);
  }
  live_.clear();
  if (arena_ != nullptr) arena_->Unpin();  // slices that are in use keep the arena
  arena_ = nullptr;
  planner_.Learn(news_, counts_);
  news_.clear();
  plan_ = nullptr;
  counts_ = {};
}

}  // namespace cohort
