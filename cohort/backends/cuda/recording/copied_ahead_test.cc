// Feeds of recorded steps that are copied to the card while the step before runs.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/fake/cards_of_test.h"
#include "cohort/backends/cuda/testing/adder.h"
#include "cohort/core/error.h"

namespace cohort::cuda {
namespace {

// Returns whether it becomes true.
template <typename Condition>
bool Becomes(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_F(CopiedAheadTest, TheCopyRunsBesideTheStep) {
  COHORT_NEEDS_FAKE("its graphs stand still until the test lets them go on");
  for (const size_t feeds : {1, 6}) {
    Adder adder(Unlimited(), feeds);
    const Tensor a = Batch(8, 1), b = Batch(8, 2);
    adder.Warm(a);
    adder.Run(a);
    // Runs a step whose graph stands still until as many bytes as those of `a`, which is copied before the graph, and
    // of `b` are there by `count`.
    const auto run = [&](const auto& count) {
      control().HoldGraphs(0);
      const int64_t expected = count() + static_cast<int64_t>(feeds * (a.bytes() + b.bytes()));
      std::atomic<bool> ended{false};
      std::thread step([&] {
        adder.Run(a, b);
        ended = true;
      });
      const bool came = Becomes([&] { return count() == expected; });
      EXPECT_FALSE(ended);
      control().Release(0);
      step.join();
      return came;
    };
    // Until there is memory for the copies of three steps they run behind the graph.
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(run([&] { return counts_->bytes_from_host(); }));
    adder.Run(b);  // ends when the copies have been made
    EXPECT_TRUE(run([&] { return control().bytes_arrived(); })) << feeds;
    const int64_t copied = counts_->bytes_from_host();
    ExpectTriple(adder.Run(b), b);
    EXPECT_EQ(counts_->bytes_from_host(), copied);
  }
}

// Right and wrong guesses, other shapes, and no guess.
TEST_F(CopiedAheadTest, TheBitsAreThoseOfOtherSteps) {
  constexpr int kSteps = 40;
  std::vector<Tensor> results[2];
  int64_t late[2] = {};
  for (const bool ahead : {false, true}) {
    Adder adder(Unlimited());
    std::vector<Tensor> batches;
    for (int i = 0; i <= kSteps; ++i) batches.push_back(Batch(i % 7 == 6 ? 3 : 8, 10 + i));
    const int64_t before = counts_->copies_between_kernels();
    for (int i = 0; i < kSteps; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto guess = [&]() -> std::vector<Tensor> {
        if (i % 5 == 4) return {};
        if (i % 5 == 3) return {Batch(8, 1000 + i)};
        return {batches[at + 1]};
      };
      results[ahead].push_back(ahead ? adder.Run(batches[at], guess) : adder.Run(batches[at]));
    }
    late[ahead] = counts_->copies_between_kernels() - before;
    results[ahead].push_back(adder.Sum());
  }
  ExpectSame(results[1], results[0]);
  EXPECT_LT(late[1], late[0] - kSteps / 4);
}

// Between steps the program may write into a tensor that it has fed.
TEST_F(CopiedAheadTest, AChangedTensorIsCopiedAgain) {
  Adder adder(Unlimited());
  Tensor a = Batch(8, 1), b = Batch(8, 2);
  adder.Warm(a);
  adder.Run(a);  // the last one of Warm has said that `a` comes next, so it must stay until here
  for (int i = 0; i < 3; ++i) {
    a.data<float>()[i] += 1.0f;
    ExpectTriple(i == 0 ? adder.Run(a, b) : adder.Run(a), a);
  }
  for (const bool used : {true, false}) {
    adder.Run(a, b);
    adder.Run(used ? b : a);
    b.data<float>()[0] += 1.0f;
    ExpectTriple(adder.Run(b), b);
  }
}

// A launched step comes between the copy and the step that could use it.
TEST_F(CopiedAheadTest, ALaunchedStepEndsTheCopy) {
  Adder adder(Unlimited());
  Tensor a = Batch(8, 1), b = Batch(8, 2);
  adder.Warm(a);
  adder.Run(a, b);
  config::EnableStepRecording(false);
  adder.Run(b);
  config::EnableStepRecording(true);
  b.data<float>()[0] += 1.0f;
  ExpectTriple(adder.Run(b), b);
}

// A loop that has ended calls DropNext. Then the program may write into what would have come next.
TEST_F(CopiedAheadTest, ADroppedCopyIsNotUsedAndItsMemoryIsFree) {
  Adder adder(Unlimited());
  Tensor a = Batch(8, 1), b = Batch(8, 2);
  adder.DropNext();  // there is none
  adder.Warm(a);
  adder.Run(a);
  const int64_t in_use = config::GetMemoryInfo("GPU:0").current;
  adder.Run(a, b);
  EXPECT_GT(config::GetMemoryInfo("GPU:0").current, in_use);
  adder.DropNext();
  EXPECT_EQ(config::GetMemoryInfo("GPU:0").current, in_use);
  b.data<float>()[0] += 1.0f;
  ExpectTriple(adder.Run(b, a), b);
  const int64_t late = counts_->copies_between_kernels();
  ExpectTriple(adder.Run(a), a);
  EXPECT_EQ(counts_->copies_between_kernels(), late);
}

// It is the same buffer, but another part of it, or other elements.
TEST_F(CopiedAheadTest, ThePartOfTheBufferCounts) {
  Adder adder(Unlimited());
  const Tensor all = Batch(24, 1);
  const Tensor parts[] = {all.Slice(0, 8), all.Slice(8, 16), all.Slice(16, 24)};
  adder.Warm(parts[0]);
  for (const Tensor& next : parts) {
    for (const Tensor& part : parts) {
      adder.Run(parts[0], next);
      ExpectTriple(adder.Run(part), part);
    }
  }
}

TEST_F(CopiedAheadTest, FeedsThatDoNotFitAreNoErrorOfTheStep) {
  Adder adder(Unlimited());
  const Tensor a = Batch(8, 1);
  adder.Warm(a);
  int asked = 0;
  const Callable::NextFeeds unfit[] = {
      [&]() -> std::vector<Tensor> {
        ++asked;
        throw std::runtime_error("no feeds");
      },
      [&] {
        ++asked;
        return std::vector<Tensor>{a, a};
      },
      [&] {
        ++asked;
        return std::vector<Tensor>{Tensor()};
      },
      [&] {
        ++asked;
        return std::vector<Tensor>{Tensor::Scalar(int64_t{1})};
      },
  };
  for (const Callable::NextFeeds& next : unfit) {
    ExpectTriple(adder.Run(a, next), a);
    ExpectTriple(adder.Run(a), a);
  }
  EXPECT_EQ(asked, 4);
}

TEST_F(CopiedAheadTest, StepsOfSeveralThreadsGetTheirOwnFeeds) {
  constexpr int kThreads = 3, kSteps = 30;
  Adder adder(Unlimited());
  adder.Warm(Tensor::Zeros(DType::kFloat32, Shape{8, 64}));
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Tensor value = Batch(8, t);
      for (int i = 0; i < kSteps; ++i) {
        const Tensor next = Batch(8, 100 * t + i);
        ExpectTriple(adder.Run(value, next), value);
        value = next;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A step that fails for its own reasons, and a copy that nobody uses, leave nothing behind.
TEST_F(CopiedAheadTest, AllIsFreedAtTheEnd) {
  COHORT_NEEDS_FAKE("the test has a card of its own");
  CardsOfTest cards;
  {
    Adder adder(OneCard());
    const Tensor a = Batch(8, 1);
    adder.Warm(a);
    EXPECT_THROW(adder.Run(Tensor::Scalar(1.0f), a), InvalidArgumentError);
    adder.Run(a, Batch(8, 2));
  }
  EXPECT_EQ(cards.control().live(), FakeLive());
  cards.End();
}

// Whatever work the card fails at, the copy for the next step included, a step says so, and the session ends.
TEST_F(CopiedAheadTest, ACardThatFailsFailsAStep) {
  COHORT_NEEDS_FAKE("its cards fail when the test says so");
  constexpr int kWork = 8;  // more than two steps have
  for (int n = 1; n <= kWork; ++n) {
    CardsOfTest cards;
    {
      Adder adder(OneCard());
      const Tensor a = Batch(8, 1), b = Batch(8, 2);
      adder.Warm(a);
      cards.control().FailWork(0, n);
      EXPECT_THROW(for (int i = 0; i < kWork; ++i) adder.Run(i % 2 == 0 ? a : b, i % 2 == 0 ? b : a), InternalError)
          << n;
    }
    cards.End();
  }
}

}  // namespace
}  // namespace cohort::cuda
