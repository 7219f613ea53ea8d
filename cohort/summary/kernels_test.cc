#include "cohort/summary/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/images/png.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/summary.h"
#include "cohort/proto/event.pb.h"
#include "cohort/summary/summary.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using testing::Interpreter;

class SummaryKernelsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!KernelRegistry::Global().Has("ScalarSummary", "CPU")) RegisterSummaryKernels(KernelRegistry::Global());
  }
  std::string Text(Output summary) { return run.Run1(summary).scalar<std::string>(); }

  Graph graph;
  Interpreter run;
};

TEST_F(SummaryKernelsTest, ScalarsOfAllNumbers) {
  const std::string half = ScalarSummary("train/loss", 0.5f);
  const NameScope scope(graph, "train");
  EXPECT_EQ(Text(ops::ScalarSummary("loss", ops::Const(graph, 0.5f))), half);
  EXPECT_EQ(Text(ops::ScalarSummary("loss", ops::Const(graph, 0.5))), ScalarSummary("train/loss_1", 0.5f));
  EXPECT_EQ(Text(ops::ScalarSummary("step", ops::Const(graph, int64_t{7}))), ScalarSummary("train/step", 7.0f));
}

TEST_F(SummaryKernelsTest, SeveralTagsAtOnce) {
  const Output both = graph.Op("ScalarSummary")
                          .Input(ops::Const(graph, std::vector<std::string>{"a", "b"}))
                          .Input(ops::Const(graph, std::vector<float>{1, 2}))
                          .Finish1();
  EXPECT_EQ(Text(both), MergeSummaries({ScalarSummary("a", 1), ScalarSummary("b", 2)}));
}

TEST_F(SummaryKernelsTest, ImagesAreScaledPngFiles) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor numbers = Tensor::FromValues(std::vector<float>{0, 2, 4, nan, -2, 0, 1, -1}, Shape{2, 2, 2, 1});
  const std::string text = Text(ops::ImageSummary("w", ops::Const(graph, numbers), 2));
  EXPECT_EQ(text, ImageSummary("w", numbers, 2));
  proto::Summary summary;
  ASSERT_TRUE(summary.ParseFromString(text));
  ASSERT_EQ(summary.value_size(), 2);
  const std::vector<std::vector<uint8_t>> expected = {{0, 127, 255, 255}, {1, 128, 191, 64}};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(summary.value(i).tag(), StrCat("w/image/", i));
    EXPECT_EQ(summary.value(i).image().colorspace(), 1);
    EXPECT_EQ(images::DecodePng(summary.value(i).image().encoded_image_string()).ToVector<uint8_t>(), expected[i]);
  }
  ASSERT_TRUE(summary.ParseFromString(ImageSummary("one", numbers, 1)));
  EXPECT_EQ(summary.value(0).tag(), "one/image");
  EXPECT_THROW(ImageSummary("w", Tensor::Scalar(1.0f)), InvalidArgumentError);
}

TEST_F(SummaryKernelsTest, HistogramsAndTheirErrors) {
  const Tensor values = Tensor::Vector<float>({-1, 0, 2, 2});
  EXPECT_EQ(Text(ops::HistogramSummary("w", ops::Const(graph, values))), HistogramSummary("w", values));
  const Output bad =
      ops::HistogramSummary("bad", ops::Const(graph, std::vector<float>{std::numeric_limits<float>::quiet_NaN()}));
  try {
    Text(bad);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("bad"));
  }
}

TEST_F(SummaryKernelsTest, TheCollectionIsMerged) {
  EXPECT_FALSE(ops::MergeAllSummaries(graph).valid());
  ops::ScalarSummary("a", ops::Const(graph, 1.0f));
  const Output b = ops::ScalarSummary("b", ops::Const(graph, 2.0f));
  EXPECT_EQ(Text(ops::MergeAllSummaries(graph)), MergeSummaries({ScalarSummary("a", 1), ScalarSummary("b", 2)}));
  EXPECT_THROW(Text(ops::MergeSummary({b, b})), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort
