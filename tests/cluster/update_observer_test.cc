// What the observers of parameter servers are given, in clusters inside this process: from the records alone the values
// of the variables can be made again, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "cohort/cluster/transport.h"
#include "cohort/cohort.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using testing::LocalCluster;

class KeptUpdates final : public UpdateObserver {
 public:
  void OnUpdates(UpdateSet set) override {
    const std::lock_guard<std::mutex> lock(mu_);
    sets_.push_back(std::move(set));
  }
  std::vector<UpdateSet> sets() const {
    const std::lock_guard<std::mutex> lock(mu_);
    return sets_;
  }

 private:
  mutable std::mutex mu_;
  std::vector<UpdateSet> sets_;
};

class UpdateObserverTest : public ::testing::TestWithParam<std::string> {
 protected:
  // A cluster of two parameter servers, which share an observer, and two workers.
  ServerOptions Options() {
    ServerOptions options = LocalCluster::FastOptions();
    options.protocol = GetParam();
    options.config.device_count["CPU"] = 2;
    options.update_observer = kept_;
    return options;
  }
  // The sets of one task, in their order.
  std::vector<UpdateSet> SetsOf(const std::string& task) const {
    std::vector<UpdateSet> sets;
    for (UpdateSet& set : kept_->sets()) {
      if (set.device_name.rfind(task, 0) == 0) sets.push_back(std::move(set));
    }
    return sets;
  }

  const std::shared_ptr<KeptUpdates> kept_ = std::make_shared<KeptUpdates>();
};
INSTANTIATE_TEST_SUITE_P(All, UpdateObserverTest, ::testing::ValuesIn(TransportProtocols()),
                         [](const auto& info) { return info.param; });

struct Network {
  explicit Network(Graph& g) {
    const DeviceScope ps0(g, "/job:ps/task:0");
    table =
        ops::Variable(g, ops::Fill(ops::Const(g, std::vector<int32_t>{50, 4}), ops::Const(g, 0.5f)), {.name = "table"});
    steps = ops::Variable(g, Tensor::Scalar(int64_t{0}), {.name = "steps", .trainable = false});
    {
      const DeviceScope ps1(g, "/job:ps/task:1");
      w = ops::Variable(g, ops::Fill(ops::Const(g, std::vector<int32_t>{4, 1}), ops::Const(g, 0.1f)), {.name = "w"});
    }
  }
  ops::Variable table, w, steps;
};

// The variables of all parameter servers after the updates of `sets`, computed in a session of its own.
std::vector<Tensor> Replayed(const std::vector<UpdateSet>& sets, const std::vector<ops::Variable>& variables) {
  Graph g;
  Session session(g);
  std::map<const UpdateOp*, std::pair<Node*, std::vector<Output>>> nodes;
  std::map<std::string, const ops::Variable*> by_name;
  for (const ops::Variable& variable : variables) by_name.emplace(variable.name(), &variable);
  const auto handle = [&](const std::string& name) {
    const ops::Variable& variable = *by_name.at(name);
    return ops::VarHandleOp(g, variable.dtype(), variable.shape(), name);
  };
  for (const UpdateSet& set : sets) {
    for (const UpdateRecord& record : set.updates) {
      auto& [node, feeds] = nodes[record.op.get()];
      if (node == nullptr) {
        NodeBuilder builder = g.Op(record.op->op);
        size_t variable = 0;
        size_t input = 0;
        for (const ArgDef& arg : OpRegistry::Global().Find(record.op->op)->inputs()) {
          if (arg.dtype == DType::kResource) {
            builder.Input(handle(record.variables.at(variable++).name));
          } else {
            const Tensor& value = record.inputs.at(input++);
            feeds.push_back(ops::Placeholder(g, value.dtype(), Shape::UnknownRank()));
            builder.Input(feeds.back());
          }
        }
        node = builder.Attrs(record.op->attrs).Finish();
      }
      FeedList values;
      for (size_t i = 0; i < feeds.size(); ++i) values.push_back({feeds[i], record.inputs[i]});
      session.Run(values, {}, {node});
    }
  }
  std::vector<Output> reads;
  for (const ops::Variable& variable : variables) reads.push_back(ops::ReadVariableOp(handle(variable.name())));
  return session.Run(reads);
}

