#include "cohort/train/hooks/profiler_hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"
#include "cohort/train/monitored_session.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::train {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LocalCluster;
using ::testing::UnorderedElementsAre;

std::set<std::string> FilesOf(const std::string& folder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path().filename().string());
  return files;
}

// A timeline, read as a viewer does.
struct Timeline {
  explicit Timeline(const std::string& text) {
    const json file = json::parse(text);
    for (const json& event : file.at("traceEvents")) {
      const std::string phase = event.at("ph");
      if (phase == "M") rows[event.at("pid")] = event.at("args").at("name");
      if (phase == "X") nodes.push_back(event);
      if (phase == "s") arrow_begins[event.at("id")] = event.at("pid");
      if (phase == "t") arrow_ends[event.at("id")] = event.at("pid");
      if (phase == "C") memory.push_back(event.at("args").at("bytes"));
    }
  }
  // Returns the rows on which a node of this name ran.
  std::vector<std::string> RowsOf(const std::string& node) const {
    std::vector<std::string> found;
    for (const json& event : nodes) {
      if (event.at("args").at("name") == node) found.push_back(rows.at(event.at("pid")));
    }
    return found;
  }
  std::map<int, std::string> rows;
  std::vector<json> nodes;
  std::map<int, int> arrow_begins, arrow_ends;  // by the arrow's number: the row
  std::vector<int64_t> memory;
};

// Each run of `train` adds 1 to the global step and x * x to w, which may lie on another device.
struct SquareGraph {
  explicit SquareGraph(const std::string& ps = "", const std::string& worker = "") {
    RegisterAll();
    {
      const DeviceScope scope(graph, ps);
      step = ops::GetOrCreateGlobalStep(graph);
      w = ops::GetVariable(graph, "w", Shape{2}, DType::kFloat32, initializers::Zeros());
    }
    const DeviceScope scope(graph, worker);
    x = ops::Placeholder(graph, DType::kFloat32, Shape{2}, "x");
    square = ops::Mul(x, x, "square");
    Node* add = w.AssignAdd(square);
    const ControlDependencies after(graph, {add});
    train = step.AssignAdd(1);
  }
  FeedList feeds() const { return {{x, Tensor::Vector<float>({1, 2})}}; }
  Graph graph;
  ops::Variable step, w;
  Output x, square;
  Node* train = nullptr;
};

TEST(TraceTest, ARunThatIsTracedTellsEachNode) {
  SquareGraph model;
  Session session(model.graph);
  session.Run(ops::GlobalVariablesInitializer(model.graph));
  EXPECT_THAT(session.Run(model.feeds(), {model.square}).run_metadata().step_stats.dev_stats, IsEmpty());
  const RunResults results =
      session.Run(model.feeds(), {model.square}, {model.train}, {.trace_level = TraceLevel::kFullTrace});
  EXPECT_EQ(results[0].ToVector<float>(), std::vector<float>({1, 4}));
  const StepStats& stats = results.run_metadata().step_stats;
  ASSERT_EQ(stats.dev_stats.size(), 1u);
  EXPECT_EQ(stats.dev_stats[0].device, session.ListDevices()[0].name.ToString());
  std::map<std::string, NodeExecStats> nodes;
  for (const NodeExecStats& node : stats.dev_stats[0].node_stats) {
    EXPECT_TRUE(nodes.emplace(node.node_name, node).second) << node.node_name << " ran twice";
  }
  ASSERT_TRUE(nodes.contains("square"));
  EXPECT_EQ(nodes["square"].op, "Mul");
  EXPECT_EQ(nodes["square"].output_bytes, 8);
  EXPECT_EQ(nodes["square"].inputs.size(), 2u);
  EXPECT_THAT(nodes["square"].inputs, Contains(HasSubstr("x")));
  EXPECT_GT(nodes["square"].all_start_nanos, int64_t{1'600'000'000} * 1'000'000'000);
  EXPECT_GE(nodes["square"].all_end_rel_nanos, 0);
  ASSERT_TRUE(nodes.contains(model.train->name()));
  EXPECT_GE(nodes[model.train->name()].all_start_nanos,
            nodes["square"].all_start_nanos + nodes["square"].all_end_rel_nanos);
}

TEST(TraceTest, EachIterationOfALoopIsAnEvent) {
  RegisterAll();
  Graph graph;
  using Outputs = std::vector<Output>;
  const Outputs results = ops::While(
      {ops::Const(graph, 1.0f)}, [](Graph&, const Outputs& v) { return Outputs{ops::Less(v[0], 3.0f)}; },
      [](Graph&, const Outputs& v) { return Outputs{ops::Add(v[0], v[0], "twice")}; });
  Session session(graph);
  const RunResults run = session.Run({}, {results[0]}, {}, {.trace_level = TraceLevel::kFullTrace});
  EXPECT_EQ(run[0].scalar<float>(), 4);
  const Timeline timeline(ChromeTraceFormat(run.run_metadata().step_stats));
  int twice = 0;
  for (const json& event : timeline.nodes) {
    const std::string name = event.at("args").at("name");
    if (name.ends_with("/twice")) ++twice;
  }
  EXPECT_EQ(twice, 2);
}

TEST(TraceTest, RunAsyncAndFailuresWorkWithATrace) {
  SquareGraph model;
  Session session(model.graph);
  // No variable has a value.
  EXPECT_THROW(session.Run(model.feeds(), {}, {model.train}, {.trace_level = TraceLevel::kFullTrace}),
               FailedPreconditionError);
  session.Run(ops::GlobalVariablesInitializer(model.graph));
  std::promise<size_t> devices;
  session.RunAsync({.feeds = model.feeds(),
                    .fetches = {model.square},
                    .targets = {},
                    .options = {.trace_level = TraceLevel::kFullTrace}},
                   [&](const Status& status, const RunResults& results) {
                     devices.set_value(status.ok() ? results.run_metadata().step_stats.dev_stats.size() : 0);
                   });
  EXPECT_EQ(devices.get_future().get(), 1u);
}

TEST(ChromeTraceFormatTest, EscapesNamesAndPutsOverlapsOnSeveralLines) {
  StepStats stats;
  stats.dev_stats.push_back({"device \"0\"\n",
                             {{"a", "Op", {}, "", 1000, 5000, 8, 0},
                              {"b", "Op", {}, "", 2000, 1000, 4, 1},
                              {"c", "Op", {"a", "b"}, "", 7000, 1500, 2, 1}},
                             0});
  const std::string text = ChromeTraceFormat(stats, {.show_dataflow = true, .show_memory = true});
  const Timeline timeline(text);
  EXPECT_EQ(timeline.rows.at(0), "device \"0\"\n");
  ASSERT_EQ(timeline.nodes.size(), 3u);
  EXPECT_EQ(timeline.nodes[0].at("ts"), 0);
  EXPECT_EQ(timeline.nodes[0].at("dur"), 5);
  EXPECT_EQ(timeline.nodes[2].at("dur"), 1.5);
  EXPECT_NE(timeline.nodes[0].at("tid"), timeline.nodes[1].at("tid"));
  EXPECT_EQ(timeline.nodes[0].at("tid"), timeline.nodes[2].at("tid"));
  EXPECT_EQ(timeline.arrow_begins.size(), 2u);
  EXPECT_EQ(timeline.arrow_begins.size(), timeline.arrow_ends.size());
  EXPECT_EQ(json::parse(text).at("otherData").at("start_nanos"), 1000);
  EXPECT_THAT(timeline.memory, Contains(12));
  EXPECT_EQ(timeline.memory.back(), 0);
  EXPECT_TRUE(Timeline(ChromeTraceFormat(stats, {.show_dataflow = false})).arrow_begins.empty());
  EXPECT_TRUE(Timeline(ChromeTraceFormat({})).nodes.empty());
}

TEST(ProfilerHookTest, WritesATimelineEveryNthStep) {
  const testing::TempFolder folder;
  SquareGraph model;
  MonitoredSession session =
      MonitoredTrainingSession(model.graph, {.hooks = {std::make_shared<ProfilerHook>(ProfilerHook::Options{
                                                 .every = {.steps = 3}, .output_dir = folder.path()})}});
  for (int i = 0; i < 8; ++i) session.Run(model.feeds(), {}, {model.train});
  // As in TensorFlow: counted from the step before the first run.
  EXPECT_THAT(FilesOf(folder.path()), UnorderedElementsAre("timeline-3.json", "timeline-6.json"));
  const Timeline timeline(ReadFile(folder / "timeline-6.json"));
  EXPECT_EQ(timeline.rows.size(), 1u);
  EXPECT_EQ(timeline.RowsOf("square").size(), 1u);
  EXPECT_EQ(timeline.RowsOf(model.train->name()).size(), 1u);
  EXPECT_FALSE(timeline.arrow_begins.empty());
  EXPECT_TRUE(timeline.memory.empty());
  // The program may ask, too.
  const RunResults results = session.Run(model.feeds(), {model.square}, {}, {.trace_level = TraceLevel::kFullTrace});
  EXPECT_EQ(results.size(), 1u);
  EXPECT_EQ(results.run_metadata().step_stats.dev_stats.size(), 1u);
  session.Close();
}

TEST(ProfilerHookTest, RefusesBadOptions) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ProfilerHook({}); }), HasSubstr("ProfilerHook"));
  EXPECT_THROW(ProfilerHook({.every = {.steps = 1, .interval = std::chrono::seconds(1)}}), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ProfilerHook({.every = {.steps = 1}, .output_dir = ""}); }),
              HasSubstr("output_dir"));
}

