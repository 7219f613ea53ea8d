#include "cohort/train/device_setter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/core/error.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/register.h"
#include "cohort/ops/variables.h"
#include "cohort/train/optimizer.h"

namespace cohort::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const bool kRegistered = [] {
  RegisterOps();
  return true;
}();

constexpr char kPs0[] = "/job:ps/task:0";
constexpr char kPs1[] = "/job:ps/task:1";
constexpr char kWorker[] = "/job:worker";

ops::Variable Make(Graph& graph, const std::string& name, const Shape& shape = {1}) {
  return ops::GetVariable(graph, name, shape, DType::kFloat32, initializers::Zeros());
}

std::string DeviceOf(const ops::Variable& variable) { return variable.handle().node->device(); }

TEST(ReplicaDeviceSetterTest, SpreadsVariablesInTheOrderOfCreationAndKeepsTheRestOnTheWorker) {
  Graph graph;
  const DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 2}));
  const ops::Variable step = ops::GetOrCreateGlobalStep(graph);
  const ops::Variable a = Make(graph, "a");
  const ops::Variable b = Make(graph, "b");
  EXPECT_EQ(DeviceOf(step), kPs0);
  EXPECT_EQ(DeviceOf(a), kPs1);
  EXPECT_EQ(DeviceOf(b), kPs0);
  EXPECT_EQ(a.initial_value().node->device(), kWorker);
  EXPECT_EQ(ops::Const(graph, 1.0f).node->device(), kWorker);
  EXPECT_EQ(a.value().node->device(), kPs1);  // beside its handle
  EXPECT_EQ(a.initializer()->device(), kPs1);
}

TEST(ReplicaDeviceSetterTest, UpdatesAndSlotsFollowTheirVariableAndTakeNoTurn) {
  Graph graph;
  const DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 2}));
  const ops::Variable a = Make(graph, "a");
  const ops::Variable b = Make(graph, "b");
  MomentumOptimizer optimizer(0.1, 0.9);
  optimizer.ApplyGradients({{Gradient(ops::Const(graph, std::vector<float>{1})), a},
                            {Gradient(ops::Const(graph, std::vector<float>{1})), b}});
  EXPECT_EQ(DeviceOf(optimizer.slot(a, "momentum")), kPs0);
  EXPECT_EQ(DeviceOf(optimizer.slot(b, "momentum")), kPs1);
  for (const Node* node : graph.nodes()) {
    if (node->op_name() == "ResourceApplyMomentum") {
      EXPECT_EQ(node->device(), node->input(0).node->device());
    }
  }
  EXPECT_EQ(DeviceOf(Make(graph, "c")), kPs0);  // the third turn
}

TEST(ReplicaDeviceSetterTest, AnExplicitJobWinsAndTakesNoTurn) {
  Graph graph;
  const DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:3"}));
  {
    const DeviceScope inner(graph, "/job:worker/task:3");
    EXPECT_EQ(DeviceOf(Make(graph, "local")), "/job:worker/task:3");
  }
  EXPECT_EQ(DeviceOf(Make(graph, "a")), kPs0);
}

TEST(ReplicaDeviceSetterTest, OtherFieldsOfInnerScopesAreMerged) {
  Graph graph;
  const DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 2}));
  {
    const DeviceScope inner(graph, "/cpu:0");
    EXPECT_EQ(DeviceOf(Make(graph, "a")), "/job:ps/task:0/device:CPU:0");
    EXPECT_EQ(ops::Const(graph, 1.0f).node->device(), "/job:worker/device:CPU:0");
  }
  {
    // The same job: the turn is taken, then the scope's own task wins.
    const DeviceScope inner(graph, "/job:ps/task:0");
    EXPECT_EQ(DeviceOf(Make(graph, "b")), kPs0);
  }
  EXPECT_EQ(DeviceOf(Make(graph, "c")), kPs0);  // the third turn: 0, 1, 0
}

TEST(ReplicaDeviceSetterTest, WithoutMergingAnInnerDeviceStaysAsItIs) {
  Graph graph;
  const DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 2, .merge_devices = false}));
  {
    const DeviceScope inner(graph, "/cpu:0");
    EXPECT_EQ(DeviceOf(Make(graph, "a")), "/device:CPU:0");
  }
  EXPECT_EQ(DeviceOf(Make(graph, "b")), kPs0);
}

