// Schedules of graphs: what they list, how they differ, and that members whose graphs differ hear of the first
// difference instead of waiting - over each transport, as graphs of their own and as parts of one.
#include "cohort/collective/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/collective/testing/in_graph.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/collective.h"
#include "cohort/ops/constant.h"
#include "cohort/runtime/session.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Built;
using ::testing::HasSubstr;
using testing::InGraph;
using testing::OnThreads;
using testing::Place;
using testing::TestCluster;
using testing::Values;

ScheduleEntry Entry(int64_t instance, const std::string& name, const Shape& shape, ReduceOp op = ReduceOp::kSum) {
  return {instance, name, {CallKind::kAllReduce, op, Algorithm::kAuto, 0, DType::kFloat32, shape}};
}

TEST(ScheduleTest, ListsWhatAGraphRunsWithAGroupByInstance) {
  RegisterAll();
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 4});
  ops::CollectiveKeys keys;
  keys.group_size = 2;
  keys.instance_key = 7;
  ops::CollectiveReduce(x, keys, "Add", "Div", "mean");
  keys.instance_key = 3;
  ops::CollectiveBcastRecv(graph, DType::kInt64, {5}, keys, "initial");
  keys.instance_key = 5;
  ops::CollectiveBarrier(graph, keys, "meet");
  ops::CollectiveKeys other = keys;
  other.group_key = 2;
  ops::CollectiveGather(x, other, "elsewhere");
  const auto schedule = ScheduleOf(graph, 1, 1);
  ASSERT_EQ(schedule->entries.size(), 3u);
  EXPECT_EQ(schedule->entries[0].name, "initial");
  EXPECT_EQ(schedule->entries[0].signature.ToString(), "broadcast of int64[5] from rank 0");
  EXPECT_EQ(schedule->entries[1].signature.ToString(), "barrier");
  EXPECT_EQ(schedule->entries[2].signature.ToString(), "all-reduce MEAN of float32[?,4] by AUTO");
  EXPECT_EQ(ScheduleOf(graph, 2, 1)->entries.size(), 1u);
  EXPECT_NE(ScheduleOf(graph, 2, 1)->fingerprint, schedule->fingerprint);
}

TEST(ScheduleTest, TheFirstDifferenceIsFound) {
  const std::vector<ScheduleEntry> ours = {Entry(1, "a", Shape{2}), Entry(2, "b", Shape{3})};
  const auto at = [&](const std::vector<ScheduleEntry>& theirs, NameCheck names = NameCheck::kIgnore) {
    const auto difference = FindDifference(ours, theirs, names);
    return difference ? static_cast<int>(difference->number) : -1;
  };
  EXPECT_EQ(at(ours), -1);
  EXPECT_EQ(at({}), 0);
  EXPECT_EQ(at({ours[0]}), 1);
  EXPECT_EQ(at({ours[1]}), 0);
  EXPECT_EQ(at({ours[0], ours[1], ours[1]}), 2);
  EXPECT_EQ(at({ours[0], Entry(2, "b", Shape{4})}), 1);
  EXPECT_EQ(at({Entry(1, "a", Shape{2}, ReduceOp::kMax), ours[1]}), 0);
  const std::vector<ScheduleEntry> vague = {Entry(1, "replica_1/a", Shape{-1}), Entry(2, "b", Shape::UnknownRank())};
  EXPECT_EQ(at(vague), -1);
  EXPECT_EQ(at(vague, NameCheck::kCompare), 0);
  const auto difference = FindDifference(ours, {ours[0]}, NameCheck::kIgnore);
  EXPECT_EQ(difference->ours, "'b' (instance 2), all-reduce SUM of float32[3] by AUTO");
  EXPECT_EQ(difference->theirs, "nothing");
}

// What a worker reduces in a step: names, sizes and reductions in the order of their instances.
struct Item {
  std::string name;
  int64_t size = 2;
  std::string merge = "Add";
};
using Items = std::vector<Item>;

struct ScheduleParameters {
  std::string transport;
  std::string hint = "auto";
};

class SchedulesOfGraphs : public ::testing::TestWithParam<ScheduleParameters> {
 protected:
  static constexpr int kWorld = 3;
  SchedulesOfGraphs() : cluster_({GetParam().transport, kWorld, 1}) {
    RegisterAll();
    keys_.communication_hint = GetParam().hint;
    for (int rank = 0; rank < kWorld; ++rank) keys_.members.push_back(StrCat("/job:worker/task:", rank));
  }

