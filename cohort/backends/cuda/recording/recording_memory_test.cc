#include "cohort/backends/cuda/recording/recording_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "cohort/backends/cuda/cuda_stream.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"

namespace cohort::cuda {
namespace {

constexpr size_t kMega = size_t{1} << 20;

class RecordingMemoryTest : public ::testing::Test {
 protected:
  std::shared_ptr<RecordingMemory> Make(std::vector<RecordingSegmentPtr> segments) {
    return std::make_shared<RecordingMemory>(memory_->space(), driver_, stream_.handle(), std::move(segments));
  }

  FakeDriver fake_;
  Driver& driver_ = CardOr(fake_);
  CudaStream stream_{driver_, 0, "test"};
  const std::shared_ptr<CudaMemory> memory_ = std::make_shared<CudaMemory>(
      MemorySpace::OfDevice("GPU", 200), driver_, stream_, CudaMemory::Options{0, 64 * kMega, false, "GPU:7"});
  RecordingSegments segments_{*memory_};
};

TEST_F(RecordingMemoryTest, EqualRequestsGetEqualPlaces) {
  const RecordingSegmentPtr segment = segments_.Make(kMega);
  std::vector<const void*> places[2];
  for (auto& place : places) {
    const auto memory = Make({segment});
    BufferPtr a = memory->Allocate(1000), b = memory->Allocate(5000), c = memory->Allocate(1);
    place = {a->data(), b->data(), c->data()};
    b = BufferPtr();
    const BufferPtr d = memory->Allocate(300), e = memory->Allocate(4000), f = memory->Allocate(600);
    place.insert(place.end(), {d->data(), e->data(), f->data()});
    EXPECT_EQ(memory->live(), 5);
    EXPECT_EQ(d->data(), static_cast<const char*>(a->data()) + 1024);  // the first place that is large enough
    EXPECT_EQ(memory->most_in_use(), 1024u + 5120 + 256 + 768);
  }
  EXPECT_EQ(places[0], places[1]);
}

TEST_F(RecordingMemoryTest, FreedNeighboursBecomeOnePlace) {
  const auto memory = Make({segments_.Make(1024)});
  std::vector<BufferPtr> pieces;
  for (int i = 0; i < 4; ++i) pieces.push_back(memory->Allocate(256));
  EXPECT_THROW(memory->Allocate(1), RecordingNeedsMemory);
  for (const size_t i : {size_t{1}, size_t{3}, size_t{2}}) pieces[i] = BufferPtr();
  const BufferPtr three = memory->Allocate(768);
  EXPECT_THROW(memory->Allocate(1), RecordingNeedsMemory);
  pieces[0] = BufferPtr();
  EXPECT_EQ(memory->live(), 1);
}

TEST_F(RecordingMemoryTest, ASegmentLivesAsLongAsARecordingHoldsIt) {
  auto first = Make({segments_.Make(kMega)});
  segments_.Make(kMega);  // nobody holds it
  EXPECT_EQ(memory_->stats().in_use, kMega);
  auto second = Make(segments_.Held());
  EXPECT_EQ(second->size(), kMega);
  const BufferPtr buffer = second->Allocate(100);
  EXPECT_EQ(buffer->data(), first->Allocate(100)->data());  // recordings run one after another
  first.reset();
  second->EndRecording();
  second.reset();
  EXPECT_EQ(memory_->stats().in_use, kMega);  // a buffer holds it
}

}  // namespace
}  // namespace cohort::cuda
