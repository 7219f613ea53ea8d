// Checkpoints of variables that recorded steps update: restored between two steps, and saved while steps run.
#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "cohort/backends/cuda/testing/network.h"
#include "cohort/backends/cuda/testing/recording_fixture.h"
#include "cohort/checkpoint/saver.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/registration.h"

namespace cohort::cuda {
namespace {

class RecordedCheckpoints : public RecordingTest {
 protected:
  static void SetUpTestSuite() {
    RecordingTest::SetUpTestSuite();
    RegisterAll();
  }
  // Returns the values of a checkpoint, in the order of Network::Values.
  static std::vector<Tensor> ValuesIn(const std::string& prefix, const Network& network) {
    const BundleReader reader(prefix);
    std::vector<Tensor> values;
    for (const VariableInfo* info : network.graph_.variables()) values.push_back(reader.Read(info->name));
    return values;
  }
  const testing::TempFolder folder_;
};

// A restored value is copied into the variable's memory. A graph runs only if its variables are where they were, and no
// kernel is launched, so the graph is not recorded again.
TEST_F(RecordedCheckpoints, RestoredValuesAreSeenByTheGraph) {
  constexpr int kSteps = 9, kSaved = 3;
  std::vector<Tensor> results[2];
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Network network(Rule::kAdam, Config());
    Saver saver(network.graph_);
    network.Initialize();
    std::string prefix;
    for (int i = 0; i < kSteps; ++i) {
      const Asked asked = AskedBy([&] { results[recorded].push_back(network.Train(5, i)); });
      EXPECT_EQ(asked.graphs, recorded && i > 0 ? 1 : 0) << i;
      if (recorded && i > 1) {
        EXPECT_EQ(asked.launches, 0) << i;
      }
      if (i == kSaved) prefix = saver.Save(*network.session, folder_ / "model", i);
      if (i <= kSaved || i % 2 == 0) continue;
      EXPECT_FALSE(SameBits(network.Values()[0], ValuesIn(prefix, network)[0]));
      saver.Restore(*network.session, prefix);
      ExpectSame(network.Values(), ValuesIn(prefix, network));
    }
    for (const Tensor& value : network.Values()) results[recorded].push_back(value);
  }
  ExpectSame(results[1], results[0]);
}

// A snapshot holds values, so steps beside it may be launched, and variables may move. The steps compute the same, and
// each checkpoint has the values between two of them.
TEST_F(RecordedCheckpoints, ACheckpointBesideRecordedStepsHasTheValuesOfOneMoment) {
  constexpr int kSteps = 60, kFirst = 2, kLeast = 3;
  std::vector<Tensor> losses[2];
  std::vector<std::vector<Tensor>> after;  // the values after each step
  std::vector<std::string> prefixes;
  for (const bool saves : {false, true}) {
    Network network(Rule::kAdam, Config());
    Saver saver(network.graph_, {.max_to_keep = 0});
    network.Initialize();
    std::atomic<int> saved{0};
    std::atomic<bool> ended{false};
    std::thread saving;
    for (int i = 0; i < kSteps; ++i) {
      losses[saves].push_back(network.Train(5, i).Clone());
      if (!saves) {
        after.emplace_back();
        for (const Tensor& value : network.Values()) after.back().push_back(value.Clone());
      } else if (i == kFirst) {
        saving = std::thread([&] {
          while (!ended) prefixes.push_back(saver.Save(*network.session, folder_ / "beside", saved++));
        });
      }
    }
    while (saves && saved < kLeast) std::this_thread::yield();
    ended = true;
    if (saves) saving.join();
    ExpectSame(network.Values(), after.back());
    for (int i = 0; i < 4; ++i) {  // graphs run again, where the variables are now
      const Asked asked = AskedBy([&] { losses[saves].push_back(network.Train(5, kSteps + i).Clone()); });
      if (i > 1) {
        EXPECT_EQ(asked.graphs, 1) << i;
      }
    }
    for (const std::string& prefix : prefixes) {
      const std::vector<Tensor> values = ValuesIn(prefix, network);
      const bool is_of_one_moment = std::any_of(after.begin(), after.end(), [&](const std::vector<Tensor>& of_step) {
        return std::equal(values.begin(), values.end(), of_step.begin(), of_step.end(), SameBits);
      });
      EXPECT_TRUE(is_of_one_moment) << prefix;
    }
  }
  EXPECT_GE(prefixes.size(), static_cast<size_t>(kLeast));
  ExpectSame(losses[1], losses[0]);
}

}  // namespace
}  // namespace cohort::cuda
