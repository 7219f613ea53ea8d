// CudaMemory. A segment is one allocation of the driver's. Its blocks lie one after another in a list; no two free
// blocks are neighbours. A request takes the smallest free block that is large enough and splits off the rest. Small
// requests and large ones have segments of their own, so that a small buffer that stays does not hold a large segment.
//
// A freed block for copies is kept with an event of the compute stream, which is recorded when the next block for
// copies is asked for. So the copies of a step get the blocks of the step before it, and wait for none of their own
// step's kernels. Blocks that are freed between two requests, as all those of a recorded step are, wait for one event.
// While the blocks of a size wait for few events, none is taken before its own is reached: another one is made, if
// there is memory. So copies that are asked for behind a step's kernels run beside them as soon as there are blocks for
// three steps.
#include "cohort/backends/cuda/cuda_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/recording/cuda_recording.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kSmall = size_t{1} << 20;          // requests of less are small
constexpr size_t kSmallSegment = size_t{2} << 20;   // the size of segments for small requests
constexpr size_t kLargeSegment = size_t{32} << 20;  // the least size of segments for large requests
constexpr size_t kSegmentUnit = size_t{2} << 20;
constexpr size_t kNamedHolders = 8;
constexpr int kFewEvents = 4;         // for which kept blocks of a size wait
constexpr size_t kMostKeptPart = 16;  // freed blocks for copies are kept up to this part of the limit

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
// Returns the size of the block for a buffer. It is smaller than `bytes` if it would be too large for a size_t.
size_t SizeOfBlock(size_t bytes) { return std::max(RoundUp(bytes, kAlignment), kAlignment); }

// Returns the size with at most one decimal.
std::string Megabytes(size_t bytes) {
  constexpr size_t kMega = size_t{1} << 20;
  const size_t tenths = bytes % kMega * 10 / kMega;
  return StrCat(bytes / kMega, tenths == 0 ? std::string() : StrCat(".", tenths), " MB");
}

// For whom the thread allocates: a node, or else a name, or else nobody.
thread_local const Node* owner = nullptr;
thread_local const char* owner_name = nullptr;

// All memories of the process, so that one can ask the others of its card to give back what they keep.
class Memories {
 public:
  static Memories& Get() {
    static auto* const memories = new Memories;
    return *memories;
  }
  void Add(CudaMemory* memory, Driver* driver, int card) {
    MutexLock lock(mu_);
    all_.push_back({memory, driver, card, nullptr});
  }
  // Sets what makes the owner of the memory let go of what it does not need now. Returns whether it let go of anything.
  void SetLetGo(const CudaMemory* memory, const std::function<bool()>& let_go) {
    MutexLock lock(mu_);
    for (Entry& entry : all_) {
      if (entry.memory == memory) entry.let_go = let_go;
    }
  }
  // Waits while TrimOthers uses the memory.
  void Remove(const CudaMemory* memory) {
    MutexLock lock(mu_);
    std::erase_if(all_, [&](const Entry& entry) { return entry.memory == memory; });
  }
  void TrimOthers(const CudaMemory* memory, const Driver* driver, int card) {
    MutexLock lock(mu_);
    for (const Entry& entry : all_) {
      if (entry.IsOther(memory, driver, card)) entry.memory->Trim();
    }
  }
  // Makes the owners of the other memories of the card let go of what they do not need now, and gives it back to the
  // card. Returns whether there was anything.
  bool TakeFromOthers(const CudaMemory* memory, const Driver* driver, int card) {
    std::vector<std::function<bool()>> owners;
    {
      MutexLock lock(mu_);
      for (const Entry& entry : all_) {
        if (entry.IsOther(memory, driver, card) && entry.let_go) owners.push_back(entry.let_go);
      }
    }
    bool any = false;
    for (const auto& let_go : owners) any = let_go() || any;  // without the lock, because buffers are freed
    if (any) TrimOthers(memory, driver, card);
    return any;
  }

 private:
  struct Entry {
    CudaMemory* memory;
    const Driver* driver;
    int card;
    std::function<bool()> let_go;
    bool IsOther(const CudaMemory* than, const Driver* of, int on) const {
      return memory != than && driver == of && card == on;
    }
  };
  Mutex mu_;
  std::vector<Entry> all_ COHORT_GUARDED_BY(mu_);
};

}  // namespace

AllocationOwner::AllocationOwner(const Node& node)
    : node_before_(std::exchange(owner, &node)), name_before_(owner_name) {}
AllocationOwner::AllocationOwner(const char* name)
    : node_before_(std::exchange(owner, nullptr)), name_before_(std::exchange(owner_name, name)) {}
AllocationOwner::~AllocationOwner() {
  owner = node_before_;
  owner_name = name_before_;
}

