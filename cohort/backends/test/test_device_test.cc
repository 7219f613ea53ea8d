#include "cohort/backends/test/test_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace cohort {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLong{60};

std::vector<std::unique_ptr<Device>> OneDevice(const std::shared_ptr<TaskResources>& task, int delay_us = 1000) {
  return MakeTestDevices(DeviceName::Parse("/job:worker/task:0"), 1, task, microseconds(delay_us));
}

TEST(TestDeviceDeathTest, TheHostCannotReadItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Tensor value(DType::kFloat32, Shape{4}, TestDeviceAllocator());
  EXPECT_EQ(value.space(), MemorySpace::kTestDevice);
  EXPECT_DEATH({ std::printf("%f", static_cast<double>(*value.data<float>())); }, "");
  EXPECT_EXIT(
      {
        HostViewOfTestDevice(value).data<float>()[0] = 1;
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(TestDeviceTest, CopiesBothWays) {
  const auto devices = OneDevice(std::make_shared<TaskResources>());
  Device& device = *devices[0];
  EXPECT_EQ(device.name(), "/job:worker/replica:0/task:0/device:TEST:0");
  EXPECT_EQ(device.type(), "TEST");
  const Tensor value = Tensor::Vector<float>({1, 2, 3});
  const Tensor there = device.CopyFromHost(value);
  EXPECT_EQ(there.space(), MemorySpace::kTestDevice);
  EXPECT_TRUE(there.OwnsBufferAlone());
  const Tensor back = device.CopyToHost(there);
  EXPECT_EQ(back.space(), MemorySpace::kHost);
  EXPECT_NE(back.raw_data(), value.raw_data());
  EXPECT_THAT(back.ToVector<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(device.CopyToHost(there.Slice(1, 3)).ToVector<float>(), ElementsAre(2, 3));
  EXPECT_EQ(device.CopyFromHost(Tensor::Zeros(DType::kFloat32, Shape{0})).shape(), (Shape{0}));
}

TEST(TestDeviceTest, ObjectsStayInHostMemory) {
  const auto devices = OneDevice(std::make_shared<TaskResources>());
  const Tensor text = Tensor::Scalar("text");
  EXPECT_EQ(devices[0]->CopyFromHost(text).scalar<std::string>(), "text");
  EXPECT_EQ(devices[0]->CopyToHost(text).scalar<std::string>(), "text");
}

TEST(TestDeviceTest, ViewsTellWhetherTheBytesAreShared) {
  Tensor host = Tensor::Vector<float>({1, 2});
  Tensor there = TestDeviceViewOfHost(host);
  EXPECT_FALSE(host.OwnsBufferAlone());
  Tensor again = HostViewOfTestDevice(there.Slice(1, 2));
  EXPECT_EQ(again.data<float>(), host.data<float>() + 1);
  there.Reset();
  EXPECT_FALSE(host.OwnsBufferAlone());
  again.Reset();
  EXPECT_TRUE(host.OwnsBufferAlone());
}

TEST(TestDeviceTest, TheStreamKeepsItsOrderAndIsEmptiedAtTheEnd) {
  std::vector<int> order;
  {
    const auto devices = OneDevice(std::make_shared<TaskResources>());
    for (int i = 0; i < 5; ++i) {
      static_cast<TestDevice&>(*devices[0]).Enqueue([&order, i] { order.push_back(i); });
    }
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

// Kernels on the stream, run by hand.
class TestDeviceKernelTest : public ::testing::Test {
 protected:
  TestDeviceKernelTest() : task_(std::make_shared<TaskResources>()), devices_(OneDevice(task_)) {
    OpRegistry& ops = OpRegistry::Global();
    if (ops.Find("TestDeviceSource") == nullptr) {
      const auto unknown = [](ShapeContext&) { return std::vector<Shape>{Shape::UnknownRank()}; };
      const auto nothing = [](ShapeContext&) { return std::vector<Shape>{}; };
      const auto two = [](ShapeContext&) { return std::vector<Shape>{Shape::UnknownRank(), Shape{-1}}; };
      ops.Register(OpDef("TestDeviceSource").Output("x: float32").ShapeRule(unknown));
      ops.Register(
          OpDef("TestDeviceDouble").Input("x: float32").Output("y: float32").HostOutput("shape: int64").ShapeRule(two));
      ops.Register(OpDef("TestDeviceAssign").Input("x: float32").ShapeRule(nothing));
      ops.Register(OpDef("TestDeviceRead").Output("x: float32").ShapeRule(unknown));
    }
    registry_.RegisterFn("TestDeviceDouble", "CPU", [](KernelContext& ctx) {
      const Tensor& x = ctx.input(0);
      if (x.num_elements() == 0) throw InvalidArgumentError("nothing to double");
      Tensor& y = ctx.ForwardInputOrAllocate(0, 0, x.shape());
      for (int64_t i = 0; i < x.num_elements(); ++i) y.data<float>()[i] = 2 * x.data<float>()[i];
      ctx.AllocateOutput(1, Shape{1}).data<int64_t>()[0] = x.num_elements();
    });
    registry_.RegisterFn("TestDeviceAssign", "CPU", [](KernelContext& ctx) { VariableOf(ctx)->Assign(ctx.input(0)); });
    registry_.RegisterFn("TestDeviceRead", "CPU",
                         [](KernelContext& ctx) { ctx.SetOutput(0, VariableOf(ctx)->Read()); });
    registry_.RegisterFn("TestDeviceOwn", "CPU", [](KernelContext&) {});
    registry_.RegisterFn("TestDeviceOwn", "TEST", [](KernelContext& ctx) { ctx.SetOutput(0, Tensor()); });
    RegisterTestDeviceKernels(registry_);
    source_ = graph_.Op("TestDeviceSource").Finish1();
  }

  static std::shared_ptr<Variable> VariableOf(KernelContext& ctx) {
    return ctx.device().resources().LookupOrCreate<Variable>(
        "", "v", [] { return std::make_shared<Variable>("v", DType::kFloat32, Shape{-1}); });
  }

  // Runs the kernel and waits for it.
  std::vector<Tensor> Run(const std::string& op, const std::vector<Tensor>& inputs) {
    NodeBuilder builder = graph_.Op(op);
    for (size_t i = 0; i < inputs.size(); ++i) builder.Input(source_);
    const Node* node = builder.Finish();
    const std::unique_ptr<OpKernel> kernel = registry_.Create({*node, *devices_[0]});
    std::vector<Tensor> slots = inputs;
    slots.resize(inputs.size() + static_cast<size_t>(node->num_outputs()));
    std::vector<int32_t> input_slots(inputs.size(), 0);
    std::vector<int32_t> uses(slots.size(), 1);
    const StepInfo step;
    KernelContext ctx(*node, *devices_[0], step, slots.data(), input_slots, slots.data() + inputs.size(), uses.data());
    std::promise<Status> ended;
    std::future<Status> end = ended.get_future();
    kernel->AsAsync()->ComputeAsync(ctx, [&](const Status& status) { ended.set_value(status); });
    if (end.wait_for(kLong) != std::future_status::ready) throw DeadlineExceededError("the kernel did not end");
    end.get().ThrowIfError();
    return {slots.begin() + static_cast<std::ptrdiff_t>(inputs.size()), slots.end()};
  }
  Device& device() { return *devices_[0]; }

  std::shared_ptr<TaskResources> task_;
  KernelRegistry registry_;
  Graph graph_;
  Output source_;
  std::vector<std::unique_ptr<Device>> devices_;
};

TEST_F(TestDeviceKernelTest, ComputesInItsOwnMemory) {
  const Tensor x = device().CopyFromHost(Tensor::Vector<float>({1, 2, 3}));
  const std::vector<Tensor> outputs = Run("TestDeviceDouble", {x});
  EXPECT_EQ(outputs[0].space(), MemorySpace::kTestDevice);
  EXPECT_THAT(device().CopyToHost(outputs[0]).ToVector<float>(), ElementsAre(2, 4, 6));
  EXPECT_THAT(device().CopyToHost(x).ToVector<float>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(outputs[1].space(), MemorySpace::kHost);  // an output that the op declares as host memory
  EXPECT_THAT(outputs[1].ToVector<int64_t>(), ElementsAre(3));
}

TEST_F(TestDeviceKernelTest, FailuresReachTheCaller) {
  try {
    Run("TestDeviceDouble", {device().CopyFromHost(Tensor::Vector<float>({}))});
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("nothing to double"));
  }
}

TEST_F(TestDeviceKernelTest, VariablesOfTheDeviceAreTheTasksAndStayWhole) {
  const Tensor x = device().CopyFromHost(Tensor::Vector<float>({1, 2}));
  Run("TestDeviceAssign", {x});
  const Tensor read = Run("TestDeviceRead", {})[0];
  EXPECT_EQ(read.space(), MemorySpace::kTestDevice);
  const auto variable = std::dynamic_pointer_cast<Variable>(task_->resources.Lookup("", "v"));
  ASSERT_NE(variable, nullptr);
  variable->Update([](const Tensor& old, Tensor& out) {
    for (int64_t i = 0; i < old.num_elements(); ++i) out.data<float>()[i] = old.data<float>()[i] + 10;
  });
  EXPECT_THAT(device().CopyToHost(read).ToVector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(device().CopyToHost(x).ToVector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(device().CopyToHost(Run("TestDeviceRead", {})[0]).ToVector<float>(), ElementsAre(11, 12));
}

TEST_F(TestDeviceKernelTest, ExistingKernelsAreLeftAlone) {
  EXPECT_EQ(registry_.OpsOn("TEST").size(), 4u);
  RegisterTestDeviceKernels(registry_);  // a second time changes nothing
  EXPECT_EQ(registry_.OpsOn("TEST").size(), 4u);
}

TEST_F(TestDeviceKernelTest, AnInputInTheWrongMemoryIsRefused) {
  try {
    Run("TestDeviceDouble", {Tensor::Vector<float>({1, 2})});
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_THAT(e.what(), HasSubstr("input 0"));
    EXPECT_THAT(e.what(), HasSubstr("device memory; got it in host"));
  }
}

}  // namespace
}  // namespace cohort
