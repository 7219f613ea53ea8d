// The TEST device by hand: copies, and kernels that enqueue their work.
#include "cohort/backends/test/test_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "cohort/backends/cpu/cpu_variable.h"
#include "cohort/backends/test/test_kernels.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLong{60};

std::unique_ptr<TestDevice> MakeDevice(const std::shared_ptr<TaskResources>& task, int id = 0,
                                       const TestDelays& delays = {}) {
  return std::make_unique<TestDevice>(AttributesOf(DeviceName::Parse("/job:worker/task:0"), "TEST", id), task, delays);
}

// Holds the compute stream of a device until it is destroyed or let go.
class Hold {
 public:
  explicit Hold(TestDevice& device) {
    device.compute_stream()->Enqueue([opened = open_.get_future().share()] { opened.wait(); });
  }
  ~Hold() { LetGo(); }
  void LetGo() {
    if (!std::exchange(let_go_, true)) open_.set_value();
  }

 private:
  std::promise<void> open_;
  bool let_go_ = false;
};

TEST(TestDeviceTest, CopiesBothWays) {
  const auto device = MakeDevice(std::make_shared<TaskResources>());
  EXPECT_EQ(device->name(), "/job:worker/replica:0/task:0/device:TEST:0");
  const Tensor value = Tensor::Vector<float>({1, 2, 3});
  const Tensor there = device->CopyFromHost(value);
  EXPECT_EQ(there.space(), device->allocator().space());
  EXPECT_TRUE(there.OwnsBufferAlone());
  const Tensor back = device->CopyToHost(there);
  EXPECT_TRUE(back.space().is_host());
  EXPECT_NE(back.raw_data(), value.raw_data());
  EXPECT_THAT(back.ToVector<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(device->CopyToHost(there.Slice(1, 3)).ToVector<float>(), ElementsAre(2, 3));
  EXPECT_EQ(device->CopyToHost(device->CopyFromHost(Tensor::Zeros(DType::kFloat32, Shape{0}))).shape(), (Shape{0}));
  const Tensor text = Tensor::Scalar("text");
  EXPECT_EQ(device->CopyFromHost(text).scalar<std::string>(), "text");
}

TEST(TestDeviceTest, TwoDevicesHaveDifferentMemories) {
  const auto task = std::make_shared<TaskResources>();
  const auto first = MakeDevice(task, 0);
  const auto second = MakeDevice(task, 1);
  const Tensor value = first->CopyFromHost(Tensor::Scalar(1.0f));
  EXPECT_FALSE(first->allocator().space() == second->allocator().space());
  EXPECT_THAT(MessageOf<InternalError>([&] { second->CopyToHost(value); }), HasSubstr(value.space().ToString()));
}

TEST(TestDeviceTest, AsynchronousCopiesStandBehindTheWorkOfTheComputeStream) {
  const auto device = MakeDevice(std::make_shared<TaskResources>());
  Hold hold(*device);
  Tensor there = device->CopyFromHostAsync(Tensor::Vector<float>({1, 2}));
  std::promise<Tensor> copied;
  std::atomic<bool> on_host_thread{false};
  device->CopyToHostAsync(there, [&](const Status& status, Tensor copy) {
    EXPECT_TRUE(status.ok());
    on_host_thread = device->compute_thread().IsOwnThread();
    copied.set_value(std::move(copy));
  });
  there.Reset();  // the copy keeps what it reads
  auto copy = copied.get_future();
  EXPECT_EQ(copy.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  hold.LetGo();
  ASSERT_EQ(copy.wait_for(kLong), std::future_status::ready);
  EXPECT_THAT(copy.get().ToVector<float>(), ElementsAre(1, 2));
  EXPECT_TRUE(on_host_thread);
}

TEST(TestDeviceTest, AllMemoryComesBack) {
  const auto device = MakeDevice(std::make_shared<TaskResources>());
  {
    const Tensor there = device->CopyFromHost(Tensor::Vector<float>({1, 2}));
    EXPECT_GT(device->memory().bytes_in_use(), 0u);
  }
  EXPECT_EQ(device->memory().bytes_in_use(), 0u);
}

// Kernels on the stream, run by hand.
class TestKernelTest : public ::testing::Test {
 protected:
  TestKernelTest() : task_(std::make_shared<TaskResources>()), device_(MakeDevice(task_)) {
    OpRegistry& ops = OpRegistry::Global();
    if (ops.Find("TestKernelDouble") == nullptr) {
      const auto same = [](ShapeContext& c) { return std::vector<Shape>{c.input(0)}; };
      const auto unknown = [](ShapeContext&) { return std::vector<Shape>{Shape::UnknownRank()}; };
      const auto handle = [](ShapeContext&) { return std::vector<Shape>{Shape()}; };
      const auto nothing = [](ShapeContext&) { return std::vector<Shape>{}; };
      ops.Register(OpDef("TestKernelSource").Output("x: float32").ShapeRule(unknown));
      ops.Register(OpDef("TestKernelHandle").Output("x: resource").ShapeRule(handle));
      ops.Register(OpDef("TestKernelDouble").Input("x: float32").Output("y: float32").ShapeRule(same));
      ops.Register(OpDef("TestKernelForgetful").Input("x: float32").Output("y: float32").ShapeRule(unknown));
      ops.Register(
          OpDef("TestKernelHalf").Input("x: float32").Output("y: float32").ShapeRule(unknown).DataDependentShape());
      ops.Register(OpDef("TestKernelLiar").Input("x: float32").Output("y: float32").ShapeRule(same));
      ops.Register(OpDef("TestKernelSum").Input("x: float32").HostOutput("y: float32").ShapeRule(handle));
      ops.Register(OpDef("TestKernelAdd")
                       .Input("v: resource")
                       .Input("x: float32")
                       .ShapeRule(nothing)
                       .Stateful()
                       .UpdatesVariable());
    }
    const auto doubled = [](KernelContext& ctx) {
      const Tensor& x = ctx.input(0);
      if (x.num_elements() > 0 && x.data<float>()[0] < 0) throw InvalidArgumentError("expected no negative number");
      Tensor& y = ctx.ForwardInputOrAllocate(0, 0, x.shape());
      for (int64_t i = 0; i < x.num_elements(); ++i) y.data<float>()[i] = 2 * x.data<float>()[i];
    };
    const auto half = [](KernelContext& ctx) {
      const Tensor& x = ctx.input(0);
      Tensor& y = ctx.AllocateOutput(0, Shape{x.num_elements() / 2});
      std::copy_n(x.data<float>(), y.num_elements(), y.data<float>());
    };
    registry_.RegisterFn("TestKernelDouble", "CPU", doubled);
    registry_.RegisterFn("TestKernelForgetful", "CPU", doubled);
    registry_.RegisterFn("TestKernelHalf", "CPU", half);
    registry_.RegisterFn("TestKernelLiar", "CPU", half);
    registry_.RegisterFn("TestKernelSum", "CPU", [](KernelContext& ctx) {
      float sum = 0;
      for (const float x : ctx.input(0).values<float>()) sum += x;
      ctx.SetOutput(0, Tensor::Scalar(sum));
    });
    registry_.RegisterFn("TestKernelAdd", "CPU", [](KernelContext& ctx) {
      const Tensor& x = ctx.input(1);
      ResourceOf<CpuVariable>(ctx.input(0)).Update([&](const Tensor& old, Tensor& out) {
        if (old.shape() != x.shape()) throw InvalidArgumentError("another shape");
        for (int64_t i = 0; i < x.num_elements(); ++i) out.data<float>()[i] = old.data<float>()[i] + x.data<float>()[i];
      });
    });
    RegisterTestKernels(registry_);
  }

  Tensor OnDevice(const std::vector<float>& values) { return device_->CopyFromHost(Tensor::Vector(values)); }
  std::vector<float> OnHost(const Tensor& value) { return device_->CopyToHost(value).ToVector<float>(); }

  // Calls the kernel of an op, which is made once and lives as long as the test; returns its first output if it has
  // one.
  Tensor Call(const std::string& op, const std::vector<Tensor>& inputs) {
    NodeBuilder builder = graph_.Op(op);
    for (const Tensor& input : inputs) {
      builder.Input(graph_.Op(input.dtype() == DType::kResource ? "TestKernelHandle" : "TestKernelSource").Finish1());
    }
    const Node* node = builder.Finish();
    kernels_.push_back(registry_.Create({*node, *device_}));
    std::vector<Tensor> slots = inputs;
    slots.resize(inputs.size() + static_cast<size_t>(node->num_outputs()) + 1);
    std::vector<int32_t> input_slots;
    for (size_t i = 0; i < inputs.size(); ++i) input_slots.push_back(static_cast<int32_t>(i));
    std::vector<int32_t> uses(slots.size(), 1);
    StepInfo step;
    step.error = &error_;
    step.cancellation = &cancellation_;
    KernelContext ctx(*node, *device_, step, slots.data(), input_slots, slots.data() + inputs.size(), uses.data());
    kernels_.back()->Compute(ctx);
    return slots[inputs.size()];
  }
  std::shared_ptr<VariableResource> MakeVariable(const std::vector<float>& values) {
    auto variable = std::make_shared<VariableResource>("v", DType::kFloat32, Shape{-1}, device_->allocator());
    variable->Assign(OnDevice(values));
    return variable;
  }

  std::shared_ptr<TaskResources> task_;
  StepError error_;
  CancellationManager cancellation_;
  KernelRegistry registry_;
  Graph graph_;
  std::vector<std::unique_ptr<OpKernel>> kernels_;
  std::unique_ptr<TestDevice> device_;
};

TEST_F(TestKernelTest, EnqueuesAndReturns) {
  Tensor x = OnDevice({1, 2, 3});
  Hold hold(*device_);
  Tensor y = Call("TestKernelDouble", {x});
  x.Reset();  // freed, and perhaps reused, in the order of the stream
  const Tensor other(DType::kFloat32, Shape{3}, device_->allocator());
  const Tensor z = Call("TestKernelDouble", {y});
  y.Reset();
  EXPECT_EQ(z.shape(), (Shape{3}));
  hold.LetGo();
  EXPECT_THAT(OnHost(z), ElementsAre(4, 8, 12));
  EXPECT_FALSE(error_.set());
}

TEST_F(TestKernelTest, BadDataBecomesTheErrorOfTheStepAndLaterWorkIsSkipped) {
  const auto variable = MakeVariable({1, 1});
  const Tensor handle = MakeResourceHandle(variable);
  const Tensor bad = Call("TestKernelDouble", {OnDevice({-1, 1})});  // returns: the data is not looked at yet
  const Tensor reader = variable->Read();                            // so the update needs a second buffer
  Call("TestKernelAdd", {handle, bad});
  Call("TestKernelAdd", {handle, OnDevice({5, 5})});
  EXPECT_THAT(OnHost(variable->Read()), ElementsAre(1, 1));
  ASSERT_TRUE(error_.set());
  EXPECT_EQ(error_.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(error_.status().message(), HasSubstr("expected no negative number"));
  EXPECT_THAT(error_.status().message(), HasSubstr("TestKernelDouble node"));
  EXPECT_THAT(error_.status().message(), HasSubstr("inputs: float32[2]"));
}

// What is enqueued for a step that was cancelled meanwhile does nothing...
TEST_F(TestKernelTest, WorkOfACancelledStepIsSkipped) {
  const auto variable = MakeVariable({1, 1});
  const Tensor handle = MakeResourceHandle(variable);
  const Tensor x = OnDevice({1, 2});
  Hold hold(*device_);
  Call("TestKernelDouble", {x});
  Call("TestKernelAdd", {handle, x});
  cancellation_.Cancel(Status(Code::kDeadlineExceeded, "too late"));
  Call("TestKernelAdd", {handle, x});
  hold.LetGo();
  EXPECT_THAT(OnHost(variable->Read()), ElementsAre(1, 1));
  EXPECT_EQ(error_.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(error_.status().message(), "too late");
  EXPECT_EQ(error_.updates_applied(), 0);
}

// ...unless the step has changed a variable: then all of its updates are made.
TEST_F(TestKernelTest, UpdatesThatHaveBegunAreMadeInACancelledStep) {
  const auto a = MakeVariable({1, 1});
  const auto b = MakeVariable({1, 1});
  const Tensor x = OnDevice({1, 2});
  Call("TestKernelAdd", {MakeResourceHandle(a), x});
  device_->Synchronize();
  cancellation_.Cancel(Status(Code::kDeadlineExceeded, "too late"));
  Call("TestKernelAdd", {MakeResourceHandle(b), Call("TestKernelDouble", {x})});
  EXPECT_THAT(OnHost(a->Read()), ElementsAre(2, 3));
  EXPECT_THAT(OnHost(b->Read()), ElementsAre(3, 5));
  EXPECT_FALSE(error_.set());
  EXPECT_EQ(error_.updates_applied(), 2);
}

TEST_F(TestKernelTest, UpdatesAreInPlaceUnlessAReaderHoldsTheValue) {
  const auto variable = MakeVariable({1, 1});
  const Tensor handle = MakeResourceHandle(variable);
  const void* first = variable->Read().raw_data();
  Hold hold(*device_);
  Call("TestKernelAdd", {handle, device_->CopyFromHostAsync(Tensor::Vector<float>({1, 2}))});
  EXPECT_EQ(variable->Read().raw_data(), first);
  const Tensor between = variable->Read();
  Call("TestKernelAdd", {handle, device_->CopyFromHostAsync(Tensor::Vector<float>({10, 10}))});
  EXPECT_NE(variable->Read().raw_data(), first);
  hold.LetGo();
  EXPECT_THAT(OnHost(between), ElementsAre(2, 3));
  EXPECT_THAT(OnHost(variable->Read()), ElementsAre(12, 13));
  EXPECT_FALSE(error_.set());
}

TEST_F(TestKernelTest, AFailedUpdateLeavesTheValue) {
  const auto variable = MakeVariable({1, 1});
  Call("TestKernelAdd", {MakeResourceHandle(variable), OnDevice({1, 2, 3})});
  EXPECT_THAT(OnHost(variable->Read()), ElementsAre(1, 1));
  EXPECT_THAT(error_.status().message(), HasSubstr("another shape"));
}

TEST_F(TestKernelTest, DataDependentShapesAndHostOutputsWaitForTheStream) {
  const Tensor x = Call("TestKernelDouble", {OnDevice({1, 2, 3, 4})});
  EXPECT_THAT(OnHost(Call("TestKernelHalf", {x})), ElementsAre(2, 4));
  const Tensor sum = Call("TestKernelSum", {x});
  EXPECT_TRUE(sum.space().is_host());
  EXPECT_EQ(sum.scalar<float>(), 20);
}

TEST_F(TestKernelTest, AShapeThatTheRuleDoesNotKnowIsRefused) {
  const Tensor x = OnDevice({1});
  EXPECT_THAT(MessageOf<InternalError>([&] { Call("TestKernelForgetful", {x}); }), HasSubstr("data_dependent_shape"));
}

TEST_F(TestKernelTest, AShapeOtherThanTheRulesIsAnError) {
  Call("TestKernelLiar", {OnDevice({1, 2})});
  device_->Synchronize();
  EXPECT_EQ(error_.status().code(), Code::kInternal);
  EXPECT_THAT(error_.status().message(),
              HasSubstr("float32[2], as the op's shape rule says; the kernel made float32[1]"));
}

TEST_F(TestKernelTest, AnInputInTheWrongMemoryIsRefused) {
  EXPECT_THAT(MessageOf<InternalError>([&] {
                Call("TestKernelDouble", {Tensor::Vector<float>({1, 2})});
              }),
              HasSubstr("device memory; got it in host"));
}

TEST_F(TestKernelTest, ExistingKernelsAreLeftAlone) {
  const size_t count = registry_.OpsOn("TEST").size();
  EXPECT_EQ(count, registry_.OpsOn("CPU").size());
  RegisterTestKernels(registry_);  // a second time changes nothing
  EXPECT_EQ(registry_.OpsOn("TEST").size(), count);
}

}  // namespace
}  // namespace cohort
