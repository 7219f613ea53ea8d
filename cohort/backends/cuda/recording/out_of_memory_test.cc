// A training during which any call finds no memory: of a card, of pinned memory, for a context, a stream, an event or a
// graph, also one that copies the feeds of the next step. It goes on without, or fails with an error that says so;
// afterwards all is as if nothing had happened.
#include <optional>
#include <vector>

#include "cohort/backends/cuda/fake/cards_of_test.h"
#include "cohort/backends/cuda/testing/network.h"
#include "cohort/backends/cuda/testing/recording_fixture.h"

namespace cohort::cuda {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kSteps = 4;  // launched, recorded, and two more from the graph
constexpr int64_t kForEver = int64_t{1} << 40;
constexpr int64_t kMostCalls = 500;  // more than a training makes

class OutOfMemoryTest : public RecordingTest {
 protected:
  void SetUp() override { COHORT_NEEDS_FAKE("the test has cards of its own"); }
  static SessionConfig OneCard() {
    SessionConfig config = Config();
    config.device_count[CudaBackend::Get().type()] = 1;
    config.operation_timeout = {};  // with a time limit feeds are not copied ahead
    return config;
  }
  // Initializes the variables and trains. `step` is called with each piece of work.
  template <typename Step>
  static void Train(Network& network, std::vector<Tensor>* results, const Step& step) {
    std::optional<Callable> train;
    step([&] {
      network.Initialize();
      train = network.session->MakeCallable({network.x, network.labels, network.rate}, {network.loss}, {network.step});
    });
    std::vector<std::vector<Tensor>> feeds(kSteps + 1);
    for (size_t i = 0; i < feeds.size(); ++i) {
      for (const auto& [output, value] : network.Feeds(5, static_cast<int64_t>(i))) feeds[i].push_back(value);
    }
    for (size_t i = 0; i < kSteps; ++i) {
      step([&] { results->push_back((*train)(feeds[i], [&] { return feeds[i + 1]; })[0]); });
    }
    step([&] {
      for (Tensor& value : network.Values()) results->push_back(std::move(value));
    });
  }
  std::vector<Tensor> Reference() {
    CardsOfTest cards;
    std::vector<Tensor> results;
    {
      Network network(Rule::kAdam, OneCard());
      Train(network, &results, [](const auto& work) { work(); });
    }
    for (Tensor& value : results) value = value.Clone();  // fetched values lie in pinned memory
    EXPECT_EQ(cards.control().graph_launches(), kSteps - 1);
    EXPECT_EQ(cards.control().live(), FakeLive());
    cards.End();
    return results;
  }
  // Trains on cards of which the call `n`, and `times` - 1 calls behind it, find no memory. After the first error there
  // is memory again. Returns whether the call was made.
  bool TrainWithout(int64_t n, int64_t times, const std::vector<Tensor>& expected) {
    CardsOfTest cards;
    FakeControl& control = cards.control();
    {
      Network network(Rule::kAdam, OneCard());
      std::vector<Tensor> results;
      bool failed = false;
      control.FailTaking(n, times);
      Train(network, &results, [&](const auto& work) {
        if (failed) return;
        try {
          work();
        } catch (const ResourceExhaustedError& error) {
          failed = true;
          ++errors_;
          EXPECT_THAT(error.what(), AnyOf(HasSubstr("[cuda] "), HasSubstr("[cuda memory] ")));
        }
      });
      control.FailTaking(0);
      if (!failed) ExpectSame(results, expected);
      results.clear();
      Train(network, &results, [](const auto& work) { work(); });
      ExpectSame(results, expected);
    }
    EXPECT_EQ(control.live(), FakeLive());
    const bool was_made = control.takings() >= n;
    cards.End();
    return was_made;
  }

  int errors_ = 0;
};

TEST_F(OutOfMemoryTest, AnyCallMayFindNoMemoryOnce) {
  const std::vector<Tensor> expected = Reference();
  int64_t n = 1;
  while (n < kMostCalls && TrainWithout(n, 1, expected) && !HasFailure()) ++n;
  EXPECT_FALSE(HasFailure()) << "call " << n;
  EXPECT_GT(n, 20);
  EXPECT_LT(n, kMostCalls);
  EXPECT_GT(errors_, 5);
}

TEST_F(OutOfMemoryTest, FromAnyCallOnThereMayBeNoMemoryForATime) {
  const std::vector<Tensor> expected = Reference();
  int64_t n = 1;
  while (n < kMostCalls && TrainWithout(n, kForEver, expected) && !HasFailure()) ++n;
  EXPECT_FALSE(HasFailure()) << "call " << n;
  EXPECT_GT(n, 20);
  EXPECT_LT(n, kMostCalls);
  EXPECT_GT(errors_, 10);
}

}  // namespace
}  // namespace cohort::cuda
