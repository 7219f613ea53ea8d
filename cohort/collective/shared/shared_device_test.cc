// Collectives between devices of one process, in the devices' memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/collective/testing/in_graph.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/variables.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using testing::Await;
using testing::Begin;
using ::testing::HasSubstr;
using testing::LooseDevices;
using testing::Outcome;

constexpr int kDevices = 3;  // on two cards, if there are as many

class SharedDevices : public ::testing::Test {
 protected:
  SharedDevices() {
    RegisterAll();
    counts_ = &cuda::RegisterGpusForTests().counts;
    devices_.emplace("GPU", kDevices);
    GroupOptions options;
    for (int i = 0; i < kDevices; ++i) options.members.push_back(DeviceName::Parse(StrCat("/device:GPU:", i)));
    group_ = MakeLocalGroup(options);
  }
  Device& device(int rank) { return *devices_->devices()[static_cast<size_t>(rank)]; }
  static Tensor Noise(int rank, int64_t count) {
    Tensor noise(DType::kFloat32, Shape{count});
    for (int64_t i = 0; i < count; ++i) noise.data<float>()[i] = std::sin(static_cast<float>(i * 7 + rank * 1000));
    return noise;
  }

  const cuda::DriverCounts* counts_ = nullptr;
  std::optional<LooseDevices> devices_;
  std::unique_ptr<Group> group_;
};

TEST_F(SharedDevices, CopiesBetweenCardsTakeNoDetourThroughHostMemory) {
  COHORT_NEEDS_FAKE("it counts such copies");
  const cuda::FakeControl& control = cuda::RegisterFakeCuda().control();
  const int64_t before = control.detours();
  std::vector<std::future<Outcome>> futures;
  for (int rank = 0; rank < kDevices; ++rank) {
    futures.push_back(Begin([&](Communicator::Done done) {
      group_->communicator(rank)->AllReduceAsync({1, "w", nullptr, &device(rank)},
                                                 device(rank).CopyFromHostAsync(Noise(rank, 1000)), ReduceOp::kSum,
                                                 std::move(done));
    }));
  }
  for (auto& future : futures) EXPECT_TRUE(Await(future).status.ok());
  EXPECT_EQ(control.detours(), before);
}

TEST_F(SharedDevices, AnAllReduceStaysOnTheDevicesAndHasTheBitsOfTheHost) {
  constexpr int64_t kCount = 10'007;
  std::vector<std::future<Outcome>> futures;
  const int64_t before = counts_->bytes_to_host();
  for (int rank = 0; rank < kDevices; ++rank) {
    const auto member = group_->communicator(rank);
    ASSERT_TRUE(member->TakesDeviceMemory(device(rank)));
    futures.push_back(Begin([&](Communicator::Done done) {
      member->AllReduceAsync({1, "w", nullptr, &device(rank)}, device(rank).CopyFromHostAsync(Noise(rank, kCount)),
                             ReduceOp::kMean, std::move(done));
    }));
  }
  std::vector<Tensor> results;
  for (auto& future : futures) {
    Outcome outcome = Await(future);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_FALSE(outcome.value.space().is_host());
    results.push_back(std::move(outcome.value));
  }
  EXPECT_EQ(counts_->bytes_to_host(), before);
  std::vector<float> expected(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    const auto at = [i](int rank) { return std::sin(static_cast<float>(i * 7 + rank * 1000)); };
    expected[static_cast<size_t>(i)] = ((at(0) + at(1)) + at(2)) / 3;
  }
  for (int rank = 0; rank < kDevices; ++rank) {
    EXPECT_EQ(device(rank).CopyToHost(results[static_cast<size_t>(rank)]).ToVector<float>(), expected) << rank;
  }
}

TEST_F(SharedDevices, InputsInDifferentMemoriesAreRefused) {
  std::vector<std::future<Outcome>> futures;
  for (int rank = 0; rank < kDevices; ++rank) {
    const auto member = group_->communicator(rank);
    futures.push_back(Begin([&](Communicator::Done done) {
      Tensor input = rank == 1 ? Noise(rank, 8) : device(rank).CopyFromHostAsync(Noise(rank, 8));
      member->AllReduceAsync({1, "w", nullptr, &device(rank)}, std::move(input), ReduceOp::kSum, std::move(done));
    }));
  }
  for (auto& future : futures) {
    EXPECT_THAT(Await(future).status.message(), AllOf(HasSubstr("rank 0 in GPU"), HasSubstr("rank 1 in host")));
  }
}

// A replica that has found bad data must not give its gradient to the others: none of them applies the update.
TEST_F(SharedDevices, AnErrorOfOneDeviceKeepsTheUpdatesOfAll) {
  Graph graph;
  const Output index = ops::Placeholder(graph, DType::kInt32, Shape{1}, "index");
  ops::CollectiveKeys keys;
  for (int rank = 0; rank < 2; ++rank) keys.members.push_back(StrCat("/device:GPU:", rank));
  keys.instance_key = ops::NextInstanceKey(graph);
  std::vector<Output> reads;
  std::vector<Node*> updates;
  for (int rank = 0; rank < 2; ++rank) {
    const DeviceScope scope(graph, keys.members[static_cast<size_t>(rank)]);
    const ops::Variable w(graph, Tensor::Vector<float>({1, 2}), {.name = StrCat("w", rank)});
    const Output rows = ops::Const(graph, Tensor::Zeros(DType::kFloat32, {4, 2}));
    const Output own = rank == 0 ? ops::Reshape(ops::Gather(ops::Identity(rows), index), {2})
                                 : ops::Const(graph, Tensor::Vector<float>({8, 8}));
    updates.push_back(w.AssignSub(ops::CollectiveReduce(own, keys)));
    reads.push_back(w);
  }
  SessionConfig config;
  config.device_count["GPU"] = 2;
  Session session(graph, "", config);
  session.Run(ops::GlobalVariablesInitializer(graph));
  const FeedList good = {{index, Tensor::Vector<int32_t>({3})}};
  session.Run(good, {}, updates);
  const FeedList bad = {{index, Tensor::Vector<int32_t>({4})}};
  for (int step = 0; step < 5; ++step) {
    EXPECT_THROW(session.Run(bad, {}, updates), Error);
    for (const Tensor& value : session.Run(good, reads)) {
      EXPECT_EQ(value.ToVector<float>(), (std::vector<float>{-7, -6})) << step;
    }
  }
  session.Run(good, {}, updates);  // the group forms again
  for (const Tensor& value : session.Run(good, reads))
    EXPECT_EQ(value.ToVector<float>(), (std::vector<float>{-15, -14}));
}

// Steps with an all-reduce of `count` elements by one member on each of `devices` devices.
class StepsWithAnAllReduce {
 public:
  StepsWithAnAllReduce(int devices, int64_t count) : count_(static_cast<size_t>(count)) {
    ops::CollectiveKeys keys;
    for (int rank = 0; rank < devices; ++rank) keys.members.push_back(StrCat("/device:GPU:", rank));
    keys.instance_key = ops::NextInstanceKey(graph_);
    for (int rank = 0; rank < devices; ++rank) {
      const DeviceScope scope(graph_, keys.members[static_cast<size_t>(rank)]);
      const ops::Variable w(graph_, Tensor::Zeros(DType::kFloat32, {count}), {.name = StrCat("w", rank)});
      updates_.push_back(w.AssignAdd(ops::CollectiveReduce(w + 1.0f, keys)));
      reads_.push_back(w);
    }
    SessionConfig config;
    config.device_count["GPU"] = devices;
    session_ = std::make_unique<Session>(graph_, "", config);
    session_->Run(ops::GlobalVariablesInitializer(graph_));
  }
  void Step() { session_->Run({}, {}, updates_); }
  void ExpectValues(float expected) {
    for (const Tensor& value : session_->Run({}, reads_)) {
      EXPECT_EQ(value.ToVector<float>(), std::vector<float>(count_, expected));
    }
  }

 private:
  const size_t count_;
  Graph graph_;
  std::vector<Output> reads_;
  std::vector<Node*> updates_;
  std::unique_ptr<Session> session_;
};

TEST_F(SharedDevices, AStepWithAnAllReduceCopiesNothingToTheHost) {
  StepsWithAnAllReduce steps(kDevices, 1000);
  steps.Step();
  const int64_t before = counts_->bytes_to_host();
  steps.Step();
  EXPECT_EQ(counts_->bytes_to_host(), before);
  steps.ExpectValues(3 + 3 * 4);
}

// One kernel has places for 64 buffers.
TEST_F(SharedDevices, MoreThan64DevicesReduceThroughPinnedMemoryOfTheHost) {
  constexpr int kMany = 65, kCount = 10;
  StepsWithAnAllReduce steps(kMany, kCount);
  const int64_t to_host = counts_->bytes_to_host(), pageable = counts_->pageable_copies();
  steps.Step();
  EXPECT_EQ(counts_->bytes_to_host(), to_host + kMany * kCount * static_cast<int64_t>(sizeof(float)));
  EXPECT_EQ(counts_->pageable_copies(), pageable);
  steps.ExpectValues(kMany);
}

}  // namespace
}  // namespace cohort::collective
