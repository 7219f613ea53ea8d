// Devices of type "GPU": copies, the order of streams, and memory.
#include "cohort/backends/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/pinned_pool.h"
#include "cohort/core/testing/throws.h"
#include "cohort/device/logical_devices.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLong{60};

class CudaDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<CudaDevice> MakeDevice(int id = 0) {
    CudaDeviceOptions options;
    options.card = id % driver_.CardCount();
    return MakeDevice(driver_, id, options);
  }
  std::unique_ptr<CudaDevice> MakeDevice(Driver& driver, int id, CudaDeviceOptions options) {
    options.memory_limit = size_t{256} << 20;
    return std::make_unique<CudaDevice>(
        CudaBackend::Get(), AttributesOf(DeviceName::Parse("/job:worker/task:0"), CudaBackend::Get().type(), id), task_,
        driver, options);
  }
  // Returns a device that waits for a short time only. As the driver of a machine, its driver lives as long as the
  // process.
  std::unique_ptr<CudaDevice> MakeImpatient(FakeDriver& driver) {
    CudaDeviceOptions options;
    options.patience = std::chrono::milliseconds(20);
    return MakeDevice(driver, 0, options);
  }
  // Returns a copy of three numbers that has been made. Waits for long if necessary.
  static Tensor ThreeNumbersOn(CudaDevice& device) {
    Tensor there = device.CopyFromHostAsync(Tensor::Vector<float>({1, 2, 3}));
    EXPECT_TRUE(device.compute_stream()->Record()->Synchronize(std::chrono::steady_clock::now() + kLong).ok());
    return there;
  }
  static FakeDriverOptions TwoCards() {
    FakeDriverOptions options;
    options.cards = 2;
    return options;
  }

  FakeDriver fake_{TwoCards()};
  Driver& driver_ = CardOr(fake_);
  std::shared_ptr<TaskResources> task_ = std::make_shared<TaskResources>();
};

TEST_F(CudaDeviceTest, CopiesBothWays) {
  const auto device = MakeDevice();
  EXPECT_EQ(device->name(), "/job:worker/replica:0/task:0/device:GPU:0");
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

TEST_F(CudaDeviceTest, TwoDevicesHaveDifferentMemories) {
  const auto first = MakeDevice(0);
  const auto second = MakeDevice(1);
  const Tensor value = first->CopyFromHost(Tensor::Scalar(1.0f));
  EXPECT_FALSE(first->allocator().space() == second->allocator().space());
  EXPECT_THAT(MessageOf<InternalError>([&] { second->CopyToHost(value); }), HasSubstr(value.space().ToString()));
}

TEST_F(CudaDeviceTest, AsynchronousCopiesStandBehindTheWorkOfTheComputeStream) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  const auto device = MakeDevice();
  fake_.control().Hold(0);
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
  fake_.control().Release(0);
  ASSERT_EQ(copy.wait_for(kLong), std::future_status::ready);
  EXPECT_THAT(copy.get().ToVector<float>(), ElementsAre(1, 2));
  EXPECT_TRUE(on_host_thread);
}

// A kernel that ends when the test says so.
struct LongKernel {
  std::promise<void> end;
  std::shared_future<void> ended = end.get_future().share();

  struct Argument {
    const LongKernel* kernel;
  };
  void Launch(Driver& driver, StreamHandle stream) {
    static const KernelCode code{"long", nullptr, [](const void* argument, const LaunchSize&) {
                                   static_cast<const Argument*>(argument)->kernel->ended.wait();
                                 }};
    const Argument argument{this};
    driver.Launch(code, {}, &argument, sizeof(argument), stream);
  }
};

// As the pulls of a worker that computes: their memory is that of the values that the step before it has pulled.
TEST_F(CudaDeviceTest, ACopyFromTheHostRunsBesideAKernel) {
  COHORT_NEEDS_FAKE("its kernel ends when the test says so");
  const auto device = MakeDevice();
  const std::vector<Tensor> values = {Tensor::Vector<float>({1, 2, 3}), Tensor::Zeros(DType::kInt64, Shape{1000})};
  for (const Tensor& value : values) (void)device->CopyFromHost(value);
  (void)device->CopyFromHost(Tensor::Zeros(DType::kFloat32, Shape{100}));  // of another size
  LongKernel kernel;
  kernel.Launch(driver_, device->compute_stream()->handle());
  const Tensor first = device->CopyFromHostAsync(values[0]);
  const Tensor second = device->CopyFromHostAsync(values[1]);
  const auto copied = device->from_host_stream()->Record();
  EXPECT_TRUE(copied->Synchronize(std::chrono::steady_clock::now() + kLong).ok());
  EXPECT_EQ(kernel.ended.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  kernel.end.set_value();
  EXPECT_THAT(device->CopyToHost(first).ToVector<float>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(device->CopyToHost(second).ToVector<int64_t>(), std::vector<int64_t>(1000));
}

// The card may still write to it.
TEST_F(CudaDeviceTest, HostMemoryOfACopyThatDoesNotEndIsNotUsedAgainBeforeItHas) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  static auto* const driver = new FakeDriver;
  FakeControl& control = driver->control();
  const auto device = MakeImpatient(*driver);
  const Tensor there = ThreeNumbersOn(*device);
  const auto pool = PinnedPool::Of(*driver);
  control.Hold(0);
  EXPECT_THAT(MessageOf<DeadlineExceededError>([&] { (void)device->CopyToHost(there); }), HasSubstr("stands still"));
  const auto new_tensor = [&] { return pool->NewTensor(0, DType::kFloat32, Shape{3}); };
  std::vector<Tensor> others;
  for (const int64_t before = control.live().pinned; control.live().pinned == before;) others.push_back(new_tensor());
  for (Tensor& other : others) std::fill_n(other.data<float>(), 3, 42.0f);
  const int64_t all = control.live().pinned;
  control.Release(0);
  EXPECT_TRUE(device->to_host_stream()->Record()->Synchronize(std::chrono::steady_clock::now() + kLong).ok());
  for (const Tensor& other : others) EXPECT_THAT(other.ToVector<float>(), ElementsAre(42, 42, 42));
  const Tensor again = new_tensor();
  EXPECT_EQ(control.live().pinned, all);
}

// To free the memory would wait for the card.
TEST_F(CudaDeviceTest, MemoryOfADeviceWhoseWorkDoesNotEndIsLeftToTheProcess) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  FakeDriverOptions small;
  small.memory_bytes = size_t{64} << 20;
  static auto* const driver = new FakeDriver(small);
  FakeControl& control = driver->control();
  auto device = MakeImpatient(*driver);
  Tensor there = ThreeNumbersOn(*device);
  control.Hold(0);
  driver->FillAsync(there.raw_data(), 0, there.bytes(), device->compute_stream()->handle());
  Status told;
  device->compute_stream()->Record()->OnReady([&](const Status& status) { told = status; });
  there.Reset();
  ::testing::internal::CaptureStderr();
  device.reset();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the process keeps the memory of the device"));
  EXPECT_EQ(told.code(), Code::kDeadlineExceeded);
  // A device that has too little does not get it either.
  EXPECT_THROW(MakeImpatient(*driver)->allocator().Allocate(size_t{100} << 20), ResourceExhaustedError);
  EXPECT_EQ(control.live().blocks, 1);
  EXPECT_GT(control.live().pinned, 0);
  control.Release(0);
}