// Two workers train by themselves, without waiting for each other: Adam, whose powers are updated after all else, and
// sparse updates of rows. Each parameter server's log gives the same values.
TEST_P(UpdateObserverTest, LogsOfAsynchronousWorkersGiveTheSameBits) {
  constexpr int kSteps = 40;
  LocalCluster cluster({{"ps", 2}, {"worker", 2}}, Options());
  std::vector<ops::Variable> variables;
  Graph chief;
  const auto build = [](Graph& g, std::vector<ops::Variable>* all) {
    const Network network(g);
    const Output ids = ops::Placeholder(g, DType::kInt32, Shape{8}, "ids");
    const Output y = ops::Placeholder(g, DType::kFloat32, Shape{8, 1}, "y");
    const Output rows = ops::Gather(network.table, ids);
    const Output loss = ops::Mean(ops::Square(ops::MatMul(rows, network.w) - y));
    train::AdamOptimizer adam(0.01);
    Node* dense = adam.Minimize(loss, network.steps, {network.w});
    train::MomentumOptimizer momentum(0.1, 0.9);
    Node* sparse = momentum.Minimize(loss, {}, {network.table});
    if (all != nullptr) {
      *all = {network.table, network.w, network.steps};
      for (const ops::Variable& own : adam.variables()) all->push_back(own);
      for (const ops::Variable& own : momentum.variables()) all->push_back(own);
    }
    return std::tuple{ids, y, dense, sparse};
  };
  build(chief, &variables);
  Session session(chief, cluster.target("worker", 0));
  session.Run(ops::GlobalVariablesInitializer(chief));
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 2; ++worker) {
    workers.emplace_back([&, worker] {
      Graph g;
      const auto [ids, y, dense, sparse] = build(g, nullptr);
      Session own(g, cluster.target("worker", worker));
      std::mt19937 random(static_cast<unsigned>(worker));
      for (int i = 0; i < kSteps; ++i) {
        std::vector<int32_t> rows(8);
        for (int32_t& row : rows) row = static_cast<int32_t>(random() % 50);
        Tensor target(DType::kFloat32, Shape{8, 1});
        for (int k = 0; k < 8; ++k) target.data<float>()[k] = static_cast<float>(random() % 1000) / 999.0f;
        own.Run({{ids, Tensor::Vector(rows)}, {y, target}}, {}, {dense, sparse});
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::vector<Output> reads;
  for (const ops::Variable& variable : variables) reads.push_back(variable.value());
  const std::vector<Tensor> values = session.Run(reads);

  std::vector<UpdateSet> all;
  for (const char* ps : {"/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1"}) {
    const std::vector<UpdateSet> sets = SetsOf(ps);
    std::map<std::pair<std::string, uint64_t>, int64_t> latest;
    for (size_t i = 0; i < sets.size(); ++i) {
      EXPECT_EQ(sets[i].position, static_cast<int64_t>(i) + 1);
      const StepOrigin& origin = sets[i].origin;
      EXPECT_EQ(origin.client.task.rfind("/job:worker/replica:0/task:", 0), 0u) << origin.client.task;
      int64_t& before = latest[{origin.client.task, origin.session}];
      EXPECT_GE(sets[i].sequence, before);  // equal if the step had to wait between its updates
      before = sets[i].sequence;
    }
    EXPECT_EQ(latest.size(), 3u) << ps;  // the chief's session and each worker's
    EXPECT_GE(sets.size(), 2u * kSteps) << ps;
    all.insert(all.end(), sets.begin(), sets.end());
  }
  EXPECT_EQ(values[2].scalar<int64_t>(), 2 * kSteps);
  const std::vector<Tensor> again = Replayed(all, variables);
  for (size_t i = 0; i < variables.size(); ++i) {
    EXPECT_EQ(again[i].ToString(), values[i].ToString()) << variables[i].name();
    ASSERT_EQ(again[i].bytes(), values[i].bytes());
    EXPECT_EQ(std::memcmp(again[i].raw_data(), values[i].raw_data(), values[i].bytes()), 0) << variables[i].name();
  }
}

// A value of one device's update is sent to an update on another device of the same task, perhaps on the same thread.
TEST_P(UpdateObserverTest, DevicesOfATaskTakeTurnsWithinAStep) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, Options());
  Graph g;
  const std::string device = "/job:ps/task:0/device:CPU:";
  const ops::Variable a = testing::VariableOn(g, device + "0", ops::Const(g, 1.0f), "a");
  const ops::Variable b = testing::VariableOn(g, device + "1", ops::Const(g, 1.0f), "b");
  Node* step = a.AssignAdd(b.value());
  for (int i = 0; i < 4; ++i) {
    const ControlDependencies after(g, {step});
    const ops::Variable& from = i % 2 == 0 ? a : b;
    step = (i % 2 == 0 ? b : a).AssignAdd(ops::ReadVariableOp(from.handle()));
  }
  Session session(g, cluster.target("worker", 0));
  session.Run(ops::GlobalVariablesInitializer(g));
  std::vector<std::thread> users;
  for (int i = 0; i < 3; ++i) {
    users.emplace_back([&] {
      for (int k = 0; k < 5; ++k) session.Run(step);
    });
  }
  for (std::thread& user : users) user.join();
  const auto values = session.Run({a.value(), b.value()});
  const std::vector<Tensor> again = Replayed(kept_->sets(), {a, b});
  EXPECT_EQ(again[0].scalar<float>(), values[0].scalar<float>());
  EXPECT_EQ(again[1].scalar<float>(), values[1].scalar<float>());
}

}  // namespace
}  // namespace cohort
