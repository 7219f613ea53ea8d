#include "cohort/keras/callbacks/progress_bar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace cohort::keras {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ProgressBarTest : public ::testing::Test {
 protected:
  ProgressBar Make(ProgressBar::Options options) {
    return ProgressBar(out, options, [this] { return now; });
  }
  std::string Taken() {
    std::string text = out.str();
    out.str("");
    return text;
  }

  std::ostringstream out;
  double now = 100;
};

TEST_F(ProgressBarTest, DrawsTheBarOfTheGuide) {
  ProgressBar bar = Make({.target = 214});
  now += 2;
  bar.Update(1, {{"loss", 2.5}, {"accuracy", 0.25}});
  EXPECT_EQ(Taken(), "\r  1/214 [..............................] - ETA: 7:06 - loss: 2.5000 - accuracy: 0.2500");
  now += 0.0371 * 106;
  bar.Update(107, {{"loss", 2.3}, {"accuracy", 0.5}});
  // The first step, which builds, does not count.
  EXPECT_EQ(Taken(), "\r107/214 [==============>...............] - ETA: 3s - loss: 2.3000 - accuracy: 0.5000  ");
  now += 0.0371 * 107;
  bar.Update(
      214,
      {{"loss", 2.3027}, {"learning_rate", 1e-4}, {"val_loss", 2.3026}, {"accuracy", 0.0998}, {"val_accuracy", 0.1}},
      true);
  EXPECT_EQ(Taken(),
            "\r214/214 [==============================] - 10s 37ms/step - loss: 2.3027 - accuracy: 0.0998 - "
            "val_loss: 2.3026 - val_accuracy: 0.1000 - learning_rate: 1.0000e-04\n");
}

TEST_F(ProgressBarTest, IsNotDrawnMoreOftenThanItsInterval) {
  ProgressBar bar = Make({.target = 10, .interval = std::chrono::milliseconds(500)});
  EXPECT_TRUE(bar.Due(1, false));
  bar.Update(1, {});
  now += 0.25;
  EXPECT_FALSE(bar.Due(2, false));
  EXPECT_TRUE(bar.Due(2, true));
  Taken();
  bar.Update(2, {});
  EXPECT_EQ(Taken(), "");
  now += 0.25;
  EXPECT_TRUE(bar.Due(3, false));
}

TEST_F(ProgressBarTest, AShorterLineCoversTheLongerOneBefore) {
  ProgressBar bar = Make({.target = 10, .interval = std::chrono::milliseconds(0)});
  bar.Update(1, {{"loss", 123456.0}});
  Taken();
  bar.Update(1, {{"loss", 1.0}});
  EXPECT_THAT(Taken(), ::testing::EndsWith("loss: 1.0000     "));
}

TEST_F(ProgressBarTest, PlainLinesWhenPipedAndForVerboseTwo) {
  for (const auto& [verbose, terminal] : {std::pair(1, false), std::pair(2, true)}) {
    ProgressBar bar = Make({.target = 214, .verbose = verbose, .terminal = terminal});
    EXPECT_FALSE(bar.Due(1, false));
    bar.Update(1, {{"loss", 1.0}});
    now += 9;
    bar.Update(214, {{"loss", 2.3027}, {"accuracy", 0.0998}}, true);
    EXPECT_EQ(Taken(), "214/214 - 9s - 42ms/step - loss: 2.3027 - accuracy: 0.0998\n");
  }
}

TEST_F(ProgressBarTest, CountsWhereTheNumberOfStepsIsNotKnown) {
  ProgressBar bar = Make({});
  now += 0.5;
  bar.Update(3, {});
  EXPECT_EQ(Taken(), "\r      3/Unknown - 0s 167ms/step");
}

TEST_F(ProgressBarTest, NumbersAndTimes) {
  EXPECT_EQ(FormatMetricValue(0.5), "0.5000");
  EXPECT_EQ(FormatMetricValue(-1234.5), "-1234.5000");
  EXPECT_EQ(FormatMetricValue(0.00012), "1.2000e-04");
  EXPECT_EQ(FormatMetricValue(0), "0.0000e+00");
  EXPECT_EQ(FormatMetricValue(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(FormatDuration(12), "12s");
  EXPECT_EQ(FormatDuration(185), "3:05");
  EXPECT_EQ(FormatDuration(3723), "1:02:03");
  EXPECT_EQ(FormatTimePerUnit(2.4, "step"), "2s/step");
  EXPECT_EQ(FormatTimePerUnit(0.037, "step"), "37ms/step");
  EXPECT_EQ(FormatTimePerUnit(80e-6, "step"), "80us/step");
  EXPECT_EQ(FormatTimePerUnit(0, "step"), "0s/step");
}

TEST_F(ProgressBarTest, TheLoggerReadsValuesOnlyToShowThem) {
  ProgressBarLogger logger(out, false);
  logger.Attach(nullptr, {.epochs = 2});
  int reads = 0;
  const auto logs = [&](double loss) {
    return BatchLogs(loss, [&reads, loss] {
      ++reads;
      return Logs{{"loss", loss}};
    });
  };
  logger.OnTrainBegin();
  logger.OnEpochBegin(0);
  for (int batch = 0; batch < 3; ++batch) logger.OnTrainBatchEnd(batch, logs(1));
  logger.OnTestBegin();
  logger.OnTestBatchEnd(0, logs(5));
  logger.OnTestEnd({{"loss", 5}});
  Logs epoch = {{"loss", 0.5}, {"val_loss", 5}};
  logger.OnEpochEnd(0, epoch);
  EXPECT_EQ(reads, 0);
  const std::string text = Taken();
  EXPECT_THAT(text, ::testing::StartsWith("Epoch 1/2\n3/3 - "));
  EXPECT_THAT(text, ::testing::EndsWith(" - loss: 0.5000 - val_loss: 5.0000\n"));
  logger.OnTrainEnd({});
  logger.OnTestBegin();
  logger.OnTestBatchEnd(0, logs(5));
  logger.OnTestEnd({{"loss", 5}});
  EXPECT_THAT(Taken(), HasSubstr("1/1 - "));
  ProgressBarLogger silent(out, true);
  silent.Attach(nullptr, {.verbose = 0, .epochs = 2});
  silent.OnTrainBegin();
  silent.OnEpochBegin(0);
  silent.OnTrainBatchEnd(0, logs(1));
  silent.OnEpochEnd(0, epoch);
  EXPECT_EQ(Taken(), "");
  EXPECT_EQ(reads, 0);
}

}  // namespace
}  // namespace cohort::keras
