#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/proto/event.pb.h"
#include "cohort/summary/event_reader.h"
#include "cohort/summary/event_writer.h"
#include "cohort/summary/summary.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using Outcome = RecordReader::Outcome;

EventWriter::Options FixedClock() {
  EventWriter::Options options;
  options.now = [] { return 1.7e9; };
  return options;
}

std::vector<Event> ReadAll(const std::string& path) {
  EventReader reader(path);
  std::vector<Event> events;
  Event event;
  while (reader.Read(&event) == Outcome::kRecord) events.push_back(event);
  return events;
}

TEST(EventTest, KnownBytes) {
  const testing::TempFolder folder;
  EventWriter writer(folder / "new", FixedClock());
  writer.Scalar("loss", 0.5f, 3);
  writer.Close();
  const std::string version(
      "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\0\x40\xfc\x54\xd9\x41\x1a\x0d"
      "brain.Event:2\xec\xed\x8f\x9d",
      40);
  const std::string scalar(
      "\x1a\0\0\0\0\0\0\0\x12\x9b\xd8\x2d\x09\0\0\0\x40\xfc\x54\xd9\x41\x10\x03\x2a\x0d\x0a\x0b\x0a\x04"
      "loss\x15\0\0\0\x3f\x35\xf1\x32\xef",
      42);
  EXPECT_EQ(ReadFile(writer.path()), version + scalar);
}

// Limits the size of files that this process writes.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &saved_);
    rlimit limit = saved_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &saved_); }

 private:
  rlimit saved_{};
};

TEST(EventTest, AFullDiskLosesEventsAndThrowsNothing) {
  const testing::TempFolder folder;
  EventWriter writer(folder / "new", FixedClock());
  writer.Scalar("loss", 0.5f, 1);
  writer.Flush();
  ::testing::internal::CaptureStderr();
  {
    const FileLimit limit(2000);  // what is logged fits
    for (int step = 2; step < 200; ++step) writer.Scalar("loss", 0.5f, step);
    writer.Flush();
  }
  writer.Scalar("loss", 0.5f, 50);
  writer.Close();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("events of " + writer.path() + " are lost from now on"));
  EXPECT_EQ(said.find("are lost", said.find("are lost") + 1), std::string::npos) << "it is said once";
  EXPECT_THROW(writer.Scalar("loss", 0.5f, 201), FailedPreconditionError);
}

TEST(EventTest, WhatIsWrittenIsRead) {
  const testing::TempFolder folder;
  EventWriter writer(folder / "new", FixedClock());
  writer.SessionLog(SessionStatus::kStart, 5);
  writer.Scalar("loss", 0.25f, 5);
  writer.Histogram("weights", Tensor::Vector<float>({-1, 0, 1, 1}), 6);
  writer.Graph("graph bytes");
  writer.MetaGraph("meta bytes");
  writer.SessionLog(SessionStatus::kCheckpoint, 7, "/dir/model.ckpt-7", "saved");
  writer.Summary(MergeSummaries({ScalarSummary("a", 1), ScalarSummary("b", 2)}), 8);
  writer.Close();
  const std::vector<Event> events = ReadAll(writer.path());
  ASSERT_EQ(events.size(), 8u);
  EXPECT_EQ(events[0].bytes, "brain.Event:2");
  EXPECT_EQ(events[1].kind, Event::Kind::kSessionLog);
  EXPECT_EQ(events[1].session_status, 1);
  EXPECT_EQ(events[2].step, 5);
  EXPECT_EQ(events[2].wall_time, 1.7e9);
  ASSERT_EQ(events[2].values.size(), 1u);
  EXPECT_EQ(events[2].values[0].kind, SummaryValue::Kind::kScalar);
  EXPECT_EQ(events[2].values[0].scalar, 0.25f);
  EXPECT_EQ(events[3].values[0].kind, SummaryValue::Kind::kHistogram);
  EXPECT_EQ(events[3].values[0].histogram.num, 4);
  EXPECT_EQ(events[4].kind, Event::Kind::kGraph);
  EXPECT_EQ(events[4].bytes, "graph bytes");
  EXPECT_EQ(events[5].bytes, "meta bytes");
  EXPECT_EQ(events[6].checkpoint_path, "/dir/model.ckpt-7");
  EXPECT_EQ(events[6].bytes, "saved");
  ASSERT_EQ(events[7].values.size(), 2u);
  EXPECT_EQ(events[7].values[1].tag, "b");
}

