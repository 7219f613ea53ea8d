// ClusterCoordinator with real servers in this process.
#include "cohort/distribute/coordinator/cluster_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/coordinator/per_worker.h"
#include "cohort/distribute/testing/parameter_servers.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ClusterCoordinatorTest : public ParameterServers {
 protected:
  void Open(int workers, int ps, Partitioner partitioner = nullptr) {
    strategy_ = ParameterServers::Open(workers, ps, std::move(partitioner));
  }
  ops::Variable Counter(const char* name = "count") {
    const auto scope = strategy_->Scope(graph_);
    return ops::Variable(graph_, Tensor::Scalar(0.0f), {.name = name});
  }
  void Initialize() {
    session_ = strategy_->OpenSession(graph_);
    session_->Run(ops::GlobalVariablesInitializer(graph_));
  }
  float Value(const ops::Variable& variable) { return session_->Run(variable.value()).scalar<float>(); }

  StrategyPtr strategy_;
  Graph graph_;
  std::unique_ptr<Session> session_;
};

TEST_F(ClusterCoordinatorTest, ClosuresRunOnAllWorkersAndReturnValues) {
  Open(3, 2);
  const ops::Variable count = Counter();
  Initialize();
  ClusterCoordinator coordinator(strategy_, graph_);
  EXPECT_EQ(coordinator.num_workers(), 3);
  EXPECT_TRUE(coordinator.Done());
  const auto add = coordinator.MakeFunction([&](ClosureContext& worker) {
    const Output amount = worker.Argument(DType::kFloat32, Shape());
    const Output where = ops::Const(graph_, worker.worker());
    return ClosureNodes{.fetches = {amount * 2.0f, ops::Identity(where)}, .targets = {count.AssignAdd(amount)}};
  });
  std::vector<RemoteValue> values;
  for (int i = 0; i < 200; ++i)
    values.push_back(coordinator.Schedule(add, {Tensor::Scalar(static_cast<float>(i % 3))}));
  coordinator.Join();
  EXPECT_TRUE(coordinator.Done());
  std::set<int> workers;
  for (int i = 0; i < 200; ++i) {
    const RunResults result = coordinator.Fetch(values[static_cast<size_t>(i)]);
    EXPECT_EQ(result[0].scalar<float>(), static_cast<float>(i % 3 * 2));
    workers.insert(result[1].scalar<int32_t>());
  }
  EXPECT_EQ(workers, (std::set<int>{0, 1, 2}));
  EXPECT_EQ(Value(count), 199.0f);
  EXPECT_EQ(coordinator.repeated_closures(), 0);
}

TEST_F(ClusterCoordinatorTest, AnErrorOfAClosureIsThrownOnceAndTrainingGoesOn) {
  Open(2, 1);
  const ops::Variable count = Counter();
  Initialize();
  ClusterCoordinator coordinator(strategy_, graph_);
  const auto reshape = coordinator.MakeFunction(
      [&](ClosureContext& worker) {
        const Output rows = worker.Argument(DType::kInt32, Shape{1});
        return ClosureNodes{.fetches = {ops::Reshape(ops::Const(graph_, std::vector<float>(4)), rows)},
                            .targets = {count.AssignAdd(1.0f)}};
      },
      "reshape");
  const RemoteValue good = coordinator.Schedule(reshape, {Tensor::Vector<int32_t>({4})});
  coordinator.Join();
  EXPECT_EQ(good.Fetch()[0].shape(), Shape{4});
  const RemoteValue bad = coordinator.Schedule(reshape, {Tensor::Vector<int32_t>({3})});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { coordinator.Join(); }), HasSubstr("function 'reshape'"));
  EXPECT_THROW(bad.Fetch(), InvalidArgumentError);
  coordinator.Join();
  coordinator.Schedule(reshape, {Tensor::Vector<int32_t>({4})});
  coordinator.Join();
}