  // A worker's graph. `chained`: each one waits for the one before. `vague`: no shape is known.
  struct Program {
    Graph graph;
    Output x;
    std::vector<Output> sums;
    Program(int rank, ops::CollectiveKeys keys, const Items& items, bool chained = false, bool vague = false) {
      const DeviceScope device(graph, StrCat("/job:worker/task:", rank));
      x = ops::Placeholder(graph, DType::kFloat32, vague ? Shape::UnknownRank() : Shape{});
      for (const Item& item : items) {
        const ControlDependencies after(
            graph, chained && !sums.empty() ? std::vector<Node*>{sums.back().node} : std::vector<Node*>{});
        const Output ones = ops::Const(graph, std::vector<float>(static_cast<size_t>(item.size), 1.0f));
        keys.instance_key = ops::NextInstanceKey(graph);
        sums.push_back(ops::CollectiveReduce(ops::Mul(ones, x), keys, item.merge, "Id", item.name));
      }
    }
  };

  // Rank 1 has `others`. Nobody gets to the end of a step, and everybody hears why.
  void ExpectNamed(const Items& usual, const Items& others, bool chained, const ::testing::Matcher<std::string>& what) {
    const auto outcomes = OnThreads(kWorld, [&](int rank) {
      Program program(rank, keys_, rank == 1 ? others : usual, chained);
      Session session(program.graph, cluster_.server(rank).Target(), Config());
      session.Run({{program.x, Tensor::Scalar(1.0f)}}, program.sums);
    });
    for (const Status& status : outcomes) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
      EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 1 (/job:worker/replica:0/task:1"),
                                          AnyOf(HasSubstr("rank 0 (/job:worker/replica:0/task:0"),
                                                HasSubstr("rank 2 (/job:worker/replica:0/task:2")),
                                          what));
    }
    ++keys_.generation;
  }
  static SessionConfig Config() {
    SessionConfig config;
    config.operation_timeout = std::chrono::minutes(1);
    return config;
  }

  TestCluster cluster_;
  ops::CollectiveKeys keys_;
};

