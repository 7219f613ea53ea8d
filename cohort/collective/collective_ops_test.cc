// Collectives as ops of graphs: members in one graph (devices of one process, or tasks of a cluster) and in graphs of
// their own, over each transport.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/collective/gradient_reduction.h"
#include "cohort/collective/testing/in_graph.h"
#include "cohort/core/deadline.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/collective.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/matmul.h"
#include "cohort/runtime/session.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Built;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::InGraph;
using testing::OnThreads;
using testing::Place;
using testing::TestCluster;
using testing::Values;

TEST_P(InGraph, EveryKindOfCollectiveInOneRunAndOverManySteps) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{});
  const auto n = static_cast<float>(world());
  const auto own = [&](int rank) {  // [world] x * (rank + 1)
    return ops::Mul(ops::Const(graph_, std::vector<float>(static_cast<size_t>(world()), static_cast<float>(rank + 1))),
                    x);
  };
  std::vector<Output> fetches;
  const auto fetch = [&](const std::vector<Output>& outputs) {
    fetches.insert(fetches.end(), outputs.begin(), outputs.end());
  };
  fetch(AtEachMember([&](int rank) { return ops::CollectiveReduce(own(rank), keys_); }));
  fetch(AtEachMember([&](int rank) { return ops::CollectiveReduce(own(rank), keys_, "Max"); }));
  fetch(AtEachMember([&](int rank) { return ops::CollectiveReduce(own(rank), keys_, "Add", "Div"); }));
  fetch(AtEachMember([&](int rank) { return ops::CollectiveReduceScatter(own(rank), keys_); }));
  fetch(AtEachMember([&](int rank) { return ops::CollectiveGather(x * static_cast<float>(rank), keys_); }));
  fetch(AtEachMember([&](int rank) {
    return rank == 0 ? ops::CollectiveBcastSend(own(0), keys_)
                     : ops::CollectiveBcastRecv(graph_, DType::kFloat32, {world()}, keys_);
  }));
  fetch(AtEachMember([&](int) {
    const ControlDependencies after(graph_, {ops::CollectiveBarrier(graph_, keys_)});
    return ops::Identity(x);
  }));
  const auto session = Open();
  for (int step = 0; step < 30; ++step) {
    const auto value = static_cast<float>(step);
    const std::vector<Tensor> results = session->Run({{x, Tensor::Scalar(value)}}, fetches, {}, Patience());
    const auto of = [&](int kind, int rank) {
      return Values(results[static_cast<size_t>(kind) * static_cast<size_t>(world()) + static_cast<size_t>(rank)]);
    };
    const float sum = value * n * (n + 1) / 2;
    for (int rank = 0; rank < world(); ++rank) {
      ASSERT_EQ(of(0, rank), std::vector<float>(static_cast<size_t>(world()), sum)) << "step " << step;
      ASSERT_EQ(of(1, rank), std::vector<float>(static_cast<size_t>(world()), value * n));
      ASSERT_EQ(of(2, rank), std::vector<float>(static_cast<size_t>(world()), sum / n));
      ASSERT_THAT(of(3, rank), ElementsAre(sum));
      for (int other = 0; other < world(); ++other) {
        ASSERT_EQ(of(4, rank)[static_cast<size_t>(other)], value * static_cast<float>(other));
      }
      ASSERT_EQ(of(5, rank), std::vector<float>(static_cast<size_t>(world()), value));
      ASSERT_THAT(of(6, rank), ElementsAre(value));
    }
  }
}