TEST(ReplicaDeviceSetterTest, CountsTheClustersParameterServers) {
  const ClusterSpec cluster({{"ps", {"h:1", "h:2", "h:3"}}, {"worker", {"h:4"}}});
  Graph graph;
  const DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 1, .cluster = cluster}));
  std::vector<std::string> devices;
  for (const char* name : {"a", "b", "c", "d"}) devices.push_back(DeviceOf(Make(graph, name)));
  EXPECT_THAT(devices, ElementsAre(kPs0, kPs1, "/job:ps/task:2", kPs0));
}

TEST(ReplicaDeviceSetterTest, DoesNothingWithoutParameterServers) {
  const ClusterSpec only_workers({{"worker", {"h:4"}}});
  for (const DeviceFunction& setter :
       {ReplicaDeviceSetter({.ps_tasks = 0}), ReplicaDeviceSetter({.cluster = only_workers}),
        ReplicaDeviceSetter({.ps_device = "/cpu:0", .cluster = only_workers})}) {
    Graph graph;
    const DeviceScope scope(graph, setter);
    EXPECT_EQ(DeviceOf(Make(graph, "a")), "");
  }
}

TEST(ReplicaDeviceSetterTest, OtherJobsAndOpsMayPlayTheParameterServer) {
  Graph graph;
  const DeviceScope scope(
      graph,
      ReplicaDeviceSetter(
          {.ps_tasks = 2, .ps_device = "/job:store/cpu:0", .worker_device = "/job:compute", .ps_ops = {"Const"}}));
  EXPECT_EQ(ops::Const(graph, 1.0f).node->device(), "/job:store/task:0/device:CPU:0");
  EXPECT_EQ(ops::Const(graph, 1.0f).node->device(), "/job:store/task:1/device:CPU:0");
  EXPECT_EQ(graph.Op("NoOp").Finish()->device(), "/job:compute");
}

TEST(GreedyLoadBalancingTest, PlacesOnTheLeastLoadedTaskAndTheFirstOfEquals) {
  Graph graph;
  const DeviceScope scope(
      graph, ReplicaDeviceSetter({.ps_tasks = 2, .ps_strategy = GreedyLoadBalancingStrategy(2, ByteSizeLoad)}));
  std::vector<std::string> devices;
  // Bytes:                          400      4      4    392       8 -> loads (400 | 400), then (408 | 400),
  // (408 | 404)
  for (const int64_t elements : {100, 1, 1, 98, 2, 1}) {
    devices.push_back(DeviceOf(Make(graph, "v" + std::to_string(devices.size()), Shape{elements})));
  }
  EXPECT_THAT(devices, ElementsAre(kPs0, kPs1, kPs1, kPs1, kPs0, kPs1));
}

NodeDraft Draft(DType dtype, const Shape& shape) {
  static const std::string op = "VarHandleOp", name = "v", device;
  return {op, name, device, dtype, shape};
}

TEST(GreedyLoadBalancingTest, ByteSizeIsElementsTimesDTypeSize) {
  EXPECT_EQ(ByteSizeLoad(Draft(DType::kFloat64, Shape{3, 4})), 96);
  EXPECT_EQ(ByteSizeLoad(Draft(DType::kBfloat16, Shape{})), 2);
  EXPECT_EQ(ByteSizeLoad(Draft(DType::kFloat32, Shape{0, 7})), 0);
  EXPECT_THROW(ByteSizeLoad(Draft(DType::kFloat32, Shape{-1, 7})), InvalidArgumentError);
}

TEST(ReplicaDeviceSetterTest, MistakesAreNamed) {
  EXPECT_THROW(ReplicaDeviceSetter({.ps_tasks = -1}), InvalidArgumentError);
  EXPECT_THROW(ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = "/jab:worker"}), InvalidArgumentError);
  EXPECT_THROW(RoundRobin(0), InvalidArgumentError);
  Graph graph;
  const DeviceScope scope(graph,
                          ReplicaDeviceSetter({.ps_tasks = 2, .ps_strategy = [](const NodeDraft&) { return 2; }}));
  try {
    Make(graph, "a");
    FAIL() << "no error";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("below 2"));
    EXPECT_THAT(e.what(), HasSubstr("'a'"));
  }
}

}  // namespace
}  // namespace cohort::train
