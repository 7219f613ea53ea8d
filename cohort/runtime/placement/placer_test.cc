#include "cohort/runtime/placement/placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/runtime/placement/colocation.h"
#include "cohort/runtime/testing/device_kinds.h"
#include "cohort/runtime/testing/graph_ops.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PlacerTest : public ::testing::Test {
 protected:
  PlacerTest() {
    RegisterGraphTestOps();
    for (const char* name : {"/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0",
                             "/job:worker/replica:0/task:0/device:CPU:1", "/job:worker/replica:0/task:0/device:CPU:0",
                             "/job:worker/replica:0/task:0/device:TEST:0", "/job:worker/replica:0/task:10/device:CPU:0",
                             "/job:worker/replica:0/task:2/device:CPU:0"}) {
      DeviceAttributes device;
      device.name = DeviceName::Parse(name);
      device.type = *device.name.type;
      devices_.push_back(device);
    }
    options_.default_task = DeviceName::Parse("/job:worker/replica:0/task:0");
  }
  ~PlacerTest() override { TestBackend::Get().set_takes_unplaced_nodes(false); }

  // In the short form job:task:TYPE:id.
  std::string DeviceOf(const Node* node) {
    const DeviceName name = Place(graph_, devices_, options_).at(static_cast<size_t>(node->id()))->name;
    return StrCat(*name.job, ":", *name.task, ":", *name.type, ":", *name.id);
  }
  std::string Failure() {
    return MessageOf<InvalidArgumentError>([&] { Place(graph_, devices_, options_); });
  }

  Graph graph_;
  std::vector<DeviceAttributes> devices_;
  PlacementOptions options_;
};

TEST_F(PlacerTest, WithoutARequestTheDefaultTasksFirstCpuIsTaken) {
  Node* a = TestNode(graph_, "a", {});
  Node* b = TestNode(graph_, "b", {a->output(0), a->output(0)});
  EXPECT_EQ(DeviceOf(a), "worker:0:CPU:0");
  EXPECT_EQ(DeviceOf(b), "worker:0:CPU:0");
  options_.default_task = DeviceName::Parse("/job:ps/task:1");
  EXPECT_EQ(DeviceOf(a), "ps:1:CPU:0");
}

// A type of device whose backend takes nodes that ask for none, if it has a kernel for them.
TEST_F(PlacerTest, UnplacedNodesGoToABackendThatTakesThem) {
  Node* both = TestNode(graph_, "both", {});
  if (OpRegistry::Global().Find("PlacerHostOnly") == nullptr) {
    OpRegistry::Global().Register(OpDef("PlacerHostOnly").Output("out: float32").ShapeRule(TestShape));
    KernelRegistry::Global().RegisterFn("PlacerHostOnly", "CPU", [](KernelContext&) {});
  }
  Node* host_only = graph_.Op("PlacerHostOnly").Finish();
  Node* cpu = TestNode(graph_, "cpu", {}, "/device:CPU:1");
  Node* ps = TestNode(graph_, "ps", {}, "/job:ps");
  EXPECT_EQ(DeviceOf(both), "worker:0:CPU:0");
  TestBackend::Get().set_takes_unplaced_nodes(true);
  EXPECT_EQ(DeviceOf(both), "worker:0:TEST:0");
  EXPECT_EQ(DeviceOf(host_only), "worker:0:CPU:0");
  EXPECT_EQ(DeviceOf(cpu), "worker:0:CPU:1");
  EXPECT_EQ(DeviceOf(ps), "ps:0:CPU:0");
}

TEST_F(PlacerTest, PartialRequestsAreCompleted) {
  Node* ps = TestNode(graph_, "ps", {}, "/job:ps");
  Node* task = TestNode(graph_, "task", {}, "/job:ps/task:1");
  Node* cpu1 = TestNode(graph_, "cpu1", {}, "/cpu:1");
  Node* test = TestNode(graph_, "test", {}, "/device:TEST:*");
  Node* worker = TestNode(graph_, "worker", {}, "/job:worker");
  EXPECT_EQ(DeviceOf(ps), "ps:0:CPU:0");
  EXPECT_EQ(DeviceOf(task), "ps:1:CPU:0");
  EXPECT_EQ(DeviceOf(cpu1), "worker:0:CPU:1");
  EXPECT_EQ(DeviceOf(test), "worker:0:TEST:0");
  EXPECT_EQ(DeviceOf(worker), "worker:0:CPU:0");
  options_.default_task = DeviceName::Parse("/job:ps/task:0");
  EXPECT_EQ(DeviceOf(worker), "worker:0:CPU:0");  // the lowest task, by number: 0, 2, 10
  devices_.erase(devices_.begin() + 2, devices_.begin() + 5);
  graph_.FindNode("cpu1")->set_device("");
  graph_.FindNode("test")->set_device("");
  EXPECT_EQ(DeviceOf(worker), "worker:2:CPU:0");
}

