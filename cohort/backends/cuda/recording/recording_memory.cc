#include "cohort/backends/cuda/recording/recording_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cohort::cuda {
namespace {

constexpr size_t kAlignment = 256;

size_t SizeFor(size_t bytes) { return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment); }

}  // namespace

std::vector<RecordingSegmentPtr> RecordingSegments::Held() {
  std::vector<RecordingSegmentPtr> held;
  for (const auto& known : segments_) {
    if (auto segment = known.lock()) held.push_back(std::move(segment));
  }
  segments_.assign(held.begin(), held.end());
  return held;
}

RecordingSegmentPtr RecordingSegments::Make(size_t bytes) {
  const AllocationOwner owner("recorded steps");
  auto segment = std::make_shared<const RecordingSegment>(RecordingSegment{memory_.Allocate(bytes)});
  segments_.push_back(segment);
  return segment;
}

class RecordingMemory::PieceBuffer final : public Buffer {
 public:
  PieceBuffer(std::shared_ptr<RecordingMemory> memory, size_t space, size_t offset, size_t bytes)
      : Buffer(memory->spaces_[space].segment->data() + offset, bytes, memory->space_),
        memory_(std::move(memory)),
        space_(space),
        offset_(offset) {}

 private:
  void Destroy() override {
    memory_->Free(space_, offset_, SizeFor(size_));
    delete this;
  }
  const std::shared_ptr<RecordingMemory> memory_;
  const size_t space_;
  const size_t offset_;
};

RecordingMemory::RecordingMemory(MemorySpace space, Driver& driver, StreamHandle stream,
                                 std::vector<RecordingSegmentPtr> segments)
    : space_(space), driver_(driver), stream_(stream) {
  for (RecordingSegmentPtr& segment : segments) {
    Space made;
    made.free[0] = segment->size() / kAlignment * kAlignment;
    made.segment = std::move(segment);
    spaces_.push_back(std::move(made));
  }
}

BufferPtr RecordingMemory::Allocate(size_t bytes) {
  const size_t size = SizeFor(bytes);
  for (size_t i = 0; i < spaces_.size(); ++i) {
    std::map<size_t, size_t>& free = spaces_[i].free;
    const auto place =
        std::find_if(free.begin(), free.end(), [size](const auto& piece) { return piece.second >= size; });
    if (place == free.end()) continue;
    const auto [offset, available] = *place;
    free.erase(place);
    if (available > size) free[offset + size] = available - size;
    spaces_[i].most = std::max(spaces_[i].most, offset + size);
    ++live_;
    return BufferPtr::Adopt(new PieceBuffer(shared_from_this(), i, offset, bytes));
  }
  throw RecordingNeedsMemory{size};
}

void RecordingMemory::Free(size_t space, size_t offset, size_t size) {
  --live_;
  if (recording_ && driver_.PoisonsFreedMemory()) {
    try {
      driver_.FillAsync(spaces_[space].segment->data() + offset, 0xff, size, stream_);
    } catch (const Error&) {
      // The card has failed, or the capture is invalid: its end says so.
    }
  }
  std::map<size_t, size_t>& free = spaces_[space].free;
  const auto after = free.lower_bound(offset);
  if (after != free.end() && after->first == offset + size) {
    size += after->second;
    free.erase(after);
  }
  const auto next = free.lower_bound(offset);
  if (next != free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free[offset] = size;
}

size_t RecordingMemory::most_in_use() const {
  size_t most = 0;
  for (const Space& space : spaces_) most += space.most;
  return most;
}

size_t RecordingMemory::size() const {
  size_t size = 0;
  for (const Space& space : spaces_) size += space.segment->size();
  return size;
}

}  // namespace cohort::cuda