// Adds a loop that ends only if its step is cancelled.
Output Endless(Graph& graph) {
  return ops::While(
      {ops::Const(graph, 0)},
      [](Graph& body, const std::vector<Output>&) { return std::vector{ops::Const(body, true)}; },
      [](Graph&, const std::vector<Output>& i) { return std::vector{i[0] + 1}; })[0];
}

// Join would wait for the closures that run, so they have to be cancelled.
TEST_F(ClusterCoordinatorTest, AnErrorCancelsClosuresThatRun) {
  Open(2, 1);
  ClusterCoordinator coordinator(strategy_, graph_, {.closures_in_flight = 2});
  const auto endless =
      coordinator.MakeFunction([&](ClosureContext&) { return ClosureNodes{.fetches = {Endless(graph_)}}; });
  const auto bad = coordinator.MakeFunction(
      [&](ClosureContext& worker) {
        const Output rows = worker.Argument(DType::kInt32, Shape{1});
        return ClosureNodes{.fetches = {ops::Reshape(ops::Const(graph_, std::vector<float>(4)), rows)}};
      },
      "bad");
  std::vector<RemoteValue> running;
  for (int i = 0; i < 3; ++i) running.push_back(coordinator.Schedule(endless));
  const RemoteValue failing = coordinator.Schedule(bad, {Tensor::Vector<int32_t>({3})});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { coordinator.Join(); }), HasSubstr("function 'bad'"));
  EXPECT_THROW(failing.Fetch(), InvalidArgumentError);
  for (const RemoteValue& value : running) {
    EXPECT_EQ(value.status(), RemoteValueStatus::kAborted);
    EXPECT_THAT(MessageOf<CancelledError>([&] { value.Fetch(); }), HasSubstr("another one failed"));
  }
  const auto good = coordinator.MakeFunction(
      [&](ClosureContext&) { return ClosureNodes{.fetches = {ops::Identity(ops::Const(graph_, 1.0f))}}; });
  for (int i = 0; i < 8; ++i) EXPECT_EQ(coordinator.Schedule(good).Fetch()[0].scalar<float>(), 1.0f);
  coordinator.Join();
}

TEST_F(ClusterCoordinatorTest, AClosureThatNeverReturnsFailsInTime) {
  Open(1, 1);
  ClusterCoordinator coordinator(strategy_, graph_, {.closure_timeout = std::chrono::milliseconds(300)});
  const auto endless =
      coordinator.MakeFunction([&](ClosureContext&) { return ClosureNodes{.fetches = {Endless(graph_)}}; }, "endless");
  coordinator.Schedule(endless);
  EXPECT_THAT(MessageOf<DeadlineExceededError>([&] { coordinator.Join(); }),
              AllOf(HasSubstr("300 ms"), HasSubstr("function 'endless'"), HasSubstr("/job:worker")));
  coordinator.Join();
}

TEST_F(ClusterCoordinatorTest, AClosureThatFailsOnOneWorkerOnlyIsNamed) {
  Open(2, 1);
  ClusterCoordinator coordinator(strategy_, graph_);
  const PerWorkerValue sizes = coordinator.CreatePerWorkerValue([](Graph& graph, int worker) {
    return std::vector<Output>{ops::Const(graph, std::vector<int32_t>{worker == 0 ? 4 : 3})};
  });
  const auto reshape = coordinator.MakeFunction(
      [&](ClosureContext& worker) {
        return ClosureNodes{.fetches = {ops::Reshape(ops::Const(graph_, std::vector<float>(4)), worker.Get(sizes)[0])}};
      },
      "uneven");
  const auto fail = [&] {  // closures are queued until worker 1 has taken one; the test's time limit bounds this
    while (true) {
      coordinator.Schedule(reshape);
      coordinator.Join();
    }
  };
  EXPECT_THAT(MessageOf<InvalidArgumentError>(fail), AllOf(HasSubstr("function 'uneven'"), HasSubstr("task:1")));
}

