// Tests of the fields of SessionConfig and ServerOptions for sessions on a cluster: which tasks a session may use, and
// what it logs while it works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "cohort/cluster/port_reservation.h"
#include "cohort/cohort.h"
#include "cohort/collective/group.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LocalCluster;
using ::testing::Not;
using ::testing::Pair;

Output ConstOn(Graph& g, const std::string& device, float value) {
  const DeviceScope scope(g, device);
  return ops::Const(g, value);
}

int Times(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++times;
  return times;
}

std::set<std::string> TasksOf(Session& session) {
  std::set<std::string> tasks;
  for (const DeviceAttributes& device : session.ListDevices()) tasks.insert(device.name.Task().ToString());
  return tasks;
}

TEST(DeviceFilterTest, OnlyMatchingTasksAreUsed) {
  LocalCluster cluster({{"ps", 2}, {"worker", 3}});
  Graph g;
  std::map<std::string, Output> on;
  for (const std::string task : {"ps/task:0", "ps/task:1", "worker/task:0", "worker/task:1", "worker/task:2"}) {
    on[task] = ConstOn(g, "/job:" + task, 1) + ConstOn(g, "/job:" + task, 2);
  }
  SessionConfig config;
  config.device_filters = {"/job:ps", "/job:worker/task:1"};
  Session session(g, cluster.target("worker", 0), config);
  // The filters name the whole job, one task, and the session's own task.
  for (const std::string task : {"ps/task:0", "ps/task:1", "worker/task:1", "worker/task:0"}) {
    EXPECT_EQ(session.Run(on[task]).scalar<float>(), 3) << task;
  }
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(on["worker/task:2"]); }),
              AllOf(HasSubstr("/job:worker/replica:0/task:2"), HasSubstr("no device filter"),
                    HasSubstr("/job:ps, /job:worker/task:1")));
  EXPECT_EQ(TasksOf(session), (std::set<std::string>{"/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1",
                                                     "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"}));
}

// This is the purpose of device filters: a worker of between-graph replication does not need the other workers.
TEST(DeviceFilterTest, ATaskThatIsFilteredOutNeedNotExist) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.Stop("worker", 1);
  Graph g;
  const Output sum = ConstOn(g, "/job:ps/task:0", 1) + ConstOn(g, "/job:worker/task:0", 2);
  SessionConfig config;
  config.connect_timeout = std::chrono::seconds(1);
  config.device_filters = {"/job:ps", "/job:worker/task:0"};
  Session filtered(g, cluster.target("worker", 0), config);
  EXPECT_EQ(filtered.Run(sum).scalar<float>(), 3);
  const Output there = ConstOn(g, "/job:worker/task:1", 1) + sum;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { filtered.Run(there); }), HasSubstr("no device filter"));  // at once
  config.device_filters.clear();
  Session free(g, cluster.target("worker", 0), config);
  EXPECT_THAT(MessageOf<UnavailableError>([&] { free.Run(there); }), HasSubstr("/job:worker/replica:0/task:1"));
}

TEST(DeviceFilterTest, AFilterThatIsNoDeviceNameIsAnError) {
  LocalCluster cluster({{"worker", 2}});
  Graph g;
  const Output there = ConstOn(g, "/job:worker/task:1", 1) + 2.0f;
  SessionConfig config;
  config.device_filters = {"job:worker?"};
  Session session(g, cluster.target("worker", 0), config);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(there); }), HasSubstr("job:worker?"));
}

class PlacementLogTest : public ::testing::Test {
 protected:
  // Returns the output while `sum` is fetched twice.
  static std::string Printed(Session& session, Output sum) {
    ::testing::internal::CaptureStdout();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(session.Run(sum).scalar<float>(), 3);
    return ::testing::internal::GetCapturedStdout();
  }
};

TEST_F(PlacementLogTest, ALineForEachOpWhenASignatureIsFirstRun) {
  LocalCluster cluster({{"ps", 2}, {"worker", 1}});
  Graph g;
  Output left, right, sum;
  {
    const DeviceScope scope(g, "/job:ps/task:1");
    left = ops::Placeholder(g, DType::kFloat32, Shape{}, "left");
    right = ops::Identity(left, "right");
  }
  {
    const DeviceScope scope(g, "/job:worker/task:0");
    sum = ops::Identity(right + right, "sum");
  }
  SessionConfig config;
  config.log_device_placement = true;
  Session session(g, cluster.target("worker", 0), config);
  ::testing::internal::CaptureStdout();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(session.Run({{left, Tensor::Scalar(2.0f)}}, {sum})[0].scalar<float>(), 4);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(Times(text, "right: (Identity): /job:ps/replica:0/task:1/device:CPU:0\n"), 1) << text;
  EXPECT_EQ(Times(text, "sum: (Identity): /job:worker/replica:0/task:0/device:CPU:0\n"), 1) << text;
}

TEST_F(PlacementLogTest, ASessionOfThisProcessAndSilenceWithoutIt) {
  Graph g;
  const Output sum = ops::Identity(ops::Const(g, 1.0f) + 2.0f, "sum");
  SessionConfig config;
  config.log_device_placement = true;
  Session session(g, "", config);
  EXPECT_THAT(Printed(session, sum), HasSubstr("sum: (Identity): /job:localhost/replica:0/task:0/device:CPU:0\n"));
  Session silent(g);
  EXPECT_EQ(Printed(silent, sum), "");
}

TEST_F(PlacementLogTest, AllSessionsOfThisProcess) {
  Graph g;
  const Output sum = ops::Identity(ops::Const(g, 1.0f) + 2.0f, "sum");
  EXPECT_FALSE(debugging::GetLogDevicePlacement());
  debugging::SetLogDevicePlacement(true);
  Session session(g);
  const std::string printed = Printed(session, sum);
  debugging::SetLogDevicePlacement(false);
  EXPECT_THAT(printed, HasSubstr("sum: (Identity): /job:localhost/replica:0/task:0/device:CPU:0\n"));
  Session silent(g);
  EXPECT_EQ(Printed(silent, sum), "");
}

