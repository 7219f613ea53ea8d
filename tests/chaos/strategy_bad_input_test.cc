// One of several workers gets data on which it cannot train. Every worker ends in time, with an error that names that
// worker and the cause. This holds whether the process of the failing worker ends or stays. Data that are unusual but
// not wrong end the training of all workers in the same way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "cohort/core/str_cat.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kWorkers = 3;
constexpr int kLimitMs = 20000;  // 5 s and the start of three processes, which takes long on a busy machine

struct Wrong {
  const char* data;  // strategy_task's --own_data
  const char* code;
  const char* cause;
  bool built = true;
};
constexpr Wrong kWrong[] = {
    {"labels", "InvalidArgument", "Received a label value of 7 which is outside the valid range of [0, 3)"},
    {"empty", "InvalidArgument", "expected at least one batch; the dataset is empty"},
    {"raises", "DataLoss", "the last row is damaged"},
    {"shape", "InvalidArgument", "expected data of shape [?,5] for input 0 of the model"},
    {"strings", "InvalidArgument", "got string[?,5]"},
    {"raises", "DataLoss", "the last row is damaged", false},
    {"unbatched", "InvalidArgument", "expected a dataset of batches", false},  // it fails before it meets the others
};

class StrategyBadInput : public ::testing::Test {
 protected:
  StrategyBadInput() : cluster_({{"worker", kWorkers}}, {STRATEGY_TASK}) { UseTestToken(); }

  void StartAllBut(int victim, const Arguments& flags, const Arguments& flags_of_victim) {
    start_ = Clock::now();
    for (int w = 0; w < kWorkers; ++w) cluster_.Start("worker", w, w == victim ? flags_of_victim : flags);
  }
  // Returns the worker's error. Checks that it has come in time.
  std::string Failure(int worker) {
    EXPECT_TRUE(cluster_.WaitForLines("worker", worker, "failed", 1)) << cluster_.Describe();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
    EXPECT_LT(took, kLimitMs) << cluster_.Describe();
    return cluster_.LastLine("worker", worker, "failed");
  }
  // Checks that all workers end with the same weights, after `steps` steps.
  void ExpectAllEnd(int steps) {
    for (int w = 0; w < kWorkers; ++w) {
      ASSERT_TRUE(cluster_.WaitForLines("worker", w, "end", 1)) << cluster_.Describe();
      EXPECT_EQ(cluster_.LastLine("worker", w, "weights"), cluster_.LastLine("worker", 0, "weights"));
      EXPECT_EQ(cluster_.CountLines("worker", w, "acked"), steps);
    }
  }

  ProcessCluster cluster_;
  Clock::time_point start_;
};

TEST_F(StrategyBadInput, EveryWorkerIsToldWhatAndWho) {
  int turn = 0;
  for (const bool exits : {false, true}) {
    for (const Wrong& wrong : kWrong) {
      const int victim = turn++ % kWorkers;
      SCOPED_TRACE(StrCat(wrong.data, " at worker ", victim, exits ? ", which goes" : ", which stays",
                          wrong.built ? "" : ", layers that wait for data"));
      const Arguments both = {StrCat("--built=", wrong.built ? 1 : 0), StrCat("--exits=", exits ? 1 : 0)};
      Arguments good = both, bad = both;
      good.emplace_back("--own_data=good");
      bad.push_back(StrCat("--own_data=", wrong.data));
      StartAllBut(victim, good, bad);
      for (int w = 0; w < kWorkers; ++w) {
        const std::string failure = Failure(w);
        EXPECT_THAT(failure, AllOf(HasSubstr(StrCat(" ", wrong.code, ": ")), HasSubstr(wrong.cause)));
        if (w != victim) {
          EXPECT_THAT(failure, HasSubstr(StrCat("worker ", victim, " (", ProcessCluster::FullName("worker", victim))));
        }
        if (exits) {
          EXPECT_EQ(cluster_.task("worker", w).Wait(), 1);
        }
      }
      if (HasFailure()) FAIL() << cluster_.Describe();
    }
  }
}

TEST_F(StrategyBadInput, ACallbackOfOneWorkerAlone) {
  StartAllBut(2, {}, {"--callbacks=early_stopping"});
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_THAT(Failure(w), AllOf(HasSubstr("InvalidArgument"), HasSubstr(ProcessCluster::FullName("worker", 0)),
                                  HasSubstr(ProcessCluster::FullName("worker", 2)),
                                  HasSubstr("callbacks that act on the training: none"),
                                  HasSubstr("callbacks that act on the training: EarlyStopping")));
  }
}

// The loss is that of all workers, so all of them see NaN and stop at the same step.
TEST_F(StrategyBadInput, NaNAtOneWorkerEndsAllTogether) {
  const Arguments flags = {"--callbacks=terminate_on_nan"};
  StartAllBut(1, {flags[0], "--own_data=good"}, {flags[0], "--own_data=nan"});
  // There are 50 examples in parts of 3, 3 and 2. The last example is NaN.
  ASSERT_TRUE(cluster_.WaitForLines("worker", 0, "end", 1)) << cluster_.Describe();
  ExpectAllEnd(cluster_.CountLines("worker", 0, "acked"));
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_THAT(cluster_.task("worker", w).err(), HasSubstr("the loss is "));
    EXPECT_THAT(cluster_.LastLine("worker", w, "weights"), HasSubstr("nan"));
  }
}

TEST_F(StrategyBadInput, MoreStepsThanTheDataHasAreAWarningAtAll) {
  StartAllBut(0, {"--steps_per_epoch=30", "--epochs=1"}, {"--steps_per_epoch=30", "--epochs=1"});
  ExpectAllEnd(7);
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_THAT(cluster_.task("worker", w).err(), HasSubstr("the input ran out of data after 7 of 30 steps"));
  }
}

TEST_F(StrategyBadInput, BatchesLargerThanTheDataAreThatLarge) {
  StartAllBut(0, {"--batch_size=500"}, {"--batch_size=500"});
  ExpectAllEnd(2);
}

}  // namespace
}  // namespace cohort::testing
