// Reads the files of this folder, which TensorFlow wrote; see README.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/record_io.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/proto/example.pb.h"
#include "cohort/proto/graph.pb.h"
#include "cohort/summary/event_reader.h"
#include "cohort/summary/event_writer.h"
#include "cohort/summary/histogram.h"
#include "tools/cohort/inspect/inspect.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Outcome = RecordReader::Outcome;

const std::string kDir = COHORT_GOLDEN_DIR "/";
constexpr char kEvents[] = "events.out.tfevents.1700000000.golden";

TEST(GoldenTest, TinyCheckpoint) {
  const BundleReader reader(kDir + "tiny");
  EXPECT_THAT(reader.Read("w").ToVector<float>(), ElementsAre(1, 2));
  const testing::TempFolder folder;
  const std::string prefix = folder / "tiny";
  BundleWriter writer(prefix);
  writer.Add("w", Tensor::Vector<float>({1, 2}));
  writer.Finish();
  for (const char* suffix : {".index", ".data-00000-of-00001"}) {
    EXPECT_EQ(ReadFile(prefix + suffix), ReadFile(kDir + "tiny" + suffix)) << suffix;
  }
}

TEST(GoldenTest, CheckpointOfAllDTypes) {
  VerifyCheckpoint(kDir + "dtypes");
  const BundleReader reader(kDir + "dtypes");
  EXPECT_EQ(reader.tensors().size(), 10u);
  EXPECT_THAT(reader.Read("bfloat16").ToVector<bfloat16>(), ElementsAre(bfloat16(1.5f), bfloat16(-2.f)));
  EXPECT_EQ(reader.Read("bool").ToString(), "bool[2] [true, false]");
  EXPECT_EQ(reader.Read("empty").shape(), (Shape{0, 3}));
  EXPECT_THAT(reader.Read("float64").ToVector<double>(), ElementsAre(0.5, 1e300));
  EXPECT_THROW(reader.Read("half"), UnimplementedError);
  EXPECT_THAT(reader.Read("int32").ToVector<int32_t>(), ElementsAre(-7, 7));
  EXPECT_EQ(reader.Read("scalar").scalar<int64_t>(), int64_t{1} << 40);
  EXPECT_THAT(reader.Read("string").ToVector<std::string>(),
              ElementsAre("hi", "", std::string("\0\xff", 2), std::string(130, 'x')));
  EXPECT_THAT(reader.Read("uint8").ToVector<uint8_t>(), ElementsAre(0, 255));
  EXPECT_EQ(reader.Find("v").slices.size(), 2u);
  EXPECT_THAT(reader.Read("v").ToVector<float>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(GoldenTest, EventFile) {
  EventReader reader(kDir + kEvents);
  std::vector<Event> events;
  for (Event event; reader.Read(&event) == Outcome::kRecord;) events.push_back(event);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].bytes, "brain.Event:2");
  EXPECT_EQ(events[1].values.at(0).scalar, 0.5f);
  const HistogramData& histogram = events[2].values.at(0).histogram;
  Histogram expected;
  expected.Add(Tensor::Vector<float>({0, 0, 2}));
  EXPECT_EQ(histogram.limits, expected.Encode().limits);
  EXPECT_EQ(histogram.counts, expected.Encode().counts);
  proto::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(events[3].bytes));
  EXPECT_EQ(graph.node(0).op(), "NoOp");
  EXPECT_EQ(events[4].checkpoint_path, "/m-5");
}

TEST(GoldenTest, EventFileIsWrittenAsTensorFlowDoes) {
  const testing::TempFolder folder;
  EventWriter::Options options;
  options.now = [] { return 1.7e9; };
  EventWriter writer(folder / "events", options);
  writer.Scalar("loss", 0.5f, 3);
  writer.Histogram("weights", Tensor::Vector<float>({0, 0, 2}), 4);
  proto::GraphDef graph;
  graph.add_node()->set_name("a");
  graph.mutable_node(0)->set_op("NoOp");
  writer.Graph(graph.SerializeAsString());
  writer.SessionLog(SessionStatus::kCheckpoint, 5, "/m-5");
  writer.Close();
  EXPECT_EQ(ReadFile(writer.path()), ReadFile(kDir + kEvents));
}

TEST(GoldenTest, Examples) {
  RecordReader reader(kDir + "examples.tfrecord");
  std::string record;
  for (int label = 0; label < 2; ++label) {
    ASSERT_EQ(reader.Read(&record), Outcome::kRecord);
    proto::Example example;
    ASSERT_TRUE(example.ParseFromString(record));
    const auto& features = example.features().feature();
    EXPECT_EQ(features.at("label").int64_list().value(0), label);
    EXPECT_EQ(features.at("pixels").float_list().value(1), 1.f);
    EXPECT_EQ(features.at("name").bytes_list().value(0), "n" + std::to_string(label));
  }
  EXPECT_EQ(reader.Read(&record), Outcome::kEnd);
}

TEST(GoldenTest, InspectShowsThemAll) {
  tools::InspectOptions options;
  options.values = true;
  options.verify = true;
  for (const char* name : {"tiny", "dtypes", kEvents, "examples.tfrecord"}) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(tools::Inspect(kDir + name, options, out, err), 0) << name << ": " << err.str();
    EXPECT_EQ(err.str(), "");
    if (name == std::string("dtypes")) {
      EXPECT_THAT(out.str(), HasSubstr("(values of DT_HALF cannot be shown)"));
    }
  }
}

}  // namespace
}  // namespace cohort