TEST(ProfilerHookTest, HasThePartsOfOtherTasksAndNoOtherSession) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  const testing::TempFolder folder;
  const auto worker = [&](int task, std::vector<std::shared_ptr<SessionRunHook>> hooks, SquareGraph& model) {
    return MonitoredTrainingSession(model.graph, {.master = cluster.target("worker", task),
                                                  .is_chief = task == 0,
                                                  .hooks = std::move(hooks),
                                                  .server = &cluster.server("worker", task)});
  };
  SquareGraph chief_model("/job:ps/task:0", "/job:worker/task:0");
  SquareGraph other_model("/job:ps/task:0", "/job:worker/task:1");
  MonitoredSession chief = worker(0,
                                  {std::make_shared<ProfilerHook>(ProfilerHook::Options{
                                      .every = {.steps = 1}, .output_dir = folder.path(), .show_memory = true})},
                                  chief_model);
  MonitoredSession other = worker(1, {}, other_model);
  for (int i = 0; i < 2; ++i) {
    other.Run(other_model.feeds(), {}, {other_model.train});
    chief.Run(chief_model.feeds(), {}, {chief_model.train});
  }
  const std::set<std::string> files = FilesOf(folder.path());
  ASSERT_THAT(files, ElementsAre("timeline-4.json"));
  const Timeline timeline(ReadFile(folder / "timeline-4.json"));
  const std::string ps = "/job:ps/replica:0/task:0/device:CPU:0";
  const std::string here = "/job:worker/replica:0/task:0/device:CPU:0";
  std::set<std::string> rows;
  for (const auto& [pid, row] : timeline.rows) rows.insert(row);
  EXPECT_THAT(rows, UnorderedElementsAre(ps, here));
  EXPECT_THAT(timeline.RowsOf("square"), ElementsAre(here));
  EXPECT_THAT(timeline.RowsOf(chief_model.train->name()), ElementsAre(ps));
  bool crosses = false;
  for (const auto& [arrow, row] : timeline.arrow_begins) crosses = crosses || row != timeline.arrow_ends.at(arrow);
  EXPECT_TRUE(crosses);
  EXPECT_FALSE(timeline.memory.empty());
  other.Close();
  chief.Close();
}

}  // namespace
}  // namespace cohort::train
