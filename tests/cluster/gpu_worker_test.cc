// Workers with a GPU, whose variables are on a parameter server without one: which bytes travel, and what does not wait
// for what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <thread>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/cluster/status/status_client.h"
#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/testing/parameter_servers.h"
#include "cohort/keras/keras.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using testing::LocalCluster;
using testing::VariableOn;
using Floats = std::vector<float>;

constexpr int64_t kRows = 20'000;
constexpr int64_t kColumns = 8;
const char* const kServer = "/job:ps/task:0/device:CPU:0";
const char* const kWorker = "/job:worker/task:0/device:GPU:0";

Tensor Ramp(const Shape& shape, float step) {
  Tensor ramp(DType::kFloat32, shape);
  for (int64_t i = 0; i < ramp.num_elements(); ++i) ramp.data<float>()[i] = step * static_cast<float>(i % 17 - 8);
  return ramp;
}

class GpuWorkerTest : public ::testing::Test {
 protected:
  GpuWorkerTest() : counts_(cuda::RegisterGpusForTests().counts), cluster_({{"ps", 1}, {"worker", 1}}, Options()) {}
  static ServerOptions Options() {
    ServerOptions options = LocalCluster::FastOptions();
    options.config.device_count["GPU"] = 1;
    return options;
  }
  // Returns how many bytes the worker has sent to the parameter server, and received from it.
  int64_t BytesOverTheNetwork() {
    StatusClient client(cluster_.spec(), {.time_limit = std::chrono::seconds(30), .token = Options().token});
    for (const TaskReport& task : client.Ask().tasks) {
      if (task.job == "worker") return static_cast<int64_t>(task.status.sent_bytes + task.status.received_bytes);
    }
    return 0;
  }

  const cuda::DriverCounts& counts_;
  LocalCluster cluster_;
};

// A table, of which a step reads and changes six rows.
struct Embedding {
  Graph g;
  ops::Variable table, w;
  Output index;
  Node* train = nullptr;