TEST_F(PlacerTest, AVariableStandsWithItsUsersThroughIdentityToo) {
  Node* handle = TestHandle(graph_, "v", "/job:ps/task:1");
  Node* same = graph_.Op("Identity").Name("same").Input(handle->output(0)).Finish();
  Node* read = graph_.Op("TestRead").Name("read").Input(same->output(0)).Finish();
  Node* value = TestNode(graph_, "value", {read->output(0)});
  Node* update = TestUpdate(graph_, "update", handle, value->output(0), "/job:ps");
  for (Node* node : {handle, same, read, update}) EXPECT_EQ(DeviceOf(node), "ps:1:CPU:0") << node->name();
  EXPECT_EQ(DeviceOf(value), "worker:0:CPU:0");
}

TEST_F(PlacerTest, ColocationIsTransitiveAndTakesEveryonesFields) {
  Node* a = TestNode(graph_, "a", {}, "/job:ps");
  Node* b = graph_.Op("TestOp").Name("b").Inputs({}).Colocate("a").Finish();
  Node* c = graph_.Op("TestOp").Name("c").Inputs({}).Device("/task:1").Colocate("b").IgnoreScopes().Finish();
  Node* x = graph_.Op("TestOp").Name("x").Inputs({}).Device("/cpu:1").Colocate("absent").IgnoreScopes().Finish();
  Node* y = graph_.Op("TestOp").Name("y").Inputs({}).Colocate("absent").IgnoreScopes().Finish();
  for (Node* node : {a, b, c}) EXPECT_EQ(DeviceOf(node), "ps:1:CPU:0") << node->name();
  EXPECT_EQ(DeviceOf(x), "worker:0:CPU:1");
  EXPECT_EQ(DeviceOf(y), "worker:0:CPU:1");
  EXPECT_THAT(ColocatedRequests(graph_),
              ElementsAre("/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1", "/device:CPU:1", "/device:CPU:1"));
}

TEST_F(PlacerTest, GeneratorsFollowTheirConsumers) {
  Node* constant = TestConst(graph_, "constant");
  Node* bound = TestConst(graph_, "bound", "/job:worker");
  Node* shared = TestConst(graph_, "shared");
  Node* a = TestNode(graph_, "a", {constant->output(0), bound->output(0), shared->output(0)}, "/job:ps/task:1");
  Node* b = TestNode(graph_, "b", {constant->output(0)}, "/job:ps/task:1");
  TestNode(graph_, "c", {shared->output(0), a->output(0), b->output(0)}, "/job:ps/task:0");
  EXPECT_EQ(DeviceOf(constant), "ps:1:CPU:0");
  EXPECT_EQ(DeviceOf(bound), "worker:0:CPU:0");
  EXPECT_EQ(DeviceOf(shared), "worker:0:CPU:0");
}

TEST_F(PlacerTest, MetadataStandsWithItsProducer) {
  Node* source = TestConst(graph_, "source");
  Node* big = TestNode(graph_, "big", {source->output(0)}, "/job:ps/task:1");
  Node* shape = graph_.Op("Shape").Name("shape").Input(big->output(0)).Finish();
  Node* elsewhere = graph_.Op("Shape").Name("elsewhere").Input(big->output(0)).Device("/cpu:1").Finish();
  Node* of_source = graph_.Op("Shape").Name("of_source").Input(source->output(0)).Finish();
  EXPECT_EQ(DeviceOf(shape), "ps:1:CPU:0");
  EXPECT_EQ(DeviceOf(elsewhere), "worker:0:CPU:1");
  EXPECT_EQ(DeviceOf(of_source), "worker:0:CPU:0");
}

