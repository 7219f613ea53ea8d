// TestDevice and TestBackend. A copy to or from the host is work on its own stream, which first waits for an event of
// the compute stream. The synchronous copies wait for the asynchronous ones. The backend gives each stream another seed
// for its delays.
#include "cohort/backends/test/test_device.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "cohort/backends/cpu/passes/passes.h"
#include "cohort/backends/test/test_kernels.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr std::chrono::minutes kPatience{10};
constexpr uint64_t kStreamsOfDevice = 3;

MemorySpace NewSpace() {
  static std::atomic<int64_t> next{0};
  return MemorySpace::OfDevice(TestBackend::Get().type(), next++);
}

DeviceAttributes HostAttributes(DeviceAttributes attributes) {
  attributes.name.type = kHostDeviceType;
  attributes.type = kHostDeviceType;
  return attributes;
}

std::string StreamName(const DeviceAttributes& attributes, const char* which) {
  return StrCat(attributes.type, ":", *attributes.name.id, " ", which);
}

TestDelays WithSeed(TestDelays delays, uint64_t more) {
  delays.seed += more;
  return delays;
}

bool IsCopied(const Tensor& value) { return value.defined() && DTypeSize(value.dtype()) != 0; }

}  // namespace

TestDevice::Parts::Parts(const std::string& name, const TestDelays& delays)
    : compute(name, delays), memory(std::make_shared<TestMemory>(NewSpace(), compute)) {}

TestDevice::TestDevice(DeviceAttributes attributes, std::shared_ptr<TaskResources> task, const TestDelays& delays)
    : TestDevice(attributes, std::move(task), delays,
                 std::make_unique<Parts>(StreamName(attributes, "compute"), delays)) {}

TestDevice::TestDevice(DeviceAttributes attributes, std::shared_ptr<TaskResources> task, const TestDelays& delays,
                       std::unique_ptr<Parts> parts)
    : Device(TestBackend::Get(), attributes, *parts->memory, task, 1),
      parts_(std::move(parts)),
      to_host_(StreamName(attributes, "to host"), WithSeed(delays, 1)),
      from_host_(StreamName(attributes, "from host"), WithSeed(delays, 2)),
      host_(HostAttributes(attributes), task, 1) {}

TestDevice::~TestDevice() {
  // Waits for the copies first: they wait for the compute stream, and it may wait for them.
  for (TestStream* stream : {&from_host_, &parts_->compute, &to_host_}) {
    (void)stream->Record()->Synchronize(std::chrono::steady_clock::now() + kPatience);
  }
  parts_->memory->Detach();
}

void TestDevice::CheckMine(const Tensor& value) const {
  if (value.space() == parts_->memory->space()) return;
  throw InternalError(StrCat("[test device] expected a tensor in the memory of ", name(), " (",
                             parts_->memory->space().ToString(), "); got one in ", value.space().ToString()));
}

void TestDevice::Synchronize() {
  parts_->compute.Record()->Synchronize(std::chrono::steady_clock::now() + kPatience).ThrowIfError();
}

Tensor TestDevice::CopyToHost(const Tensor& value) {
  if (!IsCopied(value) || value.space().is_host()) return value;
  CheckMine(value);
  Synchronize();
  return BorrowedView(value.dtype(), value.shape(), TrueAddress(value)).Clone();
}

Tensor TestDevice::CopyFromHost(const Tensor& value) {
  Tensor copy = CopyFromHostAsync(value);
  if (!copy.space().is_host()) Synchronize();
  return copy;
}

void TestDevice::CopyToHostAsync(const Tensor& value, CopyDone done) {
  if (!IsCopied(value) || value.space().is_host()) return done(Status(), value);
  CheckMine(value);
  // The copy keeps the device's tensor, which is freed on the host's thread when the copy has been made.
  struct Copy {
    Tensor device;
    Tensor host;
    CopyDone done;
  };
  auto copy = std::make_shared<Copy>(Copy{value, Tensor(value.dtype(), value.shape()), std::move(done)});
  to_host_.Wait(parts_->compute.Record());
  to_host_.Enqueue([from = TrueAddress(value), to = copy->host.raw_data(), bytes = value.bytes()] {
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
  to_host_.Record()->OnReady([this, copy = std::move(copy)](const Status& status) mutable {
    RunOnHost([copy = std::move(copy), status] {
      copy->device.Reset();
      copy->done(status, std::move(copy->host));
    });
  });
}

Tensor TestDevice::CopyFromHostAsync(const Tensor& value) {
  if (!IsCopied(value)) return value;
  if (!value.space().is_host()) {
    CheckMine(value);
    return value;
  }
  TestStream& compute = parts_->compute;
  const Tensor copy(value.dtype(), value.shape(), allocator());
  from_host_.Wait(compute.Record());  // work on the memory's last user may be under way
  from_host_.Enqueue([value, to = TrueAddress(copy)] {
    if (value.bytes() > 0) std::memcpy(to, value.raw_data(), value.bytes());
  });
  compute.Wait(from_host_.Record());
  return copy;
}

TestBackend& TestBackend::Get() {
  static auto* const backend = new TestBackend;
  return *backend;
}

std::vector<std::unique_ptr<Device>> TestBackend::MakeDevices(const DeviceRequest& request) const {
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < request.count; ++i) {
    TestDelays delays;
    {
      MutexLock lock(mu_);
      delays = delays_;
      delays_.seed += kStreamsOfDevice;
    }
    devices.push_back(std::make_unique<TestDevice>(AttributesOf(request.task, type_, i), request.resources, delays));
  }
  return devices;
}

void TestBackend::RegisterKernels(KernelRegistry& registry) const { RegisterTestKernels(registry); }

std::unique_ptr<Graph> TestBackend::Improve(std::unique_ptr<Graph> partition) const {
  return RunCpuPasses(std::move(partition), type_);
}

void TestBackend::set_delays(const TestDelays& delays) {
  MutexLock lock(mu_);
  delays_ = delays;
}

void RegisterTestBackend() {
  static Mutex mu;
  static bool registered = false;
  MutexLock lock(mu);
  if (!registered) BackendRegistry::Global().Register(TestBackend::Get());
  registered = true;
  TestBackend::Get().RegisterKernels(KernelRegistry::Global());
}

}  // namespace cohort
