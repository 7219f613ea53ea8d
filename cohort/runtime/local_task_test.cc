#include "cohort/runtime/local_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LocalTaskTest, RegistersNothingAfterItHasEnded) {
  const std::string name = "/job:worker/replica:0/task:1";
  LocalTask task({name, 1}, std::make_shared<DeviceSet>(std::vector<std::unique_ptr<Device>>()),
                 std::make_shared<TaskResources>());
  ExecutableSpec spec;
  spec.key = {7, 1};
  task.Register(std::move(spec));
  EXPECT_EQ(task.num_executables(), 1u);
  task.CloseAll(Status(Code::kCancelled, "the server stops"));
  EXPECT_EQ(task.num_executables(), 0u);
  ExecutableSpec late;
  late.key = {7, 2};
  EXPECT_THAT(MessageOf<UnavailableError>([&] { task.Register(std::move(late)); }),
              AllOf(HasSubstr(name), HasSubstr("the server stops")));
  EXPECT_EQ(task.num_executables(), 0u);
}

// A kernel that counts how many of its kind exist.
class CountedKernel final : public OpKernel {
 public:
  static inline std::atomic<int> alive{0};
  explicit CountedKernel(const KernelConstruction&) { ++alive; }
  ~CountedKernel() override { --alive; }
  CountedKernel(const CountedKernel&) = delete;
  CountedKernel& operator=(const CountedKernel&) = delete;
  void Compute(KernelContext& ctx) override { ctx.SetOutput(0, Tensor::Scalar(1.0f)); }
};

const bool kCountedRegistered = [] {
  testing::RegisterForDeviceKinds();
  OpRegistry::Global().Register(OpDef("LocalTaskCounted").Output("y: float32").ShapeRule([](ShapeContext&) {
    return std::vector<Shape>{Shape{}};
  }));
  KernelRegistry::Global().Register<CountedKernel>("LocalTaskCounted", "CPU");
  return true;
}();

// A caller that still holds an executable when its task is closed must not free kernels later: the devices may be gone.
TEST(LocalTaskTest, ClosingFreesTheKernelsOfAnExecutableThatSomebodyHolds) {
  ASSERT_TRUE(kCountedRegistered);
  const auto resources = std::make_shared<TaskResources>();
  auto devices = std::make_shared<DeviceSet>(BackendRegistry::Global().MakeDevices(
      DeviceName::Parse("/job:localhost/replica:0/task:0"), {{"CPU", 1}}, 1, resources, "test"));
  const std::string device = devices->devices().front()->name();
  auto task =
      std::make_unique<LocalTask>(ClientId{"/job:localhost/replica:0/task:0", 1}, std::move(devices), resources);
  ExecutableSpec spec;
  spec.key = {7, 1};
  spec.tasks = {"/job:localhost/replica:0/task:0"};
  auto graph = std::make_unique<Graph>();
  (void)graph->Op("LocalTaskCounted").Device(device).Finish1();
  spec.partitions.push_back({device, std::move(graph)});
  task->Register(std::move(spec));
  const std::shared_ptr<Executable> held = task->FindInline({7, 1}).lock();
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(CountedKernel::alive, 1);
  task.reset();
  EXPECT_EQ(CountedKernel::alive, 0);
  EXPECT_THROW(held->RunInline(1, [](std::vector<Tensor>&) {}), CancelledError);
}

}  // namespace
}  // namespace cohort