TEST_F(PlacerTest, AnAbsentDeviceIsAnErrorThatListsWhatThereIs) {
  TestNode(graph_, "dense/MatMul", {}, "/job:ps/task:7");
  EXPECT_THAT(Failure(),
              AllOf(HasSubstr("Cannot assign a device for operation dense/MatMul (op TestOp): Operation was explicitly "
                              "assigned to /job:ps/task:7 but available devices are [ /job:worker/replica:0/task:0/"
                              "device:CPU:0, /job:worker/replica:0/task:0/device:CPU:1, "),
                    HasSubstr("/job:ps/replica:0/task:1/device:CPU:0"),
                    HasSubstr("Make sure the device specification refers to a valid device.")));
  options_.allow_soft_placement = true;  // frees type and number, not the task
  EXPECT_THAT(Failure(), HasSubstr("explicitly assigned to /job:ps/task:7"));
}

TEST_F(PlacerTest, SoftPlacementStaysInTheTask) {
  Node* gpu = TestNode(graph_, "gpu", {TestConst(graph_, "x")->output(0)}, "/job:ps/task:1/device:GPU:3");
  Node* no_kernel = graph_.Op("TestRead")
                        .Name("no_kernel")
                        .Input(TestHandle(graph_, "v")->output(0))
                        .Device("/device:TEST:0")
                        .Finish();
  EXPECT_THAT(Failure(), HasSubstr("explicitly assigned to /job:ps/task:1/device:GPU:3 but"));
  gpu->set_device("");
  EXPECT_THAT(Failure(), AllOf(HasSubstr("no device has a kernel for op TestHandle"), HasSubstr("'/device:TEST:0'"),
                               HasSubstr("types with a kernel for it: [CPU]")));
  gpu->set_device("/job:ps/task:1/device:GPU:3");
  options_.allow_soft_placement = true;
  EXPECT_EQ(DeviceOf(gpu), "ps:1:CPU:0");
  EXPECT_EQ(DeviceOf(no_kernel), "worker:0:CPU:0");
}

TEST_F(PlacerTest, AnOpWithoutKernelIsNamed) {
  Node* node = graph_.Op("TestOnlyOp").Name("special").Finish();
  EXPECT_THAT(Failure(), AllOf(HasSubstr("special (op TestOnlyOp)"), HasSubstr("[TEST]")));
  node->set_device("/device:TEST:0");
  EXPECT_EQ(DeviceOf(node), "worker:0:TEST:0");
  devices_.clear();
  EXPECT_THAT(Failure(), HasSubstr("available devices are [ ]"));
}

TEST_F(PlacerTest, GroupsThatCannotComeTogetherNameTwoNodes) {
  Node* handle = TestHandle(graph_, "v", "/job:ps/task:0");
  Node* value = TestNode(graph_, "value", {});
  Node* update = TestUpdate(graph_, "update", handle, value->output(0), "/job:ps/task:1");
  EXPECT_THAT(Failure(), AllOf(HasSubstr("'v' (op TestHandle, requested device '/job:ps/task:0')"),
                               HasSubstr("'update' (op TestUpdate, requested device '/job:ps/task:1')"),
                               HasSubstr("different device tasks")));
  handle->set_device("/job:worker/task:0/cpu:0");
  update->set_device("/cpu:1");
  EXPECT_THAT(Failure(), HasSubstr("different device numbers"));
  options_.allow_soft_placement = true;
  EXPECT_EQ(DeviceOf(update), "worker:0:CPU:0");
  update->set_device("/device:TEST:1");
  EXPECT_EQ(DeviceOf(handle), "worker:0:CPU:0");
  update->set_device("/job:ps");
  EXPECT_THAT(Failure(), HasSubstr("different device jobs"));
}

TEST_F(PlacerTest, TheLogHasOneLineANode) {
  TestNode(graph_, "MatMul", {}, "/job:ps/task:1");
  graph_.Op("NoOp").Name("init").Finish();
  EXPECT_EQ(PlacementLog(graph_, Place(graph_, devices_, options_)),
            "MatMul: (TestOp): /job:ps/replica:0/task:1/device:CPU:0\n"
            "init: (NoOp): /job:worker/replica:0/task:0/device:CPU:0\n");
}

}  // namespace
}  // namespace cohort