  Embedding(const std::string& server, const std::string& worker) {
    table = VariableOn(g, server, ops::Const(g, Ramp(Shape{kRows, kColumns}, 0.01f)), "table");
    w = VariableOn(g, server, ops::Const(g, Ramp(Shape{kColumns, 4}, 0.1f)), "w");
    const DeviceScope scope(g, worker);
    index = ops::Placeholder(g, DType::kInt32, Shape{-1}, "index");
    const Output y = ops::MatMul(table.Gather(index), w.value());
    train::GradientDescentOptimizer optimizer(0.5f);
    train = optimizer.Minimize(ops::Mean(ops::Square(y + 1.0f)), {}, {table, w});
  }
  void Step(Session& session, int step) {
    session.Run({{index, Tensor::Vector<int32_t>({step, 7, 7, 19'999, 100 + step, 3})}}, {}, {train});
  }
};

TEST_F(GpuWorkerTest, OnlyTouchedRowsTravel) {
  constexpr int kSteps = 10;
  Embedding model(kServer, kWorker);
  Session session(model.g, cluster_.target("worker", 0));
  session.Run(ops::GlobalVariablesInitializer(model.g));
  model.Step(session, 0);
  const int64_t to_host = counts_.bytes_to_host();
  const int64_t from_host = counts_.bytes_from_host();
  const int64_t between = counts_.copies_between_kernels();
  const int64_t pageable = counts_.pageable_copies();
  const int64_t launches = counts_.launches();
  const int64_t network = BytesOverTheNetwork();
  for (int step = 1; step < kSteps; ++step) model.Step(session, step);
  const int64_t rows = 6 * kColumns * sizeof(float);
  const int64_t dense = kColumns * 4 * sizeof(float);
  const int64_t steps = kSteps - 1;
  // Rows and w come to the card; gradients of both go from it. There is room for indices and shapes.
  EXPECT_GE(counts_.bytes_from_host() - from_host, steps * (rows + dense));
  EXPECT_LE(counts_.bytes_from_host() - from_host, steps * (2 * (rows + dense)));
  EXPECT_GE(counts_.bytes_to_host() - to_host, steps * (rows + dense));
  EXPECT_LE(counts_.bytes_to_host() - to_host, steps * (2 * (rows + dense)));
  EXPECT_EQ(counts_.copies_between_kernels(), between) << "copies have streams of their own";
  EXPECT_EQ(counts_.pageable_copies(), pageable) << "what is received and sent goes through pinned memory";
  EXPECT_GT(counts_.launches(), launches) << "the worker computes on its GPU";
  const int64_t whole_table = kRows * kColumns * static_cast<int64_t>(sizeof(float));
  EXPECT_LT(BytesOverTheNetwork() - network, whole_table / 4) << "in all steps, with messages and heartbeats";

  // The same on one CPU.
  Embedding expected("/device:CPU:0", "/device:CPU:0");
  Session local(expected.g);
  local.Run(ops::GlobalVariablesInitializer(expected.g));
  for (int step = 0; step < kSteps; ++step) expected.Step(local, step);
  const Floats got = session.Run(model.table.value()).ToVector<float>();
  const Floats want = local.Run(expected.table.value()).ToVector<float>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << "element " << i;
}

// Popular rows are looked up in many places of a batch.
TEST_F(GpuWorkerTest, ARowThatOccursOftenTravelsOnce) {
  Graph g;
  const ops::Variable table = VariableOn(g, kServer, ops::Const(g, Ramp(Shape{kRows, kColumns}, 0.01f)), "table");
  const DeviceScope scope(g, kWorker);
  const Output index = ops::Placeholder(g, DType::kInt32, Shape{-1, 10}, "index");
  train::GradientDescentOptimizer optimizer(0.5f);
  Node* train = optimizer.Minimize(ops::Mean(ops::Square(table.GatherUnique(index))), {}, {table});
  Session session(g, cluster_.target("worker", 0));
  session.Run(ops::GlobalVariablesInitializer(g));
  Tensor popular(DType::kInt32, Shape{1000, 10});
  for (int64_t i = 0; i < popular.num_elements(); ++i) popular.data<int32_t>()[i] = static_cast<int32_t>(i % 3);
  const int64_t network = BytesOverTheNetwork();
  session.Run({{index, popular}}, {}, {train});
  const int64_t each_place = popular.num_elements() * kColumns * static_cast<int64_t>(sizeof(float));
  EXPECT_LT(BytesOverTheNetwork() - network, each_place / 4) << "with messages and heartbeats";
}

// Three layers, whose weights are pulled.
struct Layers {
  Graph g;
  std::vector<ops::Variable> w;
  Output x, first;
  std::vector<Output> reads;
  Output y;

  // The pull of the last weights begins when the first layer's result has come to the server.
  explicit Layers(bool last_waits) {
    for (int i = 0; i < 3; ++i) {
      w.push_back(VariableOn(g, kServer, ops::Const(g, Ramp(Shape{64, 64}, 0.01f)), StrCat("w", i)));
    }
    const DeviceScope worker(g, kWorker);
    x = ops::Placeholder(g, DType::kFloat32, Shape{4, 64}, "x");
    first = ops::MatMul(x, w[0].value());
    y = ops::MatMul(first, w[1].value());
    Output last;
    {
      const DeviceScope server(g, kServer);
      const ControlDependencies after(
          g, last_waits ? std::vector<Node*>{ops::Identity(first).node} : std::vector<Node*>{});
      last = w[2].Read();
    }
    y = ops::MatMul(y, last);
  }
};

// The card stands still, as if it computed for long. Meanwhile all weights are pulled, and their copies are enqueued.
TEST_F(GpuWorkerTest, PullsDoNotWaitForTheCard) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  cuda::FakeControl& control = cuda::RegisterFakeCuda().control();
  Layers layers(false);
  Session session(layers.g, cluster_.target("worker", 0));
  session.Run(ops::GlobalVariablesInitializer(layers.g));
  const FeedList feeds = {{layers.x, Ramp(Shape{4, 64}, 1)}};
  const Floats expected = session.Run(feeds, {layers.y}).front().ToVector<float>();
  const int64_t before = counts_.bytes_from_host();
  const int64_t all = (3 * 64 * 64 + 4 * 64) * static_cast<int64_t>(sizeof(float));
  control.Hold(0);
  auto result =
      std::async(std::launch::async, [&] { return session.Run(feeds, {layers.y}).front().ToVector<float>(); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (counts_.bytes_from_host() < before + all && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(counts_.bytes_from_host(), before + all);
  control.Release(0);
  EXPECT_EQ(result.get(), expected);
}

// The worker computes with the weights that have come, and pushes the result, before it has the others.
TEST_F(GpuWorkerTest, LayersComputeWhileLaterWeightsHaveNotCome) {
  Layers layers(true);
  SessionConfig config;
  config.operation_timeout = std::chrono::minutes(1);
  Session session(layers.g, cluster_.target("worker", 0), config);
  session.Run(ops::GlobalVariablesInitializer(layers.g));
  const Floats expected = [&] {
    Layers plain(false);
    Session other(plain.g, cluster_.target("worker", 0));
    return other.Run({{plain.x, Ramp(Shape{4, 64}, 1)}}, {plain.y}).front().ToVector<float>();
  }();
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(session.Run({{layers.x, Ramp(Shape{4, 64}, 1)}}, {layers.y}).front().ToVector<float>(), expected);
  }
}

// Keras on a ParameterServerStrategy. Nodes that ask for no device go to GPUs, as in a program.
class GpuClosuresTest : public distribute::ParameterServers {
 protected:
  GpuClosuresTest() : counts_(cuda::RegisterGpusForTests().counts) {
    cuda::CudaBackend::Get().set_takes_unplaced_nodes(true);
  }
  ~GpuClosuresTest() override { cuda::CudaBackend::Get().set_takes_unplaced_nodes(false); }
  static Floats Fit(const distribute::StrategyPtr& strategy) {
    keras::Sequential model({keras::Dense(8, {.activation = "tanh"}), keras::Dense(1)},
                            {.seed = 3, .strategy = strategy});
    model.Compile(
        {.optimizer = keras::SGD({.learning_rate = 0.05, .momentum = 0.9}), .loss = "mse", .metrics = {"mae"}});
    const data::Dataset batches =
        data::Dataset::FromTensorSlices({Ramp(Shape{12, 2}, 0.1f), Ramp(Shape{12, 1}, 0.2f)}).Repeat().Batch(4);
    const keras::History history =
        model.Fit(batches, {.epochs = 2, .verbose = 0, .steps_per_epoch = 6, .signal_check = false});
    Floats all(history["loss"].begin(), history["loss"].end());
    for (const Tensor& weight : model.GetWeights()) {
      const Floats values = weight.ToVector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  const cuda::DriverCounts& counts_;
};

TEST_F(GpuClosuresTest, FitOnParameterServersComputesOnTheGpusOfWorkers) {
  ServerOptions options = Server();
  options.config.device_count["GPU"] = 1;
  distribute::LocalCluster cluster({.workers = 2, .ps = 1, .server = options});
  ::testing::internal::CaptureStderr();
  const int64_t launches = counts_.launches(), pageable = counts_.pageable_copies();
  const Floats got = Fit(distribute::ParameterServerStrategy(*cluster.resolver(), nullptr, {.server = Server()}));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_GT(counts_.launches(), launches);
  EXPECT_EQ(counts_.pageable_copies(), pageable);
  EXPECT_THAT(log, ::testing::HasSubstr("Number of GPUs on workers: 1\n"));
  // The numbers of two asynchronous workers depend on who comes first.
  EXPECT_EQ(got.size(), size_t{2 + 2 * 8 + 8 + 8 + 1});
  for (const float value : got) EXPECT_TRUE(std::isfinite(value));
}

TEST_F(GpuClosuresTest, OneWorkerMakesTheUpdatesOfOneCpu) {
  ServerOptions options = Server();
  options.config.device_count["GPU"] = 1;
  distribute::LocalCluster cluster({.workers = 1, .ps = 2, .server = options});
  const Floats got = Fit(distribute::ParameterServerStrategy(*cluster.resolver(), distribute::FixedShardsPartitioner(2),
                                                             {.server = Server()}));
  const Floats expected = Fit(nullptr);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
}

}  // namespace
}  // namespace cohort