struct CudaMemory::Block {
  Segment* segment = nullptr;
  char* data = nullptr;
  size_t size = 0;
  bool free = true;
  bool for_copy = false;
  int64_t kept_at = 0;                    // of a kept block: smaller if it was freed earlier; else 0
  std::shared_ptr<StreamEvent> writable;  // of a kept block
  Block* before = nullptr;                // its neighbours in the segment
  Block* after = nullptr;
  std::array<char, 56> holder{};  // for whom it was allocated, cut to this length
};

struct CudaMemory::Segment {
  char* data = nullptr;
  size_t size = 0;
  bool small = false;
  Block* first = nullptr;
};

bool CudaMemory::BySize::operator()(const Block* a, const Block* b) const {
  if (a->segment->small != b->segment->small) return a->segment->small;
  return a->size != b->size ? a->size < b->size : std::less<>()(a->data, b->data);
}
bool CudaMemory::BySize::operator()(const Block* a, size_t size) const {
  const bool small = size < kSmall;
  if (a->segment->small != small) return a->segment->small;
  return a->size < size;
}

class CudaMemory::DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::shared_ptr<CudaMemory> memory, Block* block, size_t bytes)
      : Buffer(block->data, bytes, memory->space()), memory_(std::move(memory)), block_(block) {}

 private:
  void Destroy() override {
    memory_->Free(block_);
    delete this;
  }
  std::shared_ptr<CudaMemory> memory_;
  Block* block_;
};

CudaMemory::CudaMemory(MemorySpace space, Driver& driver, CudaStream& compute, Options options)
    : space_(space),
      driver_(driver),
      compute_(compute),
      options_(std::move(options)),
      use_(MemoryUse::Of(options_.device)),
      limit_is_known_(!options_.find_limit) {
  stats_.limit = options_.limit;
  Memories::Get().Add(this, &driver_, options_.card);
}

CudaMemory::~CudaMemory() {
  Memories::Get().Remove(this);
  if (IsForkedFromUser()) return;  // the memory is the parent's
  try {
    MutexLock lock(mu_);
    ReleaseKept();
    TrimLocked();
  } catch (const Error&) {
    // The card has failed. Its memory is lost to the process.
  }
}

void CudaMemory::SetBeforeExhausted(std::function<bool()> before) {
  Memories::Get().SetLetGo(this, before);
  before_exhausted_ = std::move(before);
}

BufferPtr CudaMemory::Allocate(size_t bytes) { return BufferOf(TakeOrThrow(bytes, /*for_copy=*/false), bytes); }

BufferPtr CudaMemory::BufferOf(Block* block, size_t bytes) {
  return BufferPtr::Adopt(new DeviceBuffer(shared_from_this(), block, bytes));
}

CudaMemory::ForCopy CudaMemory::AllocateForCopy(size_t bytes) {
  ForCopy result = TryAllocateForCopy(bytes);
  if (result.buffer) return result;
  result.buffer = BufferOf(TakeOrThrow(bytes, /*for_copy=*/true), bytes);
  result.writable = compute_.Record();  // the block's last user may have freed it just now
  return result;
}

CudaMemory::ForCopy CudaMemory::TryAllocateForCopy(size_t bytes) {
  CudaRecording::Refuse("memory that is not the recording's");
  UseCards();
  const size_t size = SizeOfBlock(bytes);
  if (size < bytes) return {};
  std::vector<Block*> freed;  // before the event is recorded
  {
    MutexLock lock(mu_);
    freed.swap(kept_without_event_);
  }
  const std::shared_ptr<StreamEvent> now = compute_.Record();
  const auto take_kept = [&](bool waits) {
    ForCopy kept;
    MutexLock lock(mu_);
    if (Block* const block = TakeKept(size, waits)) kept = {BufferOf(block, bytes), std::move(block->writable)};
    return kept;
  };
  {
    MutexLock lock(mu_);
    for (Block* one : freed) {
      one->writable = now;
      kept_[one->size].push_back(one);
    }
  }
  ForCopy result = take_kept(/*waits=*/false);
  if (result.buffer) return result;
  if (Block* const block = Take(size, /*for_copy=*/true, /*gives_back=*/false)) {
    result.buffer = BufferOf(block, bytes);
    result.writable = compute_.Record();  // the block's last user may have freed it just now
    return result;
  }
  return take_kept(/*waits=*/true);
}

CudaMemory::Block* CudaMemory::TakeOrThrow(size_t bytes, bool for_copy) {
  CudaRecording::Refuse("memory that is not the recording's");
  UseCards();
  const size_t size = SizeOfBlock(bytes);
  Block* block = nullptr;
  if (size >= bytes) {  // else the sum was too large for a size_t
    const auto take = [&] { return Take(size, for_copy, /*gives_back=*/true); };
    block = take();
    if (block == nullptr) {
      Memories::Get().TrimOthers(this, &driver_, options_.card);
      block = take();
    }
    if (block == nullptr && before_exhausted_ && before_exhausted_()) block = take();
    if (block == nullptr && Memories::Get().TakeFromOthers(this, &driver_, options_.card)) block = take();
  }
  if (block == nullptr) ThrowExhausted(bytes);
  return block;
}