// A step learns of bad data in a callback of the compute stream. Who gets the value has to know.
TEST_F(CudaDeviceTest, ACopyToTheHostIsReadyAfterTheCallbacksOfTheWorkBeforeIt) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  const auto device = MakeDevice();
  const Tensor there = ThreeNumbersOn(*device);
  std::promise<void> release;
  std::atomic<bool> called{false};
  fake_.control().Hold(0);
  device->compute_stream()->Record()->OnReady([&, go = release.get_future().share()](const Status&) {
    go.wait();
    called = true;
  });
  std::promise<bool> ready;
  device->CopyToHostAsync(there, [&](const Status& status, const Tensor&) { ready.set_value(status.ok() && called); });
  fake_.control().Release(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // enough for the copy
  release.set_value();
  EXPECT_TRUE(ready.get_future().get());
}

// The step may go on later, and write its results.
TEST_F(CudaDeviceTest, HostMemoryOfARecordedStepThatDoesNotEndIsNotUsedAgain) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  static auto* const driver = new FakeDriver;
  FakeControl& control = driver->control();
  auto device = MakeImpatient(*driver);
  std::unique_ptr<RecordedStep> step = device->step_recorder()->Record([&](StepRecorder::Recording& recording) {
    recording.Fetch(0, Tensor(DType::kUint8, Shape{16}, recording.allocator()));
  });
  control.Hold(0);
  EXPECT_EQ(step->Enqueue({}), RecordedStep::Outcome::kEnqueued);
  const int64_t before = control.live().pinned;
  device.reset();
  step.reset();
  constexpr int64_t kLeastOfRecording = 4096;  // bytes
  const Tensor other = PinnedPool::Of(*driver)->NewTensor(0, DType::kUint8, Shape{kLeastOfRecording});
  EXPECT_EQ(control.live().pinned, before + 1);
  control.Release(0);
}

TEST_F(CudaDeviceTest, AllMemoryComesBack) {
  const auto device = MakeDevice();
  {
    const Tensor there = device->CopyFromHost(Tensor::Vector<float>({1, 2}));
    EXPECT_GT(device->memory().stats().in_use, 0u);
  }
  EXPECT_EQ(device->memory().stats().in_use, 0u);
}

TEST_F(CudaDeviceTest, ACardInExclusiveModeIsNamedAtTheFirstUseAndUsedWhenItIsFree) {
  COHORT_NEEDS_FAKE("it fails when the test says so");
  const auto device = MakeDevice(1);
  fake_.control().SetFault(1, CardFault::kNotAvailable);
  const Tensor value = Tensor::Vector<float>({1, 2, 3});
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { device->CopyFromHost(value); }),
              AllOf(HasSubstr("on card 1"), HasSubstr("busy or unavailable"), HasSubstr("end that process")));
  fake_.control().SetFault(1, CardFault::kOther);
  EXPECT_THAT(device->CopyToHost(device->CopyFromHost(value)).ToVector<float>(), ElementsAre(1, 2, 3));
}

// All sessions and servers of the process count together; the card of the device does not matter.
TEST_F(CudaDeviceTest, TheProcessKnowsHowMuchMemoryADeviceUses) {
  const auto device = MakeDevice(5);
  const auto of_another_session = MakeDevice(5);
  const std::string name = "/device:GPU:5";
  const config::MemoryInfo before = config::GetMemoryInfo(name);
  {
    const Tensor one = device->CopyFromHost(Tensor::Zeros(DType::kFloat32, Shape{1000}));
    const Tensor two = of_another_session->CopyFromHost(Tensor::Zeros(DType::kFloat32, Shape{1000}));
    EXPECT_EQ(config::GetMemoryInfo("GPU:5").current, before.current + 2 * 4096);
  }
  EXPECT_EQ(config::GetMemoryInfo(name), (config::MemoryInfo{before.current, before.current + 2 * 4096}));
  config::ResetMemoryStats(name);
  EXPECT_EQ(config::GetMemoryInfo(name).peak, before.current);
}

}  // namespace
}  // namespace cohort::cuda
