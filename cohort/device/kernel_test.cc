#include "cohort/device/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/backends/cpu/cpu_device.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void RegisterTestOps() {
  if (OpRegistry::Global().Find("KernelTestOp") != nullptr) return;
  OpRegistry::Global().Register(OpDef("KernelTestOp")
                                    .Input("x: T")
                                    .Input("y: T")
                                    .Output("z: U")
                                    .Attr("T: type")
                                    .Attr("U: type")
                                    .ShapeRule([](ShapeContext&) { return std::vector<Shape>{Shape::UnknownRank()}; }));
  OpRegistry::Global().Register(OpDef("KernelTestSource").Output("x: T").Attr("T: type").ShapeRule([](ShapeContext&) {
    return std::vector<Shape>{Shape::UnknownRank()};
  }));
}

// A context with two inputs and one output, and what an executor would keep for it.
struct Harness {
  explicit Harness(DType in = DType::kFloat32, DType out = DType::kFloat32)
      : devices(MakeCpuDevices(DeviceName::Parse("/job:localhost/task:0"), 1, 1, std::make_shared<TaskResources>())) {
    RegisterTestOps();
    const Output x = graph.Op("KernelTestSource").Attr("T", in).Finish1();
    node = graph.Op("KernelTestOp").Name("node").Input(x).Input(x).Attr("U", out).Finish();
    ctx.emplace(*node, *devices[0], step, slots, input_slots, slots + 2, uses);
  }

  Graph graph;
  Node* node = nullptr;
  std::vector<std::unique_ptr<Device>> devices;
  StepInfo step;
  Tensor slots[3];
  int32_t input_slots[2] = {0, 1};
  int32_t uses[3] = {1, 1, 1};
  std::optional<KernelContext> ctx;
};

TEST(KernelContextTest, AllocatesOutputsOfTheNodesDtype) {
  Harness h(DType::kFloat32, DType::kInt64);
  Tensor& z = h.ctx->AllocateOutput(0, Shape{2, 3});
  EXPECT_EQ(&z, &h.slots[2]);
  EXPECT_EQ(z.dtype(), DType::kInt64);
  EXPECT_EQ(z.shape(), (Shape{2, 3}));
}