CudaMemory::Block* CudaMemory::Take(size_t size, bool for_copy, bool gives_back) {
  MutexLock lock(mu_);
  if (!limit_is_known_) {
    stats_.limit = options_.find_limit();
    limit_is_known_ = true;
  }
  Block* block = Find(size);
  if (block == nullptr) block = Grow(size);
  if (block == nullptr && gives_back && ReleaseKept()) block = Find(size);
  if (block == nullptr && gives_back) {
    TrimLocked();
    block = Grow(size);
  }
  if (block == nullptr) return nullptr;
  free_.erase(block);
  block->free = false;
  block->for_copy = for_copy;
  Split(block, size);
  NoteUse(block);
  return block;
}

CudaMemory::Block* CudaMemory::TakeKept(size_t size, bool waits) {
  const auto found = kept_.find(size);
  if (found == kept_.end()) return nullptr;
  Block* const block = found->second.front();
  if (!waits && !block->writable->reached()) {
    int events = 0;
    const StreamEvent* last = nullptr;
    for (const Block* one : found->second) {  // blocks with the same event are neighbours
      events += one->writable.get() == last ? 0 : 1;
      last = one->writable.get();
    }
    if (events < kFewEvents) return nullptr;
  }
  found->second.pop_front();
  if (found->second.empty()) kept_.erase(found);
  stats_.kept -= block->size;
  NoteUse(block);
  return block;
}

void CudaMemory::NoteUse(Block* block) {
  block->kept_at = 0;
  if (owner != nullptr || owner_name != nullptr) {
    const std::string name = owner != nullptr ? StrCat(owner->name(), " (", owner->op_name(), ")") : owner_name;
    const size_t length = std::min(name.size(), block->holder.size() - 1);
    std::memcpy(block->holder.data(), name.data(), length);
    block->holder[length] = 0;
  } else {
    block->holder[0] = 0;
  }
  ++stats_.allocations;
  stats_.in_use += block->size;
  stats_.most_in_use = std::max(stats_.most_in_use, stats_.in_use);
  use_.Add(block->size);
}

CudaMemory::Block* CudaMemory::Find(size_t size) {
  const auto found = free_.lower_bound(size);
  if (found == free_.end() || (*found)->segment->small != (size < kSmall)) {
    if (!options_.reserve_all) return nullptr;
    // All memory is one segment, which serves small requests, too.
    const auto any = std::find_if(free_.begin(), free_.end(), [&](const Block* b) { return b->size >= size; });
    return any == free_.end() ? nullptr : *any;
  }
  return *found;
}

CudaMemory::Block* CudaMemory::Grow(size_t size) {
  const bool small = size < kSmall;
  const size_t left = stats_.limit - std::min(stats_.limit, stats_.reserved);
  size_t wanted = small ? kSmallSegment : std::max(kLargeSegment, RoundUp(size, kSegmentUnit));
  if (options_.reserve_all) wanted = left / kSegmentUnit * kSegmentUnit;
  char* data = nullptr;
  for (const size_t bytes : {wanted, RoundUp(size, kSegmentUnit), size}) {
    if (bytes < size || bytes > left) continue;
    data = static_cast<char*>(driver_.Allocate(options_.card, bytes));
    if (data == nullptr) continue;
    wanted = bytes;
    break;
  }
  if (data == nullptr) return nullptr;
  ++stats_.from_card;
  stats_.reserved += wanted;
  auto segment = std::make_unique<Segment>(Segment{data, wanted, small, nullptr});
  auto* block = new Block;
  block->segment = segment.get();
  block->data = data;
  block->size = wanted;
  segment->first = block;  // it stays the first: a block that is merged goes into the one before it
  segments_.push_back(std::move(segment));
  free_.insert(block);
  return block;
}

// Requires: the block is not in free_.
void CudaMemory::Split(Block* block, size_t size) {
  if (block->size - size < kAlignment) return;
  auto* rest = new Block;
  rest->segment = block->segment;
  rest->data = block->data + size;
  rest->size = block->size - size;
  rest->before = block;
  rest->after = block->after;
  if (rest->after != nullptr) rest->after->before = rest;
  block->after = rest;
  block->size = size;
  free_.insert(rest);
}

