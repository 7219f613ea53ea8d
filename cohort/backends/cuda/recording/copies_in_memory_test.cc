// Feeds that would be copied to the card while the step before runs, if there were memory for them.
#include <optional>
#include <utility>

#include "cohort/backends/cuda/fake/cards_of_test.h"
#include "cohort/backends/cuda/testing/adder.h"
#include "cohort/core/error.h"

namespace cohort::cuda {
namespace {

using CopiesInMemoryTest = CopiedAheadTest;

FakeDriverOptions WithMemory(size_t megabytes) {
  FakeDriverOptions options;
  options.memory_bytes = megabytes << 20;
  return options;
}

// Then the recordings do. The bits stay.
TEST_F(CopiesInMemoryTest, WithLessMemoryFirstTheCopiesEnd) {
  COHORT_NEEDS_FAKE("its cards have as much memory as the test says");
  constexpr int64_t kRows = 4096;  // 1 MiB
  constexpr int kSteps = 6;
  const Tensor batches[] = {Batch(kRows, 1), Batch(kRows, 2)};
  bool copied = false, only_recorded = false;
  for (size_t megabytes = 4; !copied && megabytes <= 64; megabytes += 2) {
    CardsOfTest cards(WithMemory(megabytes));
    const FakeControl& of_cards = cards.control();
    try {
      Adder adder(OneCard());
      int64_t graphs = 0, late = 0;
      for (int i = 0; i < kSteps; ++i) {
        graphs = -of_cards.graph_launches();
        late = -of_cards.copies_between_kernels();
        ExpectTriple(adder.Run(batches[i % 2], batches[(i + 1) % 2]), batches[i % 2]);
        graphs += of_cards.graph_launches();
        late += of_cards.copies_between_kernels();
      }
      copied = graphs == 1 && late == 0;
      only_recorded = only_recorded || (graphs == 1 && late == 1);
    } catch (const ResourceExhaustedError&) {
      // There is too little for a step.
    }
    EXPECT_EQ(of_cards.live(), FakeLive());
    cards.End();
  }
  EXPECT_TRUE(only_recorded);
  EXPECT_TRUE(copied);
}

// A graph that no step uses stays while there is no memory for a copy. The copies come back when there is.
TEST_F(CopiesInMemoryTest, OthersGiveUpNothingForACopy) {
  COHORT_NEEDS_FAKE("its cards have as much memory as the test says");
  constexpr int64_t kRows = 4096;    // 1 MiB
  constexpr int kStepsWithout = 32;  // so many steps do not ask again for memory
  const Tensor a = Batch(kRows, 1), b = Batch(kRows, 2);
  bool without = false;
  for (size_t megabytes = 8; !without && megabytes <= 40; ++megabytes) {
    CardsOfTest cards(WithMemory(megabytes));
    const FakeControl& of_cards = cards.control();
    try {
      Adder adder(OneCard());
      std::optional<Adder> idle(std::in_place, OneCard());
      const auto both = [&] {
        adder.Run(a);
        idle->Run(a);
      };
      for (int i = 0; i < 3; ++i) both();
      const int64_t launches = of_cards.launches();
      both();
      const bool recorded = of_cards.launches() == launches;
      // Runs a step behind one that knows its feed. Returns whether this was copied ahead.
      const auto copies = [&](const Tensor& value, const Tensor& next) {
        adder.Run(value, next);
        const int64_t late = of_cards.copies_between_kernels();
        ExpectTriple(adder.Run(next), next);
        return of_cards.copies_between_kernels() == late;
      };
      without = recorded && !copies(a, b);
      if (recorded) {
        idle->Run(a);
        EXPECT_EQ(of_cards.launches(), launches) << megabytes;
      }
      if (without) {
        idle.reset();
        EXPECT_FALSE(copies(a, b));  // does not ask again yet
        for (int i = 0; i < kStepsWithout; ++i) adder.Run(a, b);
        EXPECT_TRUE(copies(a, b));
      }
    } catch (const ResourceExhaustedError&) {
      // There is too little for a step.
    }
    EXPECT_EQ(of_cards.live(), FakeLive());
    cards.End();
  }
  EXPECT_TRUE(without);
}

}  // namespace
}  // namespace cohort::cuda