TEST_F(ClusterCoordinatorTest, VariablesOutsideOfTheScopeAreNamed) {
  Open(1, 1);
  const ops::Variable lost(graph_, Tensor::Scalar(0.0f), {.name = "outside"});
  ClusterCoordinator coordinator(strategy_, graph_);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                coordinator.MakeFunction(
                    [&](ClosureContext&) { return ClosureNodes{.targets = {lost.AssignAdd(1.0f)}}; }, "step");
              }),
              AllOf(HasSubstr("'outside'"), HasSubstr("function 'step'"), HasSubstr("Scope")));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                coordinator.MakeFunction([&](ClosureContext&) {
                  const ops::Variable inside(graph_, Tensor::Scalar(0.0f), {.name = "inside"});
                  return ClosureNodes{.targets = {inside.AssignAdd(1.0f)}};
                });
              }),
              AllOf(HasSubstr("inside'"), HasSubstr("/job:worker")));
}

TEST_F(ClusterCoordinatorTest, WorkersDrawEqualRandomNumbersForAClosure) {
  Open(2, 1);
  ClusterCoordinator coordinator(strategy_, graph_);
  const auto draw = coordinator.MakeFunction([&](ClosureContext&) {
    return ClosureNodes{.fetches = {ops::RandomUniform(ops::Const(graph_, std::vector<int32_t>{3}))}};
  });
  const auto numbers = [&](int worker, int64_t closure) {
    RunOptions options;
    options.closure = {77, closure, 1};
    return strategy_->OpenSession(graph_)->Run({}, draw->of(worker).fetches, {}, options)[0].ToVector<float>();
  };
  EXPECT_EQ(numbers(0, 1), numbers(1, 1));
  EXPECT_NE(numbers(0, 1), numbers(0, 2));
  EXPECT_NE(coordinator.Schedule(draw).Fetch()[0].ToVector<float>(),
            coordinator.Schedule(draw).Fetch()[0].ToVector<float>());
}

TEST_F(ClusterCoordinatorTest, AnIteratorGetsOtherDatasets) {
  Open(2, 1);
  ClusterCoordinator coordinator(strategy_, graph_);
  const PerWorkerValue numbers = coordinator.CreatePerWorkerIterator({{DType::kInt64, Shape{-1}}});
  const auto take = coordinator.MakeFunction(
      [&](ClosureContext& worker) { return ClosureNodes{.fetches = {worker.Get(numbers)[0]}}; });
  const auto first = [&] {
    const RemoteValue value = coordinator.Schedule(take);
    coordinator.Join();
    return value.Fetch()[0].ToVector<int64_t>();
  };
  coordinator.Schedule(take);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { coordinator.Join(); }), HasSubstr("not been initialized"));
  const auto range = [](int64_t batch) {
    return [batch](int) { return data::Dataset::Range(6).Batch(batch).Repeat(); };
  };
  coordinator.SetPerWorkerDataset(numbers, range(2));
  EXPECT_EQ(first(), (std::vector<int64_t>{0, 1}));
  coordinator.RestartPerWorkerDataset(numbers);
  EXPECT_EQ(first(), (std::vector<int64_t>{0, 1}));
  coordinator.SetPerWorkerDataset(numbers, range(3));
  EXPECT_EQ(first(), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { coordinator.SetPerWorkerDataset(numbers, [](int) { return data::Dataset::Range(6); }); }),
              HasSubstr("Range"));
  const PerWorkerValue value =
      coordinator.CreatePerWorkerValue([](Graph& graph, int) { return std::vector<Output>{ops::Const(graph, 1.0f)}; });
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { coordinator.RestartPerWorkerDataset(value); }),
              HasSubstr("CreatePerWorkerValue"));
  coordinator.Schedule(take);
  const auto early = [&] {
    while (true) {  // until a closure has not ended; the test's time limit bounds this
      coordinator.Schedule(take);
      coordinator.RestartPerWorkerDataset(numbers);
    }
  };
  EXPECT_THAT(MessageOf<FailedPreconditionError>(early), HasSubstr("Join"));
}

// The worker keeps the data that were fed to it, so that a restart, or the same data again, sends nothing.
TEST_F(ClusterCoordinatorTest, DataTravelToAWorkerOnce) {
  Open(1, 1);
  ClusterCoordinator coordinator(strategy_, graph_);
  const PerWorkerValue numbers = coordinator.CreatePerWorkerIterator({{DType::kInt64, Shape()}});
  const auto take = coordinator.MakeFunction(
      [&](ClosureContext& worker) { return ClosureNodes{.fetches = {worker.Get(numbers)[0]}}; });
  const auto next = [&] {
    const RemoteValue value = coordinator.Schedule(take);
    coordinator.Join();
    return value.Fetch()[0].scalar<int64_t>();
  };
  const auto use = [&](int64_t begin) {
    coordinator.SetPerWorkerDataset(numbers, [begin](int) {
      const std::vector<Tensor> tensors = {Tensor::Vector<int64_t>({begin, begin + 1, begin + 2})};
      return data::Dataset::FromTensorSlices(tensors);
    });
  };
  constexpr size_t kFed = 3;  // the description, the hash of the tensor, and the tensor
  const auto feeds = [&](int64_t has) { return numbers.source()->Initialization(0, has).feeds.size(); };
  use(3);
  EXPECT_EQ(next(), 3);
  const int64_t first = numbers.source()->version();
  EXPECT_EQ(feeds(0), kFed);
  coordinator.RestartPerWorkerDataset(numbers);
  EXPECT_EQ(feeds(first), 0u);
  EXPECT_EQ(next(), 3);
  EXPECT_EQ(next(), 4);
  use(3);
  EXPECT_EQ(feeds(first), 0u);
  EXPECT_EQ(next(), 3);
  use(7);
  EXPECT_EQ(feeds(first), kFed);
  EXPECT_EQ(next(), 7);
  coordinator.RestartPerWorkerDataset(numbers);
  EXPECT_EQ(next(), 7);
  EXPECT_EQ(next(), 8);
  cluster_->Restart("worker", 0);  // it has lost them
  EXPECT_EQ(next(), 7);
}

TEST_F(ClusterCoordinatorTest, WhatNothingUsesIsForgotten) {
  Open(1, 1);
  ClusterCoordinator coordinator(strategy_, graph_);
  std::weak_ptr<PerWorkerSource> old;
  const auto read_one = [&] {
    const PerWorkerValue numbers = coordinator.CreatePerWorkerDataset(data::Dataset::Range(3));
    old = numbers.source();
    coordinator.Schedule(coordinator.MakeFunction(
        [&](ClosureContext& worker) { return ClosureNodes{.fetches = {worker.Get(numbers)[0]}}; }));
    coordinator.Join();
  };
  read_one();
  const std::weak_ptr<PerWorkerSource> first = old;
  read_one();
  // The thread that has run a closure may hold it a little longer than Join; the test's time limit bounds this.
  while (!first.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(ClusterCoordinatorTest, WrongCallsAreNamed) {
  Open(1, 1);
  const ops::Variable count = Counter();
  Initialize();
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ClusterCoordinator(Default(), graph_); }),
              HasSubstr("DefaultStrategy"));
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { ClusterCoordinator(strategy_, graph_, {.closures_in_flight = 0}); }),
      HasSubstr("got 0"));
  ClusterCoordinator coordinator(strategy_, graph_);
  const auto add = coordinator.MakeFunction([&](ClosureContext& worker) {
    return ClosureNodes{.targets = {count.AssignAdd(worker.Argument(DType::kFloat32, Shape()))}};
  });
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { coordinator.Schedule(add); }), HasSubstr("expected 1 arguments"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { coordinator.Schedule(add, {Tensor::Vector<float>({1})}); }),
              AllOf(HasSubstr("argument 0"), HasSubstr("[1]")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { coordinator.Schedule(nullptr); }), HasSubstr("null"));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                coordinator.MakeFunction([&](ClosureContext&) {
                  coordinator.Schedule(add, {Tensor::Scalar(1.0f)});
                  return ClosureNodes();
                });
              }),
              AllOf(HasSubstr("Schedule"), HasSubstr("closure")));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                coordinator.MakeFunction([&](ClosureContext&) {
                  coordinator.Join();
                  return ClosureNodes();
                });
              }),
              HasSubstr("Join"));
  coordinator.Join();
  EXPECT_THROW(RemoteValue().Fetch(), InvalidArgumentError);
}

TEST_F(ClusterCoordinatorTest, FunctionsThatDifferBetweenWorkersAreRefused) {
  Open(2, 1);
  ClusterCoordinator coordinator(strategy_, graph_);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                coordinator.MakeFunction(
                    [&](ClosureContext& worker) {
                      if (worker.worker() == 1) worker.Argument(DType::kFloat32, Shape());
                      return ClosureNodes();
                    },
                    "uneven");
              }),
              AllOf(HasSubstr("'uneven'"), HasSubstr("worker 1")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                coordinator.CreatePerWorkerDataset([](int worker) {
                  return worker == 0 ? data::Dataset::Range(2) : data::Dataset::Range(2).Batch(1);
                });
              }),
              AllOf(HasSubstr("worker 1"), HasSubstr("Batch")));
}

TEST_F(ClusterCoordinatorTest, EachWorkerHasItsOwnDatasetAndValues) {
  Open(2, 1);
  const ops::Variable count = Counter();
  Initialize();
  ClusterCoordinator coordinator(strategy_, graph_);
  const PerWorkerValue numbers = coordinator.CreatePerWorkerDataset(data::Dataset::Range(4).Repeat());
  const PerWorkerValue weight = coordinator.CreatePerWorkerValue([](Graph& graph, int worker) {
    return std::vector<Output>{ops::Const(graph, 10.0f * static_cast<float>(worker + 1))};
  });
  const auto step = coordinator.MakeFunction([&](ClosureContext& worker) {
    const Output number = worker.Get(numbers)[0];
    const Output own = worker.Get(weight)[0];
    return ClosureNodes{.fetches = {ops::Identity(number), ops::Identity(own)}, .targets = {count.AssignAdd(own)}};
  });
  std::vector<RemoteValue> values;
  for (int i = 0; i < 40; ++i) values.push_back(coordinator.Schedule(step));
  coordinator.Join();
  std::map<float, std::multiset<int64_t>> seen;  // by the worker's weight
  float sum = 0;
  for (const RemoteValue& value : values) {
    const RunResults result = value.Fetch();
    sum += result[1].scalar<float>();
    seen[result[1].scalar<float>()].insert(result[0].scalar<int64_t>());
  }
  EXPECT_EQ(Value(count), sum);
  for (const auto& [own, elements] : seen) {  // each worker has taken 0, 1, 2, 3, 0, ...
    EXPECT_TRUE(own == 10.0f || own == 20.0f) << own;
    EXPECT_LE(elements.count(0) - elements.count(3), 1u);
  }
  EXPECT_EQ(coordinator.lost_elements(), 0);
}

TEST_F(ClusterCoordinatorTest, TheEndOfTheDataIsAnErrorOfItsClosure) {
  Open(1, 1);
  ClusterCoordinator coordinator(strategy_, graph_);
  const PerWorkerValue numbers = coordinator.CreatePerWorkerDataset(data::Dataset::Range(2));
  const auto step = coordinator.MakeFunction(
      [&](ClosureContext& worker) { return ClosureNodes{.fetches = {ops::Identity(worker.Get(numbers)[0])}}; });
  for (int i = 0; i < 2; ++i) coordinator.Schedule(step);
  coordinator.Join();
  coordinator.Schedule(step);
  EXPECT_THROW(coordinator.Join(), OutOfRangeError);
}

TEST_F(ClusterCoordinatorTest, WorkersShuffleDifferentlyUnlessThereIsASeed) {
  Open(2, 1);
  ClusterCoordinator coordinator(strategy_, graph_);
  const auto orders = [&](const data::Dataset& dataset) {
    const PerWorkerValue numbers = coordinator.CreatePerWorkerDataset(dataset);
    const auto take = coordinator.MakeFunction([&](ClosureContext& worker) {
      return ClosureNodes{.fetches = {worker.Get(numbers)[0], ops::Identity(ops::Const(graph_, worker.worker()))}};
    });
    std::map<int, std::vector<int64_t>> of_worker;
    while (of_worker.size() < 2) {  // closures are offered until each worker has had one
      std::vector<RemoteValue> values;
      for (int i = 0; i < 8; ++i) values.push_back(coordinator.Schedule(take));
      for (const RunResults& result : ClusterCoordinator::Fetch(values)) {
        of_worker[result[1].scalar<int32_t>()] = result[0].ToVector<int64_t>();
      }
    }
    return std::pair(of_worker[0], of_worker[1]);
  };
  const data::Dataset range = data::Dataset::Range(100);
  const auto same = orders(range.Shuffle(100, 7, /*reshuffle_each_iteration=*/false).Batch(100).Repeat());
  EXPECT_EQ(same.first, same.second);
  const auto different = orders(range.Shuffle(100, std::nullopt, false).Batch(100).Repeat());
  EXPECT_NE(different.first, different.second);
}

TEST_F(ClusterCoordinatorTest, ADatasetThatNeedsThisProcessIsRefused) {
  Open(1, 1);
  ClusterCoordinator coordinator(strategy_, graph_);
  const data::Dataset host =
      data::Dataset::Range(4).Map([](const std::vector<Tensor>& x) { return x; }, {{DType::kInt64, Shape()}});
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { coordinator.CreatePerWorkerDataset(host); }), HasSubstr("Map"));
}

// Rows of a table in three parts are looked up and trained by two workers, with data of their own.
TEST_F(ClusterCoordinatorTest, ATrainingLoopByHandWithATableInParts) {
  Open(2, 2, FixedShardsPartitioner(3));
  ops::Variable table, bias;
  {
    const auto scope = strategy_->Scope(graph_);
    table = ops::GetVariable(graph_, "table", Shape{7, 1}, DType::kFloat32, initializers::Zeros());
    bias = ops::Variable(graph_, Tensor::Scalar(0.0f), {.name = "bias"});
  }
  ASSERT_EQ(table.parts().size(), 3u);
  ClusterCoordinator coordinator(strategy_, graph_, {.closures_in_flight = 2});
  Tensor index(DType::kInt64, Shape{7}), y(DType::kFloat32, Shape{7, 1});
  for (int64_t i = 0; i < 7; ++i) {
    index.data<int64_t>()[i] = i;
    y.data<float>()[i] = static_cast<float>(i) - 3.0f;
  }
  const PerWorkerValue batches =
      coordinator.CreatePerWorkerDataset(data::Dataset::FromTensorSlices({index, y}).Shuffle(7).Repeat().Batch(4));
  train::AdagradOptimizer optimizer(0.3);
  const auto step = coordinator.MakeFunction(
      [&](ClosureContext& worker) {
        const std::vector<Output> batch = worker.Get(batches);
        const Output loss = ops::Mean(ops::SquaredDifference(table.Gather(batch[0]) + bias.value(), batch[1]));
        return ClosureNodes{.fetches = {loss}, .targets = {optimizer.Minimize(loss)}};
      },
      "train");
  Initialize();
  const float first = coordinator.Schedule(step).Fetch()[0].scalar<float>();
  for (int i = 0; i < 300; ++i) coordinator.Schedule(step);
  coordinator.Join();
  EXPECT_LT(coordinator.Schedule(step).Fetch()[0].scalar<float>(), 0.01f * first);
  EXPECT_EQ(optimizer.slot(table.parts()[2], "accumulator").handle().node->device(),
            table.parts()[2].handle().node->device());
}

// A worker ends in the middle and comes back on its address. Every closure has run; the other worker goes on meanwhile.
TEST_F(ClusterCoordinatorTest, AWorkerMayLeaveAndComeBack) {
  Open(2, 1);
  const ops::Variable count = Counter();
  Initialize();
  ClusterCoordinator coordinator(strategy_, graph_);
  const auto add = coordinator.MakeFunction([&](ClosureContext& worker) {
    return ClosureNodes{.fetches = {ops::Identity(ops::Const(graph_, worker.worker()))},
                        .targets = {count.AssignAdd(ops::Identity(ops::Const(graph_, 1.0f)))}};
  });
  for (int i = 0; i < 50; ++i) coordinator.Schedule(add);
  coordinator.Join();
  for (int i = 0; i < 100; ++i) coordinator.Schedule(add);
  cluster_->Stop("worker", 1);
  for (int i = 0; i < 50; ++i) coordinator.Schedule(add);
  coordinator.Join();
  EXPECT_GE(Value(count), 200.0f);
  cluster_->Restart("worker", 1);
  // Closures are offered until the worker has taken one; the test's time limit bounds this.
  for (int worker = 0; worker != 1;) {
    std::vector<RemoteValue> values;
    for (int i = 0; i < 8; ++i) values.push_back(coordinator.Schedule(add));
    coordinator.Join();
    for (const RemoteValue& value : values) worker = std::max(worker, value.Fetch()[0].scalar<int32_t>());
  }
}

TEST_F(ClusterCoordinatorTest, WithoutAnyWorkerTheCoordinatorFailsInTime) {
  Open(1, 1);
  const ops::Variable count = Counter();
  Initialize();
  ClusterCoordinator coordinator(
      strategy_, graph_,
      {.worker_timeout = std::chrono::milliseconds(300), .connect_timeout = std::chrono::milliseconds(300)});
  const auto add = coordinator.MakeFunction([&](ClosureContext&) {
    return ClosureNodes{.targets = {count.AssignAdd(ops::Identity(ops::Const(graph_, 1.0f)))}};
  });
  coordinator.Schedule(add);
  coordinator.Join();
  cluster_->Stop("worker", 0);
  coordinator.Schedule(add);
  EXPECT_THAT(MessageOf<UnavailableError>([&] { coordinator.Join(); }),
              AllOf(HasSubstr("at least one worker"), HasSubstr("/job:worker/replica:0/task:0")));
  EXPECT_THROW(coordinator.Schedule(add), UnavailableError);
}

TEST_F(ClusterCoordinatorTest, AMissingParameterServerEndsTheCoordinatorInTime) {
  Open(2, 2);
  const ops::Variable count = Counter();
  Initialize();
  ClusterCoordinator coordinator(
      strategy_, graph_,
      {.ps_timeout = std::chrono::milliseconds(300), .connect_timeout = std::chrono::milliseconds(300)});
  const auto add = coordinator.MakeFunction([&](ClosureContext&) {
    return ClosureNodes{.targets = {count.AssignAdd(ops::Identity(ops::Const(graph_, 1.0f)))}};
  });
  coordinator.Schedule(add);
  coordinator.Join();
  cluster_->Stop("ps", 0);
  coordinator.Schedule(add);
  EXPECT_THAT(MessageOf<UnavailableError>([&] { coordinator.Join(); }),
              AllOf(HasSubstr("parameter server"), HasSubstr("/job:ps/replica:0/task:0")));
}

// Ends with closures queued and in flight.
TEST_F(ClusterCoordinatorTest, TheEndOfTheCoordinatorCancelsWhatIsLeft) {
  Open(2, 1);
  const ops::Variable count = Counter();
  Initialize();
  std::vector<RemoteValue> values;
  {
    ClusterCoordinator coordinator(strategy_, graph_);
    const auto add =
        coordinator.MakeFunction([&](ClosureContext&) { return ClosureNodes{.targets = {count.AssignAdd(1.0f)}}; });
    for (int i = 0; i < 1000; ++i) values.push_back(coordinator.Schedule(add));
  }
  for (const RemoteValue& value : values) EXPECT_NE(value.status(), RemoteValueStatus::kNotReady);
}

}  // namespace
}  // namespace cohort::distribute
