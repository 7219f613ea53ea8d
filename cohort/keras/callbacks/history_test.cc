#include "cohort/keras/callbacks/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(HistoryTest, KeepsValuesByNameAndEpoch) {
  History history;
  history.Add(0, {{"loss", 3}, {"accuracy", 0.5}});
  history.Add(1, {{"loss", 2}, {"val_loss", 2.5}});
  history.Add(2, {{"loss", 1}, {"accuracy", 0.75}, {"val_loss", 2}});
  EXPECT_THAT(history.epochs(), ElementsAre(0, 1, 2));
  EXPECT_THAT(history.names(), ElementsAre("loss", "accuracy", "val_loss"));
  EXPECT_THAT(history["loss"], ElementsAre(3, 2, 1));
  EXPECT_TRUE(std::isnan(history["accuracy"][1]));
  EXPECT_TRUE(std::isnan(history["val_loss"][0]));
  EXPECT_EQ(history["val_loss"][2], 2);
  EXPECT_THAT(MessageOf<NotFoundError>([&] { history["val_accuracy"]; }),
              AllOf(HasSubstr("'val_accuracy'"), HasSubstr("loss, accuracy, val_loss")));
}

TEST(HistoryTest, PlotsACurveForEveryQuantity) {
  History history;
  history.Add(0, {{"loss", 3}, {"a<b", 0.5}, {"val_loss", 3.5}});
  history.Add(1, {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"a<b", 0.5}, {"val_loss", 2.5}});
  history.Add(2, {{"loss", 1}, {"a<b", 0.5}, {"val_loss", 2}});
  const std::string svg = history.Svg();
  EXPECT_THAT(svg,
              AllOf(HasSubstr("<svg "), HasSubstr("</svg>"), HasSubstr(">loss</text>"), HasSubstr(">a&lt;b</text>")));
  EXPECT_EQ(Count(svg, "<g>"), 2);  // val_loss is drawn into loss's chart
  EXPECT_EQ(Count(svg, "<path"), 3);
  EXPECT_EQ(Count(svg, "<circle"), 8);  // no point for NaN
  EXPECT_EQ(Count(svg, "validation"), 1);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(HistoryTest, WritesTheFileWholeOrNotAtAll) {
  const testing::TempFolder folder;
  const std::string path = folder / "curves.svg";
  History history;
  EXPECT_THROW(history.Plot(path), FailedPreconditionError);
  history.Add(0, {{"loss", 0}});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { history.Plot("curves.png"); }), HasSubstr("curves.png"));
  history.Plot(path);
  EXPECT_EQ(ReadFile(path), history.Svg());
}

}  // namespace
}  // namespace cohort::keras
