#include "cohort/device/test_device.h"

#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device_factory.h"

namespace cohort {
namespace {

// With this bit changed no address of a process is one: not canonical on x86-64, in the kernel's half on
// AArch64 (whose top byte would be ignored).
constexpr uintptr_t kTag = uintptr_t{1} << 55;

void* Tagged(void* address) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) ^ kTag); }

// Holds the true buffer. Views in both directions share that one, so that its count tells whether anybody
// else sees the bytes.
class TaggedBuffer final : public Buffer {
 public:
  explicit TaggedBuffer(BufferPtr real)
      : Buffer(Tagged(real->data()), real->size(), MemorySpace::OfDevice("TEST", 0)), real_(std::move(real)) {}
  const BufferPtr& real() const { return real_; }

 private:
  void Destroy() override { delete this; }
  BufferPtr real_;
};

class TaggingAllocator final : public Allocator {
 public:
  BufferPtr Allocate(size_t bytes) override {
    return BufferPtr::Adopt(new TaggedBuffer(HostAllocator().Allocate(bytes)));
  }
  MemorySpace space() const override { return MemorySpace::OfDevice("TEST", 0); }
};

size_t OffsetInBuffer(const Tensor& value) {
  return static_cast<size_t>(static_cast<const char*>(value.raw_data()) -
                             static_cast<const char*>(value.buffer()->data()));
}

bool HoldsObjects(const Tensor& value) { return DTypeSize(value.dtype()) == 0; }

DeviceAttributes HostAttributes(DeviceAttributes attributes) {
  attributes.name.type = "CPU";
  attributes.type = "CPU";
  return attributes;
}

// Runs the CPU kernel of a node on the stream of a TestDevice.
class OnStream final : public AsyncOpKernel {
 public:
  OnStream(const KernelConstruction& c, const KernelRegistry& registry)
      : device_(dynamic_cast<TestDevice&>(c.device)), kernel_(registry.Create({c.node, device_.host()})) {}

  void ComputeAsync(KernelContext& ctx, Done done) override {
    for (int i = 0; i < ctx.num_inputs(); ++i) CheckMemory(ctx.input(i), ctx.node(), i);
    device_.Enqueue([this, run = std::make_shared<Run>(ctx, device_.host(), std::move(done))] {
      try {
        if (AsyncOpKernel* async = kernel_->AsAsync()) {
          async->ComputeAsync(run->inner, [run](const Status& status) { run->Finish(status); });
          return;
        }
        kernel_->Compute(run->inner);
      } catch (...) {
        run->Finish(Status::FromCurrentException());
        return;
      }
      run->Finish(Status());
    });
  }

 private:
  // What an executor would keep for the CPU kernel: views of the inputs, and its outputs.
  struct Run {
    Run(KernelContext& outer, Device& host, Done done)
        : outer(outer),
          done(std::move(done)),
          num_inputs(static_cast<size_t>(outer.num_inputs())),
          slots(num_inputs + static_cast<size_t>(outer.num_outputs())),
          input_slots(num_inputs),
          uses(slots.size(), 2),  // not to be worked on in place: the device's tensors see the same bytes
          inner(outer.node(), host, outer.step(), slots.data(), input_slots.data(), slots.data() + num_inputs,
                uses.data()) {
      for (size_t i = 0; i < num_inputs; ++i) {
        slots[i] = HostViewOfTestDevice(outer.input(static_cast<int>(i)));
        input_slots[i] = static_cast<int32_t>(i);
      }
    }

    void Finish(const Status& status) {
      for (int i = 0; status.ok() && i < outer.num_outputs(); ++i) {
        const Tensor& value = slots[num_inputs + static_cast<size_t>(i)];
        outer.SetOutput(i, outer.node().output_arg(i).host_memory ? value : TestDeviceViewOfHost(value));
      }
      slots.clear();  // before the next kernel asks who holds the bytes
      done(status);
    }

    KernelContext& outer;
    Done done;
    const size_t num_inputs;
    std::vector<Tensor> slots;
    std::vector<int32_t> input_slots;
    std::vector<int32_t> uses;
    KernelContext inner;
  };

  // An accelerator's kernel would read what is not there.
  static void CheckMemory(const Tensor& value, const Node& node, int i) {
    const bool wants_host = node.input_arg(i).host_memory || HoldsObjects(value);
    if (value.space().is_host() == wants_host) return;
    throw InternalError(StrCat("[test device] expected input ", i, " of ", node.Describe(), " in ",
                               wants_host ? "host" : "device", " memory; got it in ", wants_host ? "device" : "host",
                               " memory"));
  }

  TestDevice& device_;
  std::unique_ptr<OpKernel> kernel_;
};

}  // namespace

Allocator& TestDeviceAllocator() {
  static auto* const allocator = new TaggingAllocator;
  return *allocator;
}

Tensor HostViewOfTestDevice(const Tensor& value) {
  if (value.space() != TestDeviceAllocator().space()) return value;
  const auto* tagged = static_cast<const TaggedBuffer*>(value.buffer().get());
  return Tensor(value.dtype(), value.shape(), tagged->real(), OffsetInBuffer(value));
}

Tensor TestDeviceViewOfHost(const Tensor& value) {
  if (!value.defined() || !value.space().is_host() || HoldsObjects(value)) return value;
  return Tensor(value.dtype(), value.shape(), BufferPtr::Adopt(new TaggedBuffer(value.buffer())),
                OffsetInBuffer(value));
}

TestDevice::TestDevice(DeviceAttributes attributes, std::shared_ptr<TaskResources> task,
                       std::chrono::microseconds delay)
    : Device(attributes, TestDeviceAllocator(), task, 1),
      delay_(delay),
      host_(HostAttributes(attributes), HostAllocator(), task, 1),
      stream_(StrCat("TEST:", *attributes.name.id, " stream"), 1) {}

TestDevice::~TestDevice() = default;

Tensor TestDevice::CopyToHost(const Tensor& value) {
  return value.space() == TestDeviceAllocator().space() ? HostViewOfTestDevice(value).Clone() : value;
}

Tensor TestDevice::CopyFromHost(const Tensor& value) {
  if (!value.defined() || !value.space().is_host() || HoldsObjects(value)) return value;
  return TestDeviceViewOfHost(value.Clone());
}

void TestDevice::Enqueue(std::function<void()> work) {
  stream_.Schedule([delay = delay_, work = std::move(work)] {
    std::this_thread::sleep_for(delay);
    work();
  });
}

std::vector<std::unique_ptr<Device>> MakeTestDevices(const DeviceName& task_name, int count,
                                                     const std::shared_ptr<TaskResources>& task,
                                                     std::chrono::microseconds delay) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(std::make_unique<TestDevice>(AttributesOf(task_name, "TEST", i), task, delay));
  }
  return devices;
}

void RegisterTestDeviceKernels(KernelRegistry& registry) {
  for (const std::string& op : registry.OpsOn("CPU")) {
    if (registry.Has(op, "TEST")) continue;
    registry.Register(op, "TEST", [&registry](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
      return std::make_unique<OnStream>(c, registry);
    });
  }
}

void RegisterTestDevice(std::chrono::microseconds delay) {
  static std::once_flag once;
  std::call_once(once, [delay] {
    RegisterTestDeviceKernels(KernelRegistry::Global());
    DeviceFactories::Global().Register("TEST", [delay](const DeviceRequest& request) {
      return MakeTestDevices(request.task, request.count, request.resources, delay);
    });
  });
}

}  // namespace cohort