// Tests of the files in the folder that COHORT_DUMP_GRAPHS names.
class GraphDumpTest : public ::testing::Test {
 protected:
  GraphDumpTest() { setenv("COHORT_DUMP_GRAPHS", dumps_.c_str(), 1); }
  ~GraphDumpTest() override { unsetenv("COHORT_DUMP_GRAPHS"); }
  // Returns the files by their paths below the folder, without the number of the session.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    if (!std::filesystem::exists(dumps_)) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dumps_)) {
      if (!entry.is_regular_file()) continue;
      const std::string step = entry.path().parent_path().filename();
      files[step.substr(0, step.find("_of_")) + "/" + entry.path().filename().string()] = ReadFile(entry.path());
    }
    return files;
  }
  const testing::TempFolder folder_;
  const std::string dumps_ = folder_ / "dumps";
};

TEST_F(GraphDumpTest, TheFirstFailingStepOfASignatureLeavesTheGraphOfEachDevice) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph g;
  Output index, sum;
  {
    const DeviceScope scope(g, "/job:ps/task:0");
    index = ops::Placeholder(g, DType::kInt32, Shape{}, "index");
    sum = ops::Gather(ops::Const(g, std::vector<float>{1, 2}), index);
  }
  {
    const DeviceScope scope(g, "/job:worker/task:0");
    sum = ops::Identity(sum + 1.0f, "sum");
  }
  Session session(g, cluster.target("worker", 0));
  EXPECT_EQ(session.Run({{index, Tensor::Scalar<int32_t>(1)}}, {sum})[0].scalar<float>(), 3);
  EXPECT_THAT(Files(), IsEmpty());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(session.Run({{index, Tensor::Scalar<int32_t>(7)}}, {sum}), InvalidArgumentError);
  }
  EXPECT_THAT(
      Files(),
      ElementsAre(
          Pair("step_2/job_ps_replica_0_task_0_device_CPU_0.pbtxt",
               AllOf(HasSubstr("op: \"GatherV2\""), HasSubstr("op: \"_Send\""), Not(HasSubstr("\"sum\"")))),
          Pair("step_2/job_worker_replica_0_task_0_device_CPU_0.pbtxt",
               AllOf(HasSubstr("name: \"sum\""), HasSubstr("op: \"_Recv\""), Not(HasSubstr("op: \"GatherV2\""))))));
}

TEST_F(GraphDumpTest, AFolderThatCannotBeMadeIsToldAndTheStepsErrorStays) {
  { std::ofstream(dumps_) << "a file"; }
  Graph g;
  const Output index = ops::Placeholder(g, DType::kInt32, Shape{}, "index");
  const Output value = ops::Gather(ops::Const(g, std::vector<float>{1, 2}), index);
  Session session(g);
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(session.Run({{index, Tensor::Scalar<int32_t>(7)}}, {value}), InvalidArgumentError);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("which failed, cannot be written: "));
}

// A worker waits for ps/0 and worker/1, which never come.
class MissingTaskTest : public ::testing::Test {
 protected:
  // Returns the text that goes to the log while `wait` runs.
  std::string SaidWhileWaiting(std::chrono::milliseconds interval, const std::function<void(Server&)>& wait) {
    ServerOptions options = LocalCluster::FastOptions();
    options.missing_interval = interval;
    Server server(spec_, "worker", 0, options);
    ::testing::internal::CaptureStderr();
    wait(server);
    return ::testing::internal::GetCapturedStderr();
  }

  PortReservation ports_[3];
  const ClusterSpec spec_{{{"ps", {ports_[0].Address()}}, {"worker", {ports_[1].Address(), ports_[2].Address()}}}};
};

TEST_F(MissingTaskTest, ASessionSaysNowAndThenWhomItWaitsFor) {
  Graph g;
  const Output sum = ConstOn(g, "/job:ps/task:0", 1) + ConstOn(g, "/job:worker/task:0", 2);
  const auto wait = [&](Server& server) {
    Session session(g, server.Target(), {.connect_timeout = std::chrono::seconds(3)});
    EXPECT_THAT(MessageOf<UnavailableError>([&] { session.Run(sum); }), HasSubstr("/job:ps/replica:0/task:0"));
  };
  const std::string line =
      StrCat("/job:worker/replica:0/task:0 still waits for /job:ps/replica:0/task:0 (", ports_[0].Address(), "), ");
  EXPECT_GE(Times(SaidWhileWaiting(std::chrono::milliseconds(100), wait), line), 2);
  EXPECT_THAT(SaidWhileWaiting(std::chrono::milliseconds(0), wait), Not(HasSubstr("still waits")));
}

TEST_F(MissingTaskTest, AGroupSaysNowAndThenWhomItWaitsFor) {
  collective::GroupOptions options;
  for (int w = 0; w < 2; ++w) options.members.push_back(DeviceName::Parse(StrCat("/job:worker/task:", w, "/cpu:0")));
  const auto wait = [&](Server& server) {
    EXPECT_THAT(MessageOf<DeadlineExceededError>([&] {
                  collective::JoinGroup(server, options,
                                        std::chrono::steady_clock::now() + std::chrono::milliseconds(1500));
                }),
                HasSubstr("did not join"));
  };
  const std::string said = SaidWhileWaiting(std::chrono::milliseconds(100), wait);
  EXPECT_GE(Times(said, "still waits for rank 1 (/job:worker/replica:0/task:1)"), 2) << said;
}

}  // namespace
}  // namespace cohort