// Large and small ones of the same step, while matrix products run; each reduction feeds the next product.
TEST_P(InGraph, SeveralOverlapWithComputing) {
  constexpr int64_t kSide = 96;
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{});
  std::vector<Output> fetches;
  std::vector<Output> chains = AtEachMember([&](int rank) {
    return ops::Mul(ops::Const(graph_, Tensor::Zeros(DType::kFloat32, {kSide, kSide})), x * static_cast<float>(rank));
  });
  for (int layer = 0; layer < 4; ++layer) {
    const std::vector<int64_t> counts = {1, 300'000, 7};
    for (const int64_t count : counts) {
      const auto reduced = AtEachMember([&](int rank) {
        Tensor own(DType::kFloat32, {count});
        for (int64_t i = 0; i < count; ++i) own.data<float>()[i] = static_cast<float>(rank + 1 + i % 5);
        return ops::CollectiveReduce(ops::Mul(ops::Const(graph_, own), x), keys_);
      });
      fetches.insert(fetches.end(), reduced.begin(), reduced.end());
    }
    const std::vector<Output> before = chains;
    chains = AtEachMember([&](int rank) {
      const Output product = ops::MatMul(before[static_cast<size_t>(rank)], before[static_cast<size_t>(rank)]);
      return ops::CollectiveReduce(ops::Add(product, x * 1.0f), keys_, "Add", "Div");
    });
  }
  fetches.insert(fetches.end(), chains.begin(), chains.end());
  const auto session = Open();
  const auto n = static_cast<float>(world());
  for (int step = 1; step <= 5; ++step) {
    const auto value = static_cast<float>(step);
    const std::vector<Tensor> results = session->Run({{x, Tensor::Scalar(value)}}, fetches, {}, Patience());
    for (size_t i = 0; i + static_cast<size_t>(world()) < results.size(); ++i) {
      const std::vector<float> got = Values(results[i]);
      for (size_t k = 0; k < got.size(); ++k) {
        ASSERT_EQ(got[k], value * (n * (n + 1) / 2 + n * static_cast<float>(k % 5))) << i << " at " << k;
      }
    }
    for (size_t i = 1; i < static_cast<size_t>(world()); ++i) {
      ASSERT_EQ(Values(results[results.size() - i]), Values(results[results.size() - i - 1]));
    }
  }
}

// d/dx_r of sum over members m of w_m * mean(x^2): each member's weights count at every member.
TEST_P(InGraph, GradientsAreReducedToo) {
  std::vector<Output> xs;
  const std::vector<Output> means = AtEachMember([&](int rank) {
    xs.push_back(ops::Const(graph_, std::vector<float>{static_cast<float>(rank), 2}));
    return ops::CollectiveReduce(ops::Mul(xs.back(), xs.back()), keys_, "Add", "Div");
  });
  std::vector<Output> gradients;
  // In another order than the members', and twice.
  for (int time = 0; time < 2; ++time) {
    for (int rank = world() - 1; rank >= 0; --rank) {
      const auto r = static_cast<size_t>(rank);
      const Output weight = ops::Const(graph_, std::vector<float>{static_cast<float>(rank + 1), 10});
      gradients.push_back(ToDense(Gradients({means[r]}, {xs[r]}, {weight})[0]));
    }
  }
  const std::vector<Tensor> results = Open()->Run({}, gradients, {}, Patience());
  const auto n = static_cast<float>(world());
  for (size_t i = 0; i < results.size(); ++i) {
    const float x = n - 1 - static_cast<float>(i % static_cast<size_t>(world()));
    EXPECT_THAT(Values(results[i]), ElementsAre(2 * x * (n + 1) / 2, 4 * 10)) << i;
  }
}