TEST_P(SchedulesOfGraphs, TheFirstDifferenceIsNamedAtEveryWorker) {
  const Items usual = {{"a", 2}, {"b", 2}, {"c", 70'000}, {"d", 2}};
  const auto text = [](const char* name, int instance, const char* what) {
    return StrCat("'", name, "' (instance ", instance, "), all-reduce ", what, " by AUTO");
  };
  for (const bool chained : {false, true}) {
    ExpectNamed(usual, {usual[0], usual[1], usual[2]}, chained,
                AllOf(HasSubstr("number 3 of its schedule is "), HasSubstr(text("d", 4, "SUM of float32[2]")),
                      HasSubstr("nothing")));
    // One fewer in the middle. Gloo's order of calls is that in which they come.
    const auto second = AllOf(HasSubstr("number 1 of its schedule is "), HasSubstr(text("b", 2, "SUM of float32[2]")),
                              HasSubstr(text("c", 2, "SUM of float32[70000]")));
    const bool by_gloo = GetParam().hint == "gloo";
    ExpectNamed(usual, {usual[0], usual[2], usual[3]}, chained,
                by_gloo ? ::testing::Matcher<std::string>(
                              AnyOf(second, HasSubstr("(instance 2, round 0)"), HasSubstr("(instance 3, round 0)")))
                        : second);
    // One more.
    ExpectNamed(usual, {usual[0], usual[1], usual[2], usual[3], {"e", 1}}, chained,
                AllOf(HasSubstr("number 4 of its schedule is "), HasSubstr(text("e", 5, "SUM of float32[1]")),
                      HasSubstr("nothing")));
  }
  // What a chain comes to late.
  ExpectNamed(usual, {usual[0], usual[1], usual[3], usual[2]}, true,
              AllOf(HasSubstr("number 2 of its schedule is "), HasSubstr(text("c", 3, "SUM of float32[70000]")),
                    HasSubstr(text("d", 3, "SUM of float32[2]"))));
  ExpectNamed(usual, {usual[0], usual[1], {"c", 5}, usual[3]}, true,
              AllOf(HasSubstr("number 2 of its schedule is "), HasSubstr(text("c", 3, "SUM of float32[70000]")),
                    HasSubstr(text("c", 3, "SUM of float32[5]"))));
  ExpectNamed(usual, {usual[0], usual[1], usual[2], {"d", 2, "Max"}}, true,
              AllOf(HasSubstr("number 3 of its schedule is "), HasSubstr(text("d", 4, "SUM of float32[2]")),
                    HasSubstr(text("d", 4, "MAX of float32[2]"))));
}

// A step's schedule is what it runs: others of the same session may run less, if they do so everywhere.
TEST_P(SchedulesOfGraphs, StepsOfOneSessionMayRunDifferentCollectives) {
  const auto outcomes = OnThreads(kWorld, [&](int rank) {
    Program program(rank, keys_, {{"a", 3}, {"b", 70'000}, {"c", 1}});
    Session session(program.graph, cluster_.server(rank).Target(), Config());
    for (int step = 0; step < 30; ++step) {
      std::vector<Output> fetches = program.sums;
      if (step % 3 == 1) fetches = {program.sums[1]};
      if (step % 5 == 4) fetches.pop_back();
      for (const Tensor& sum : session.Run({{program.x, Tensor::Scalar(2.0f)}}, fetches)) {
        for (const float value : Values(sum)) ASSERT_EQ(value, 2.0f * kWorld);
      }
    }
  });
  for (const Status& status : outcomes) EXPECT_TRUE(status.ok()) << status.ToString();
}

// One worker's graph knows the shapes and the other's does not: they are asked, once, and agree.
TEST_P(SchedulesOfGraphs, ShapesThatOneGraphDoesNotKnowAgree) {
  const auto outcomes = OnThreads(kWorld, [&](int rank) {
    Program program(rank, keys_, {{"a", 3}, {"b", 70'000}}, false, rank == 1);
    Session session(program.graph, cluster_.server(rank).Target(), Config());
    for (int step = 0; step < 20; ++step) {
      for (const Tensor& sum : session.Run({{program.x, Tensor::Scalar(2.0f)}}, program.sums)) {
        for (const float value : Values(sum)) ASSERT_EQ(value, 2.0f * kWorld);
      }
    }
  });
  for (const Status& status : outcomes) EXPECT_TRUE(status.ok()) << status.ToString();
}

INSTANTIATE_TEST_SUITE_P(All, SchedulesOfGraphs,
                         ::testing::ValuesIn(Built<ScheduleParameters>({{"grpc"}, {"in_process"}, {"grpc", "gloo"}})),
                         [](const auto& info) { return info.param.transport + "_" + info.param.hint; });

class SchedulesInGraph : public InGraph {};

// Members of one graph, of which one lacks a collective.
TEST_P(SchedulesInGraph, AMemberThatLacksACollectiveIsNamed) {
  std::vector<Output> fetches;
  for (const char* name : {"first", "second"}) {
    const auto sums = AtEachMember([&](int rank) {
      return ops::CollectiveReduce(ops::Const(graph_, static_cast<float>(rank)), keys_, "Add", "Id", name);
    });
    fetches.insert(fetches.end(), sums.begin(), sums.end());
  }
  fetches.pop_back();
  try {
    Open()->Run({}, fetches, {}, Patience());
    FAIL() << "the last member lacks the second one";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr(StrCat("rank ", world() - 1, " (")), HasSubstr("does not agree"),
                                HasSubstr("number 1 of its schedule is "), HasSubstr("nothing"),
                                HasSubstr("(instance 2), all-reduce SUM of float32[] by AUTO")));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SchedulesInGraph,
                         ::testing::ValuesIn(Built<Place>({{"local", 0, 2},
                                                           {"local", 0, 3},
                                                           {"in_process", 3},
                                                           {"grpc", 2, 2},
                                                           {"local", 0, 2, "auto", "TEST"},
                                                           {"in_process", 2, 2, "auto", "TEST"},
                                                           {"local", 0, 2, "gloo"},
                                                           {"grpc", 2, 2, "gloo"}})),
                         [](const auto& info) { return StrCat(info.param); });

}  // namespace
}  // namespace cohort::collective