TEST(EventTest, TensorScalarsOfNewerWritersAreScalars) {
  const testing::TempFolder folder;
  const std::string path = folder / "events";
  RecordWriter writer(path);
  const std::string summary(
      "\x0a\x21\x0a\x04loss\x42\x0a\x08\x01\x12\x00\x2a\x04\x00\x00\x00\x3f\x4a\x0d\x0a\x09\x0a\x07"
      "scalars\x20\x01",
      35);
  proto::Event event;
  ASSERT_TRUE(event.mutable_summary()->ParseFromString(summary));
  writer.Write(event.SerializeAsString());
  writer.Close();
  const std::vector<Event> events = ReadAll(path);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].values.at(0).kind, SummaryValue::Kind::kScalar);
  EXPECT_EQ(events[0].values.at(0).scalar, 0.5f);
  EXPECT_EQ(events[0].values.at(0).plugin_name, "scalars");
}

TEST(EventTest, FlushesByCountAndOnDemand) {
  EventWriter::Options options = FixedClock();
  options.max_queue = 3;
  const testing::TempFolder folder;
  EventWriter writer(folder / "new", options);
  EXPECT_EQ(ReadAll(writer.path()).size(), 1u);  // the version, at once
  writer.Scalar("x", 1, 1);
  writer.Scalar("x", 2, 2);
  EXPECT_EQ(ReadAll(writer.path()).size(), 1u);
  writer.Scalar("x", 3, 3);
  EXPECT_EQ(ReadAll(writer.path()).size(), 4u);
  writer.Scalar("x", 4, 4);
  writer.Flush();
  EXPECT_EQ(ReadAll(writer.path()).size(), 5u);
  writer.Close();
  EXPECT_THROW(writer.Scalar("x", 5, 5), FailedPreconditionError);
}

TEST(EventTest, FlushSecsZeroFlushesEveryEvent) {
  EventWriter::Options options = FixedClock();
  options.flush_interval = std::chrono::milliseconds(0);
  const testing::TempFolder folder;
  EventWriter writer(folder / "new", options);
  writer.Scalar("x", 1, 1);
  EXPECT_EQ(ReadAll(writer.path()).size(), 2u);
}

TEST(EventTest, NamesSortInTheOrderOfTheWriters) {
  const testing::TempFolder folder;
  EventWriter::Options options = FixedClock();
  options.filename_suffix = ".test";
  EventWriter first(folder / "new", options);
  EventWriter second(folder / "new", options);
  EXPECT_THAT(first.path(), ::testing::StartsWith(folder / "new/events.out.tfevents.1700000000."));
  EXPECT_THAT(first.path(), ::testing::EndsWith(".test"));
  EXPECT_LT(first.path(), second.path());
}

TEST(EventTest, TruncatedTailAndForeignRecordsAreTold) {
  const testing::TempFolder folder;
  EventWriter writer(folder / "new", FixedClock());
  writer.Scalar("loss", 0.5f, 3);
  writer.Close();
  const std::string bytes = ReadFile(writer.path());
  std::ofstream(writer.path(), std::ios::binary | std::ios::trunc) << bytes.substr(0, bytes.size() - 1);
  EventReader reader(writer.path());
  Event event;
  EXPECT_EQ(reader.Read(&event), Outcome::kRecord);
  EXPECT_EQ(reader.Read(&event), Outcome::kTruncated);
  EXPECT_EQ(reader.offset(), 40);

  RecordWriter foreign(writer.path());
  foreign.Write("\xff\xff no event");
  foreign.Close();
  EventReader foreign_reader(writer.path());
  try {
    foreign_reader.Read(&event);
    ADD_FAILURE();
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("offset 0 of " + writer.path()));
  }
}

TEST(SummaryTest, BadInputIsNamed) {
  try {
    HistogramSummary("grad/norm", Tensor::Scalar(std::nanf("")));
    ADD_FAILURE();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("grad/norm"));
  }
  EXPECT_THROW(MergeSummaries({ScalarSummary("a", 1), ScalarSummary("a", 2)}), InvalidArgumentError);
  EXPECT_THROW(MergeSummaries({"\xff"}), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort
