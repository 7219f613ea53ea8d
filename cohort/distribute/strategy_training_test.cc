// Training loops by hand: N replicas make the updates of one, on all kinds of device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/replica_inputs.h"
#include "cohort/distribute/strategies.h"
#include "cohort/ops/array.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/unary.h"
#include "cohort/registration.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Floats = std::vector<float>;
using OptimizerPtr = std::unique_ptr<train::Optimizer>;

constexpr int64_t kRows = 40'000;  // of a table of 320 KB, which is large enough for its rows to travel alone

class StrategyTrainingTest : public testing::DeviceKindTest {
 protected:
  StrategyTrainingTest() {
    RegisterAll();
    RegisterTestBackend();
  }
  static std::vector<std::string> devices(int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(device(i));
    return names;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, StrategyTrainingTest, testing::AllDeviceKinds(), testing::DeviceKindName);

struct Trained {
  std::vector<Floats> copies_of_w, copies_of_table;
  std::vector<float> losses, norms;
  std::vector<int64_t> steps;
};

data::Dataset Examples() {
  Tensor x(DType::kFloat32, Shape{11, 3}), index(DType::kInt64, Shape{11}), y(DType::kFloat32, Shape{11, 2});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = std::sin(static_cast<float>(3 * i + 1));
  // Some rows repeat. Row 0 has a gradient in the first step alone, and later replicas have different numbers of rows.
  const std::vector<int64_t> rows = {0, 1000, 0, 2000, 3000, 3000, 3000, 4000, 1000, 5000, 1000};
  for (size_t i = 0; i < rows.size(); ++i) index.data<int64_t>()[i] = rows[i];
  for (int64_t i = 0; i < y.num_elements(); ++i) y.data<float>()[i] = std::cos(static_cast<float>(i));
  return data::Dataset::FromTensorSlices({x, index, y}).Batch(4);  // the last batch has 3 rows
}

// Two epochs with clipped gradients of a dense variable and a table.
Trained Train(const StrategyPtr& strategy, train::Optimizer& optimizer, float clip_norm) {
  Graph graph;
  ops::Variable w, table, global_step;
  {
    const auto scope = strategy->Scope(graph);
    w = ops::GetVariable(graph, "w", Shape{3, 2}, DType::kFloat32, initializers::Constant(0.1));
    table = ops::GetVariable(graph, "table", Shape{kRows, 2}, DType::kFloat32, initializers::Constant(0.2));
    global_step = ops::GetOrCreateGlobalStep(graph);
  }
  const DistributedDataset batches = DistributeDataset(strategy, Examples());
  const ReplicaInputs inputs(graph, batches);
  const PerReplica<Output> losses = strategy->Run(graph, [&](ReplicaContext& replica) {
    const std::vector<Output>& batch = inputs.Of(replica);
    const Output y = ops::MatMul(batch[0], replica.Local(w)) + replica.Local(table).Gather(batch[1]);
    return replica.MeanOfGlobalBatch(ops::SquaredDifference(y, batch[2]));
  });
  auto gradients = strategy->ComputeGradients(losses);
  Trained trained;
  std::vector<Output> fetches = {strategy->Reduce(Reduction::kSum, losses)};
  for (auto& of_copy : gradients) {
    Output norm;
    of_copy = train::ClipByGlobalNorm(of_copy, clip_norm, &norm);
    fetches.push_back(norm);
  }
  Node* update = strategy->ApplyGradients(optimizer, gradients, global_step);
  const auto session = strategy->OpenSession(graph);
  const ReplicaStep step = inputs.MakeStep(*session, fetches, {update});
  session->Run(ops::GlobalVariablesInitializer(graph));
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto iterator = batches.MakeIterator({.epoch = epoch});
    for (PerReplica<std::vector<Tensor>> parts; iterator->Next(&parts);) {
      const std::vector<Tensor> results = step(parts);
      trained.losses.push_back(results[0].scalar<float>());
      for (size_t i = 1; i < results.size(); ++i) trained.norms.push_back(results[i].scalar<float>());
    }
  }
  for (int copy = 0; copy < strategy->num_copies(); ++copy) {
    trained.copies_of_w.push_back(session->Run(strategy->Local(w, copy).value()).ToVector<float>());
    trained.copies_of_table.push_back(session->Run(strategy->Local(table, copy).value()).ToVector<float>());
    trained.steps.push_back(session->Run(strategy->Local(global_step, copy).value()).scalar<int64_t>());
  }
  return trained;
}

void ExpectNear(const Floats& got, const Floats& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  float worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
  EXPECT_LT(worst, 2e-6) << what;
}

TEST_P(StrategyTrainingTest, ReplicasUpdateAsOneDevice) {
  const std::vector<std::function<OptimizerPtr()>> optimizers = {
      [] { return std::make_unique<train::GradientDescentOptimizer>(0.1); },
      [] { return std::make_unique<train::MomentumOptimizer>(0.1, 0.5); },
      [] { return std::make_unique<train::AdamOptimizer>(0.01, 0.9, 0.999, 1e-3); },
  };
  for (const auto& make : optimizers) {
    const OptimizerPtr optimizer = make();
    const Trained expected = Train(Default(), *optimizer, 100);
    for (const StrategyPtr& strategy :
         {OneDevice(device()), Mirrored(devices(2)), Mirrored(devices(3)),
          CentralStorage({.compute_devices = devices(2), .parameter_device = device(1)})}) {
      const std::string what = optimizer->name() + " under " + strategy->name();
      const OptimizerPtr own = make();
      const Trained got = Train(strategy, *own, 100);
      ASSERT_EQ(got.copies_of_w.size(), static_cast<size_t>(strategy->num_copies()));
      for (size_t copy = 0; copy < got.copies_of_w.size(); ++copy) {
        ExpectNear(got.copies_of_w[copy], expected.copies_of_w[0], what);
        ExpectNear(got.copies_of_table[copy], expected.copies_of_table[0], what);
        EXPECT_EQ(got.copies_of_w[copy], got.copies_of_w[0]) << what << ": copies stay equal";
        EXPECT_EQ(got.steps[copy], 6) << what;
      }
      ExpectNear(got.losses, expected.losses, what);
    }
  }
}

// A loop by hand on GPUs of two cards, if there are as many, and on two logical GPUs of one card. In step after step no
// gradient comes to the host; RING, which reduces there, is the control. The sum of two replicas has one order only, so
// the bits are the same.
TEST(StrategyOnGpusTest, AnAllReduceStaysInTheMemoryOfTheDevices) {
  RegisterAll();
  const cuda::GpusOfTests gpus = cuda::RegisterGpusForTests();
  const cuda::DriverCounts& counts = gpus.counts;
  constexpr int kSteps = 4;
  constexpr int64_t kSize = 3000;
  const auto train = [&](const std::string& second, CommunicationImplementation implementation, int64_t* reductions,
                         int64_t* to_host) {
    const StrategyPtr strategy =
        Mirrored({.devices = {"/device:GPU:0", second}, .communication = {.implementation = implementation}});
    Graph graph;
    ops::Variable w;
    {
      const auto scope = strategy->Scope(graph);
      w = ops::GetVariable(graph, "w", Shape{kSize}, DType::kFloat32, initializers::Constant(0.1));
    }
    const PerReplica<Output> losses = strategy->Run(graph, [&](ReplicaContext& replica) {
      const float factor = replica.replica_id_in_sync_group() == 0 ? 0.3f : 0.7f;
      return ops::Mean(ops::Square(replica.Local(w).value() * factor + 1.0f));
    });
    train::MomentumOptimizer optimizer(0.5, 0.9);
    Node* update = strategy->ApplyGradients(optimizer, strategy->ComputeGradients(losses));
    const auto session = strategy->OpenSession(graph);
    session->Run(ops::GlobalVariablesInitializer(graph));
    session->Run({}, {}, {update});  // the group forms
    const int64_t launches = counts.launches_of("CombineKernel");
    const int64_t bytes = counts.bytes_to_host();
    for (int step = 1; step < kSteps; ++step) session->Run({}, {}, {update});
    *reductions = counts.launches_of("CombineKernel") - launches;
    *to_host = counts.bytes_to_host() - bytes;
    return session->Run(strategy->Local(w, 1).value()).ToVector<float>();
  };
  for (const int number : {1, 2}) {
    const std::string second = StrCat("/device:GPU:", number);
    const int cards = number % gpus.driver.CardCount() == 0 ? 1 : 2;  // devices are on the cards by turns
    int64_t reductions = 0, to_host = 0;
    const Floats w = train(second, CommunicationImplementation::kAuto, &reductions, &to_host);
    EXPECT_EQ(reductions, cards * (kSteps - 1)) << "one kernel on each card in each step";
    EXPECT_LT(to_host, 10 * kSteps) << "only the byte that says that a device has ended its part of a step";
    EXPECT_EQ(train(second, CommunicationImplementation::kAuto, &reductions, &to_host), w) << "the same bits";
    EXPECT_EQ(train(second, CommunicationImplementation::kRing, &reductions, &to_host), w);
    EXPECT_EQ(reductions, 0);
    EXPECT_GE(to_host, (kSteps - 1) * 2 * kSize * static_cast<int64_t>(sizeof(float)));
  }
}

// A norm far below that of the gradients bounds every update, and the copies agree on the norm.
TEST_P(StrategyTrainingTest, ClippedGradientsBoundTheUpdate) {
  for (const StrategyPtr& strategy : {Default(), Mirrored(devices(2))}) {
    train::GradientDescentOptimizer optimizer(1.0);
    const Trained got = Train(strategy, optimizer, 1e-3f);
    double moved = 0;
    for (const float value : got.copies_of_w[0]) moved += std::pow(value - 0.1, 2);
    for (const float value : got.copies_of_table[0]) moved += std::pow(value - 0.2, 2);
    EXPECT_GT(std::sqrt(moved), 1e-3) << strategy->name();
    EXPECT_LE(std::sqrt(moved), 6 * 1.001e-3) << strategy->name() << ": six steps of 1e-3 at most";
    for (const float norm : got.norms) EXPECT_GT(norm, 0.1f);
    for (size_t i = 0; i < got.norms.size(); i += got.copies_of_w.size()) {
      EXPECT_EQ(got.norms[i], got.norms[i + got.copies_of_w.size() - 1]);
    }
  }
}

TEST_P(StrategyTrainingTest, WhatCannotBeTrainedIsNamed) {
  const StrategyPtr strategy = Mirrored(devices(2));
  Graph graph;
  const ops::Variable outside(graph, Tensor::Scalar(1.0f), {.name = "outside"});
  train::GradientDescentOptimizer optimizer(0.1);
  const auto constant = [&](ReplicaContext&) { return ops::Const(graph, 1.0f); };
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { strategy->Minimize(optimizer, strategy->Run(graph, constant)); }),
              AllOf(HasSubstr("variables to train"), HasSubstr("scope of MirroredStrategy")));
  ops::Variable w, v;
  {
    const auto scope = strategy->Scope(graph);
    w = ops::Variable(graph, Tensor::Scalar(1.0f), {.name = "w"});
    v = ops::Variable(graph, Tensor::Scalar(1.0f), {.name = "v"});
  }
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                strategy->Minimize(optimizer, strategy->Run(graph, [&](ReplicaContext& replica) {
                  const Output square = ops::Square(replica.Local(w));
                  return replica.local_replica() == 0 ? square : square + replica.Local(v);
                }));
              }),
              AllOf(HasSubstr("replica 1"), HasSubstr("variable 'v'")));
  const Output one = ops::Const(graph, 1.0f);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { strategy->ComputeGradients({one}); }),
              AllOf(HasSubstr("each of the 2 replicas"), HasSubstr("got 1")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { strategy->ApplyGradients(optimizer, {{}}); }),
              AllOf(HasSubstr("each of the 2 copies"), HasSubstr("got 1")));
}

TEST_P(StrategyTrainingTest, StepsTakeAPartOfEachReplica) {
  const StrategyPtr strategy = Mirrored(devices(2));
  Graph graph;
  const ReplicaInputs inputs(graph, DistributeDataset(strategy, Examples()));
  const PerReplica<Output> sums = strategy->Run(graph, [&](ReplicaContext& replica) {
    EXPECT_EQ(inputs.Of(replica)[0].node->device(), replica.strategy().devices()[replica.local_replica() == 0 ? 0 : 1]);
    return ops::Sum(inputs.Of(replica)[0]);
  });
  const auto session = strategy->OpenSession(graph);
  const ReplicaStep step = inputs.MakeStep(*session, sums);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { step({{Tensor::Scalar(1.0f)}}); }),
              AllOf(HasSubstr("3 tensors for each of the 2 replicas"), HasSubstr("got 1 tensors for 1 replicas")));
}

}  // namespace
}  // namespace cohort::distribute