// Gradients of several sizes and dtypes, in buckets of several sizes: each is the mean over the members.
TEST_P(InGraph, GradientsInBuckets) {
  const std::vector<std::pair<DType, Shape>> kinds = {
      {DType::kFloat32, {3, 2}}, {DType::kFloat32, {}},     {DType::kFloat64, {5}},     {DType::kFloat32, {40'000}},
      {DType::kFloat32, {0, 2}}, {DType::kFloat64, {2, 2}}, {DType::kFloat32, {10, 10}}};
  std::vector<std::vector<Output>> replicas(static_cast<size_t>(world()));
  for (size_t i = kinds.size(); i-- > 0;) {  // as a backward pass adds them
    AtEachMember([&](int rank) {
      const auto& [dtype, shape] = kinds[i];
      Tensor value = Tensor::Zeros(dtype, shape);
      for (int64_t k = 0; k < value.num_elements(); ++k) {
        const double element = static_cast<double>(rank * 2 + static_cast<int>(i) + k % 9);
        dtype == DType::kFloat64 ? void(value.data<double>()[k] = element)
                                 : void(value.data<float>()[k] = static_cast<float>(element));
      }
      auto& own = replicas[static_cast<size_t>(rank)];
      own.insert(own.begin(), ops::Identity(ops::Const(graph_, value)));
      return own[0];
    });
  }
  std::vector<Output> fetches;
  for (const int64_t bytes_per_pack : {0, 1, 64, 1 << 20}) {
    GradientReduction how;
    how.keys = keys_;
    how.final_op = "Div";
    how.bytes_per_pack = bytes_per_pack;
    how.devices = keys_.members;
    for (const auto& replica : ReduceGradients(replicas, how)) {
      fetches.insert(fetches.end(), replica.begin(), replica.end());
    }
  }
  const auto session = Open();
  for (int step = 0; step < 3; ++step) {
    const std::vector<Tensor> results = session->Run({}, fetches, {}, Patience());
    for (size_t n = 0; n < results.size(); ++n) {
      const size_t i = n % kinds.size();
      ASSERT_EQ(results[n].shape(), kinds[i].second);
      for (int64_t k = 0; k < results[n].num_elements(); ++k) {
        const double element = kinds[i].first == DType::kFloat64 ? results[n].data<double>()[k]
                                                                 : static_cast<double>(results[n].data<float>()[k]);
        ASSERT_EQ(element, static_cast<double>(world() - 1 + static_cast<int>(i) + k % 9)) << i << " at " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, InGraph,
                         ::testing::ValuesIn(Built<Place>({{"local", 0, 2},
                                                           {"local", 0, 3},
                                                           {"in_process", 3},
                                                           {"grpc", 3},
                                                           {"in_process", 2, 2},
                                                           {"grpc", 2, 2},
                                                           {"local", 0, 2, "auto", "TEST"},
                                                           {"in_process", 2, 2, "auto", "TEST"},
                                                           {"local", 0, 2, "auto", "GPU"},
                                                           {"local", 0, 3, "auto", "GPU"},
                                                           {"local", 0, 3, "ring", "GPU"},
                                                           {"in_process", 2, 2, "auto", "GPU"},
                                                           {"local", 0, 2, "gloo"},
                                                           {"grpc", 3, 1, "gloo"},
                                                           {"grpc", 2, 2, "gloo"}})),
                         [](const auto& info) { return StrCat(info.param); });

// One graph and session a worker.
struct Between {
  std::string transport;
  std::string hint = "auto";
};

std::ostream& operator<<(std::ostream& out, const Between& between) {
  return between.hint == "auto" ? out << between.transport : out << between.transport << "_" << between.hint;
}

class BetweenGraph : public ::testing::TestWithParam<Between> {
 protected:
  static constexpr int kWorld = 3;
  BetweenGraph() : cluster_({GetParam().transport, kWorld, 1}) {
    RegisterAll();
    keys_.communication_hint = GetParam().hint;
    for (int rank = 0; rank < kWorld; ++rank) keys_.members.push_back(StrCat("/job:worker/task:", rank));
  }
  SessionConfig Config(std::chrono::milliseconds timeout = std::chrono::minutes(1)) const {
    SessionConfig config;
    config.operation_timeout = timeout;
    return config;
  }
  // A worker's graph: the reduction of what is fed, and a second one of another size.
  struct Program {
    Graph graph;
    Output x, small, large;
    Program(int rank, const ops::CollectiveKeys& given) {
      ops::CollectiveKeys keys = given;
      const DeviceScope device(graph, StrCat("/job:worker/task:", rank));
      x = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
      keys.instance_key = ops::NextInstanceKey(graph);
      small = ops::CollectiveReduce(x, keys, "Add", "Id", "small");
      keys.instance_key = ops::NextInstanceKey(graph);
      const Output ones = ops::Const(graph, std::vector<float>(100'000, 1.0f));
      large = ops::CollectiveReduce(ops::Mul(ones, x), keys, "Add", "Id", "large");
    }
  };
  void ExpectSums(Program& program, int rank, int steps) {
    Session session(program.graph, cluster_.server(rank).Target(), Config());
    for (int step = 0; step < steps; ++step) {
      const auto results =
          session.Run({{program.x, Tensor::Scalar(static_cast<float>(step + rank))}}, {program.large, program.small});
      ASSERT_EQ(results[1].scalar<float>(), static_cast<float>(3 * step + 3));
      for (const float value : Values(results[0])) ASSERT_EQ(value, static_cast<float>(3 * step + 3));
    }
  }

  TestCluster cluster_;
  ops::CollectiveKeys keys_;
};

TEST_P(BetweenGraph, WorkersWithGraphsOfTheirOwnReduceOverManySteps) {
  for (const Status& status : OnThreads(kWorld, [&](int rank) {
         Program program(rank, keys_);
         ExpectSums(program, rank, 40);
         ExpectSums(program, rank, 2);  // a second session goes on in the same group
       })) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST_P(BetweenGraph, AGroupThatTheProgramHasJoinedNeedsNoMembersInTheGraph) {
  GroupOptions options;
  options.key = 77;
  options.members = cluster_.Members();
  ops::CollectiveKeys keys;
  keys.group_size = kWorld;
  keys.group_key = 77;
  for (const Status& status : OnThreads(kWorld, [&](int rank) {
         const auto group =
             JoinGroup(cluster_.server(rank), options, std::chrono::steady_clock::now() + testing::kPatience);
         const auto node = ServerDirectory::Global().Find(cluster_.server(rank).Target());
         group->Publish(node->local_task()->resources());
         Program program(rank, keys);
         ExpectSums(program, rank, 5);
       })) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST_P(BetweenGraph, AnotherShapeIsNamedAtEveryWorkerAndALaterGenerationGoesOn) {
  const auto outcomes = OnThreads(kWorld, [&](int rank) {
    Program program(rank, keys_);
    Session session(program.graph, cluster_.server(rank).Target(), Config());
    const Tensor fed = rank == 1 ? Tensor::Vector(std::vector<float>{1, 2}) : Tensor::Scalar(1.0f);
    session.Run({{program.x, fed}}, {program.small});
  });
  for (const Status& status : outcomes) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("'small'"), HasSubstr("instance 1"), HasSubstr("float32[2]"),
                                        HasSubstr("rank 1 (/job:worker/replica:0/task:1")));
  }
  keys_.generation = 2;
  for (const Status& status : OnThreads(kWorld, [&](int rank) {
         Program program(rank, keys_);
         ExpectSums(program, rank, 3);
       })) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST_P(BetweenGraph, AStepThatWaitsForTheGroupEndsByItsDeadlineAndTheNextOneFindsIt) {
  Program first(0, keys_);
  {
    Session session(first.graph, cluster_.server(0).Target(), Config(std::chrono::milliseconds(300)));
    try {
      session.Run({{first.x, Tensor::Scalar(1.0f)}}, {first.small});
      FAIL() << "nobody else is there";
    } catch (const DeadlineExceededError& e) {
      EXPECT_THAT(e.what(), HasSubstr("300 ms"));
    }
  }
  for (const Status& status : OnThreads(kWorld, [&](int rank) {
         Program program(rank, keys_);
         ExpectSums(program, rank, 3);
       })) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST_P(BetweenGraph, AServerThatStopsWhileItJoinsEnds) {
  Program program(1, keys_);
  Session session(program.graph, cluster_.server(1).Target(), Config());
  auto run = std::async(std::launch::async, [&]() -> Status {
    try {
      session.Run({{program.x, Tensor::Scalar(1.0f)}}, {program.small});
      return {};
    } catch (...) {
      return Status::FromCurrentException();
    }
  });
  EXPECT_EQ(run.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  cluster_.Stop(1);
  ASSERT_EQ(run.wait_for(testing::kPatience), std::future_status::ready);
  EXPECT_FALSE(run.get().ok());
}

INSTANTIATE_TEST_SUITE_P(All, BetweenGraph,
                         ::testing::ValuesIn(Built<Between>({{"grpc"}, {"in_process"}, {"grpc", "gloo"}})),
                         [](const auto& info) { return StrCat(info.param); });

class CollectiveOps : public ::testing::Test {
 protected:
  CollectiveOps() {
    RegisterAll();
    config_.device_count["CPU"] = 2;
    config_.operation_timeout = std::chrono::minutes(1);
    keys_.members = {"/cpu:0", "/cpu:1"};
  }
  Graph graph_;
  SessionConfig config_;
  ops::CollectiveKeys keys_;
};

// In one process nothing is left behind by a step that fails: the next one has a new group.
TEST_F(CollectiveOps, AFailedStepDoesNotSpoilTheNextOneInsideAProcess) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape::UnknownRank());
  const Output y = ops::Placeholder(graph_, DType::kFloat32, Shape::UnknownRank());
  std::vector<Output> sums;
  for (const auto& [device, value] : {std::pair{"/cpu:0", x}, std::pair{"/cpu:1", y}}) {
    const DeviceScope scope(graph_, device);
    sums.push_back(ops::CollectiveReduce(value * 2.0f, keys_));
  }
  Session session(graph_, "", config_);
  const Tensor two = Tensor::Vector(std::vector<float>{1, 2});
  for (int time = 0; time < 20; ++time) {
    try {
      session.Run({{x, Tensor::Scalar(1.0f)}, {y, two}}, sums);
      FAIL() << "the shapes differ";
    } catch (const InvalidArgumentError& e) {
      EXPECT_THAT(e.what(), AllOf(HasSubstr("CollectiveReduce"), HasSubstr("float32[2]"), HasSubstr("rank ")));
    }
    EXPECT_THAT(Values(session.Run({{x, two}, {y, two}}, sums)[1]), ElementsAre(4, 8));
  }
}

TEST_F(CollectiveOps, MisplacedOpsAreNamed) {
  const Output x = ops::Const(graph_, 1.0f);
  ops::CollectiveKeys far = keys_;
  far.group_key = 2;
  far.members = {"/cpu:0", "/job:elsewhere/task:3/cpu:0"};
  ops::CollectiveKeys third = keys_;
  third.group_key = 3;
  third.members = {"/cpu:1", "/job:localhost/cpu:7"};
  ops::CollectiveKeys unjoined;
  unjoined.group_size = 2;
  unjoined.group_key = 4;
  const auto at = [&](const char* device, const ops::CollectiveKeys& keys) {
    const DeviceScope scope(graph_, device);
    return ops::CollectiveReduce(x, keys);
  };
  const std::vector<std::pair<Output, const char*>> wrong = {
      {at("/cpu:0", far), "has members on other tasks"},
      {at("/cpu:0", third), "is no member of group 3"},
      {at("/cpu:0", unjoined), "none was joined"},
  };
  Session session(graph_, "", config_);
  for (const auto& [output, words] : wrong) {
    try {
      session.Run(output);
      ADD_FAILURE() << "no error, but expected: " << words;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), AllOf(HasSubstr(words), HasSubstr("device:CPU:0")));
    }
  }
}

TEST_F(CollectiveOps, WhatDoesNotFitIsRefusedWhenTheGraphIsBuilt) {
  const Output x = ops::Const(graph_, std::vector<float>{1, 2, 3});
  ops::CollectiveKeys three = keys_;
  three.group_size = 3;
  EXPECT_THROW(ops::CollectiveReduce(x, three), InvalidArgumentError);  // two members are named
  EXPECT_THROW(ops::CollectiveReduce(x, keys_, "Max", "Div"), InvalidArgumentError);
  EXPECT_THROW(ops::CollectiveReduce(x, keys_, "Median"), InvalidArgumentError);
  EXPECT_THROW(ops::CollectiveReduceScatter(x, keys_), InvalidArgumentError);  // 3 rows for 2 members
  EXPECT_THROW(ops::CollectiveBcastRecv(graph_, DType::kFloat32, Shape{-1}, keys_), InvalidArgumentError);
  EXPECT_EQ(ops::CollectiveGather(x, keys_).shape(), Shape{6});
}

TEST_F(CollectiveOps, ATimeoutThatIsNoTimeIsRefused) {
  const Output x = ops::Const(graph_, 1.0f);
  ops::CollectiveKeys keys = keys_;
  keys.timeout = std::chrono::milliseconds(-5);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::CollectiveReduce(x, keys); }), HasSubstr("got -5 ms"));
  const auto timeout_of = [&](float seconds) {  // as a graph from a file may have it
    Node* node = ops::CollectiveReduce(x, keys_).node;
    node->SetAttr("timeout_seconds", seconds);
    return ops::KeysOf(*node).timeout;
  };
  EXPECT_EQ(timeout_of(0.5f), std::chrono::milliseconds(500));
  EXPECT_EQ(timeout_of(1e30f), kLongestLimit);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float wrong : {-1.0f, kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { timeout_of(wrong); }),
                AllOf(HasSubstr("expected timeout_seconds of at least 0"), HasSubstr("CollectiveReduce")));
  }
}

// A group counts its limit from the time of each call, which must not overflow.
TEST_F(CollectiveOps, AHugeTimeoutIsNoLimit) {
  keys_.timeout = std::chrono::milliseconds::max();
  const Output x = ops::Const(graph_, 1.0f);
  std::vector<Output> sums;
  for (const char* device : {"/cpu:0", "/cpu:1"}) {
    const DeviceScope scope(graph_, device);
    sums.push_back(ops::CollectiveReduce(x * 2.0f, keys_));
  }
  Session session(graph_, "", config_);
  EXPECT_THAT(Values(session.Run(sums)[1]), ElementsAre(4));
}

TEST_F(CollectiveOps, InstanceKeysFollowTheOrderOfTheGraph) {
  const Output x = ops::Const(graph_, 1.0f);
  for (int64_t expected = 1; expected <= 3; ++expected) {
    keys_.instance_key = ops::NextInstanceKey(graph_);
    EXPECT_EQ(keys_.instance_key, expected);
    const Output sum = ops::CollectiveReduce(x, keys_);
    Gradients({sum}, {x});
  }
}

}  // namespace
}  // namespace cohort::collective