TEST(KernelContextTest, ForwardsTheLastUseAndKeepsTheInputReadable) {
  Harness h;
  h.slots[0] = Tensor::Vector<float>({1, 2, 3, 4});
  const void* memory = h.slots[0].raw_data();
  Tensor& z = h.ctx->ForwardInputOrAllocate(0, 0, Shape{2, 2});
  EXPECT_EQ(z.raw_data(), memory);
  EXPECT_EQ(z.shape(), (Shape{2, 2}));
  EXPECT_THAT(z.ToVector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(h.ctx->input(0).data<float>()[3], 4);
}

TEST(KernelContextTest, ForwardingTakesTheOutputsDtype) {
  Harness h(DType::kFloat32, DType::kInt32);
  h.slots[0] = Tensor::Vector<float>({1, 2});
  const void* memory = h.slots[0].raw_data();
  Tensor& z = h.ctx->ForwardInputOrAllocate(0, 0, Shape{2});
  EXPECT_EQ(z.raw_data(), memory);
  EXPECT_EQ(z.dtype(), DType::kInt32);
}

TEST(KernelContextTest, DoesNotForwardWhatOthersUse) {
  const auto forwarded = [](const std::function<void(Harness&)>& spoil, const Shape& shape = Shape{4}) {
    Harness h;
    h.slots[0] = Tensor::Vector<float>({1, 2, 3, 4});
    spoil(h);
    const void* memory = h.slots[0].raw_data();
    Tensor& z = h.ctx->ForwardInputOrAllocate(0, 0, shape);
    EXPECT_EQ(z.shape(), shape);
    return z.raw_data() == memory;
  };
  EXPECT_TRUE(forwarded([](Harness&) {}));
  EXPECT_FALSE(forwarded([](Harness& h) { h.uses[0] = 2; }));
  EXPECT_FALSE(forwarded([](Harness& h) { h.slots[1] = h.slots[0]; }));
  EXPECT_FALSE(forwarded([](Harness&) {}, Shape{3}));
  EXPECT_FALSE(forwarded([](Harness&) {}, Shape{5}));
  EXPECT_FALSE(forwarded([](Harness& h) { h.slots[0] = Tensor::Vector<float>({0, 1, 2, 3, 4}).Slice(1, 5); }));
  EXPECT_FALSE(forwarded([](Harness& h) { h.slots[0].Reset(); }));
}

TEST(KernelContextTest, TriesTheInputsInTurn) {
  Harness h;
  h.slots[0] = Tensor::Scalar(1.0f);
  h.slots[1] = Tensor::Vector<float>({1, 2});
  const void* memory = h.slots[1].raw_data();
  EXPECT_EQ(h.ctx->ForwardInputOrAllocate({0, 1}, 0, Shape{2}).raw_data(), memory);
}

TEST(KernelContextTest, StringsAreNeverForwarded) {
  Harness h(DType::kString, DType::kString);
  h.slots[0] = Tensor::Vector<std::string>({"a", "b"});
  EXPECT_NE(h.ctx->ForwardInputOrAllocate(0, 0, Shape{2}).raw_data(), h.slots[0].raw_data());
}

TEST(KernelContextTest, TakesAnInputThatNothingElseUses) {
  Harness h;
  h.slots[0] = Tensor::Vector<float>({1, 2});
  h.uses[0] = 2;
  const void* memory = h.slots[0].raw_data();
  EXPECT_EQ(h.ctx->TakeInput(0, 1).raw_data(), memory);
  EXPECT_TRUE(h.slots[0].defined());  // another kernel uses it
  const Tensor taken = h.ctx->TakeInput(0, 2);
  EXPECT_EQ(taken.raw_data(), memory);
  EXPECT_FALSE(h.slots[0].defined());
  EXPECT_TRUE(taken.OwnsBufferAlone());
}

TEST(KernelContextTest, DescribesNodeDeviceAndInputs) {
  Harness h;
  h.slots[0] = Tensor::Vector<float>({1, 2});
  h.slots[1] = Tensor::Scalar(1.0f);
  EXPECT_EQ(h.ctx->num_inputs(), 2);
  EXPECT_THAT(h.ctx->Describe(),
              AllOf(HasSubstr("[[KernelTestOp node 'node' on /job:localhost/replica:0/task:0/device:CPU:0"),
                    HasSubstr("inputs: float32[2], float32[]]]")));
}

// An error of a node with hundreds of inputs stays readable.
TEST(KernelContextTest, DescribesTheFirstOfManyInputs) {
  Harness h;
  h.slots[0] = Tensor::Vector<float>({1, 2});
  const std::vector<int32_t> many(400, 0);
  const KernelContext ctx(*h.node, *h.devices[0], h.step, h.slots, many, h.slots + 2, h.uses);
  EXPECT_THAT(ctx.Describe(), HasSubstr("float32[2], float32[2] and 376 more]]"));
  EXPECT_LT(ctx.Describe().size(), 500u);
}

struct Waits final : AsyncOpKernel {
  explicit Waits(const KernelConstruction&) {}
  void ComputeAsync(KernelContext&, Done done) override { done(Status()); }
};

TEST(AsyncOpKernelTest, IsNotRunByCompute) {
  Harness h;
  Waits kernel({*h.node, *h.devices[0]});
  EXPECT_EQ(kernel.AsAsync(), &kernel);
  EXPECT_THROW(kernel.Compute(*h.ctx), InternalError);
}

TEST(KernelRegistryTest, MakesWhatIsRegisteredAndNamesWhatIsNot) {
  Harness h;
  KernelRegistry registry;
  EXPECT_FALSE(registry.Has("KernelTestOp", "CPU"));
  registry.RegisterFn("KernelTestOp", "TEST", [](KernelContext&) {});
  try {
    registry.Create({*h.node, *h.devices[0]});
    FAIL();
  } catch (const NotFoundError& e) {
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("op KernelTestOp (node 'node')"), HasSubstr("device type CPU"), HasSubstr("[TEST]")));
  }
  registry.Register<Waits>("KernelTestOp", "CPU");
  EXPECT_TRUE(registry.Has("KernelTestOp", "CPU"));
  EXPECT_NE(registry.Create({*h.node, *h.devices[0]})->AsAsync(), nullptr);
  EXPECT_THROW(registry.Register<Waits>("KernelTestOp", "CPU"), AlreadyExistsError);
  registry.RegisterFn("Another", "CPU", [](KernelContext& ctx) { ctx.AllocateOutput(0, Shape()); });
  EXPECT_THAT(registry.OpsOn("CPU"), ElementsAre("Another", "KernelTestOp"));
  registry.RegisterFn("KernelTestSource", "CPU", [](KernelContext& ctx) { ctx.SetOutput(0, Tensor::Scalar(1.0f)); });
}

TEST(KernelRegistryTest, AHostKernelServesEveryTypeThatHasNoneOfItsOwn) {
  Harness h;
  KernelRegistry registry;
  registry.RegisterHost<Waits>("KernelTestOp");
  registry.RegisterHostFn(
      "KernelTestSource", [](KernelContext&) {}, KernelMemory::kEither);
  for (const char* type : {"CPU", "TEST", "GPU"}) {
    EXPECT_TRUE(registry.Has("KernelTestOp", type));
    EXPECT_EQ(registry.MemoryOf("KernelTestOp", type), KernelMemory::kHost);
    EXPECT_EQ(registry.MemoryOf("KernelTestSource", type), KernelMemory::kEither);
    EXPECT_EQ(registry.MemoryOf("NoSuchOp", type), KernelMemory::kDevice);
  }
  EXPECT_THAT(registry.OpsOn("CPU"), ::testing::IsEmpty());
  EXPECT_THAT(registry.HostOps(), ElementsAre("KernelTestOp", "KernelTestSource"));
  EXPECT_NE(registry.Create({*h.node, *h.devices[0]})->AsAsync(), nullptr);
  EXPECT_THROW(registry.RegisterHost<Waits>("KernelTestOp"), AlreadyExistsError);

  registry.RegisterFn("KernelTestOp", "CPU", [](KernelContext&) {});
  EXPECT_EQ(registry.MemoryOf("KernelTestOp", "CPU"), KernelMemory::kDevice);
  EXPECT_EQ(registry.MemoryOf("KernelTestOp", "TEST"), KernelMemory::kHost);
  EXPECT_EQ(registry.Create({*h.node, *h.devices[0]})->AsAsync(), nullptr);
}

}  // namespace
}  // namespace cohort