void CudaMemory::Free(Block* block) {
  MutexLock lock(mu_);
  stats_.in_use -= block->size;
  use_.Remove(block->size);
  if (!detached_ && driver_.PoisonsFreedMemory()) {
    try {
      // The lock is held, so that no thread gets the block before its poison is enqueued.
      driver_.FillAsync(block->data, 0xff, block->size, compute_.handle());
    } catch (const Error&) {
      // The card has failed, or this is a forked child.
    }
  }
  if (!block->for_copy || !Keep(block)) MakeFree(block);
}

bool CudaMemory::Keep(Block* block) {
  const size_t most = stats_.limit / kMostKeptPart;
  if (detached_ || block->size > most) return false;
  ReleaseKept(most - block->size);
  if (block->size > most - stats_.kept) return false;  // those without an event
  stats_.kept += block->size;
  block->kept_at = ++times_kept_;
  kept_without_event_.push_back(block);
  return true;
}

bool CudaMemory::ReleaseKept(size_t bytes) {
  bool released = false;
  while (stats_.kept > bytes && !kept_.empty()) {
    const auto oldest = std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
      return a.second.front()->kept_at < b.second.front()->kept_at;
    });
    Block* const block = oldest->second.front();
    oldest->second.pop_front();
    if (oldest->second.empty()) kept_.erase(oldest);
    stats_.kept -= block->size;
    MakeFree(block);
    released = true;
  }
  while (bytes == 0 && !kept_without_event_.empty()) {
    Block* const block = kept_without_event_.back();
    kept_without_event_.pop_back();
    stats_.kept -= block->size;
    MakeFree(block);
    released = true;
  }
  return released;
}

void CudaMemory::MakeFree(Block* block) {
  block->free = true;
  block->for_copy = false;
  block->kept_at = 0;
  block->writable.reset();
  if (block->after != nullptr && block->after->free) {
    free_.erase(block->after);
    MergeWithNext(block);
  }
  if (block->before != nullptr && block->before->free) {
    block = block->before;
    free_.erase(block);
    MergeWithNext(block);
  }
  free_.insert(block);
}

void CudaMemory::MergeWithNext(Block* block) {
  Block* next = block->after;
  block->size += next->size;
  block->after = next->after;
  if (block->after != nullptr) block->after->before = block;
  delete next;
}

void CudaMemory::Trim() {
  MutexLock lock(mu_);
  ReleaseKept();
  TrimLocked();
}

void CudaMemory::TrimLocked() {
  std::vector<Block*> whole;
  for (Block* block : free_) {
    if (block->before == nullptr && block->after == nullptr) whole.push_back(block);
  }
  Status failure;
  for (Block* block : whole) {
    try {
      driver_.Free(options_.card, block->data);
    } catch (const Error& error) {
      if (failure.ok()) failure = Status(error.code(), error.what());
      continue;  // the block can still be used
    }
    stats_.reserved -= block->size;
    free_.erase(block);
    std::erase_if(segments_, [&](const std::unique_ptr<Segment>& segment) { return segment->data == block->data; });
    delete block;
  }
  failure.ThrowIfError();
}

void CudaMemory::Detach() {
  MutexLock lock(mu_);
  detached_ = true;
  ReleaseKept();  // their events belong to the stream
}

void CudaMemory::Withhold() { Memories::Get().Remove(this); }

CudaMemoryStats CudaMemory::stats() const {
  MutexLock lock(mu_);
  return stats_;
}

void CudaMemory::ThrowExhausted(size_t bytes) {
  const size_t on_card = driver_.FreeBytes(options_.card);
  MutexLock lock(mu_);
  std::map<std::string, size_t> by_holder;
  for (const auto& segment : segments_) {
    for (const Block* block = segment->first; block != nullptr; block = block->after) {
      if (!block->free && block->kept_at == 0)
        by_holder[block->holder[0] == 0 ? "values from the host" : block->holder.data()] += block->size;
    }
  }
  std::vector<std::pair<size_t, std::string>> holders;
  holders.reserve(by_holder.size());
  for (const auto& [holder, size] : by_holder) holders.emplace_back(size, holder);
  std::sort(holders.rbegin(), holders.rend());
  std::vector<std::string> named;
  for (const auto& [size, holder] : holders) {
    if (named.size() == kNamedHolders) break;
    named.push_back(StrCat(Megabytes(size), " by ", holder));
  }
  throw ResourceExhaustedError(
      StrCat("[cuda memory] expected ", Megabytes(bytes), " (", bytes, " bytes) more memory on ", options_.device,
             "; got none: ", Megabytes(stats_.in_use), " of its limit of ", Megabytes(stats_.limit), " are in use and ",
             Megabytes(stats_.reserved - stats_.in_use), " are cached in pieces, and the card has ", Megabytes(on_card),
             " free; the largest holders are: ", named.empty() ? "none" : StrJoin(named, ", "),
             "; use a smaller batch, or end other programs on the card"));
}

}  // namespace cohort::cuda
