// CudaDevice. A copy to or from the host is work on its own stream. A copy to the host first waits for the compute
// stream, and a copy from the host for the last user of its memory. Copies go through pinned memory (PinnedPool). The
// synchronous copies wait for the asynchronous ones.
#include "cohort/backends/cuda/cuda_device.h"

#include <atomic>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/pinned_pool.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

MemorySpace NewSpace(const std::string& type) {
  static std::atomic<int64_t> next{0};
  return MemorySpace::OfDevice(type, next++);
}

DeviceAttributes HostAttributes(DeviceAttributes attributes) {
  attributes.name.type = kHostDeviceType;
  attributes.type = kHostDeviceType;
  return attributes;
}

std::string ShortName(const DeviceAttributes& attributes) { return StrCat(attributes.type, ":", *attributes.name.id); }

bool IsCopied(const Tensor& value) { return value.defined() && DTypeSize(value.dtype()) != 0; }

// Keeps host memory to which work of a stream writes if the stream was given up (`status`) before the work had run.
void KeepIfStillWritten(const Status& status, const Tensor& host) {
  if (status.code() == Code::kDeadlineExceeded) KeepUntilProcessEnds(std::make_shared<Tensor>(host));
}

}  // namespace

CudaDevice::Parts::Parts(Driver& driver, const CudaDeviceOptions& options, const std::string& type,
                         const std::string& name)
    : patience(options.patience),
      compute(driver, options.card, StrCat(name, " compute"), patience),
      error_words(driver, options.card, compute),
      memory(std::make_shared<CudaMemory>(
          NewSpace(type), driver, compute,
          CudaMemory::Options{options.card, options.memory_limit, options.reserve_all_memory, name,
                              options.find_memory_limit})) {
  compute.SetBeforeRecord([this] { return error_words.BeforeRecord(); });
}

CudaDevice::Parts::~Parts() {
  // The callbacks of the last events use the error words.
  (void)compute.Finish(std::chrono::steady_clock::now() + patience);
  compute.SetBeforeRecord({});
  memory->Detach();
}

CudaDevice::CudaDevice(const Backend& backend, const DeviceAttributes& attributes, std::shared_ptr<TaskResources> task,
                       Driver& driver, const CudaDeviceOptions& options)
    : CudaDevice(backend, attributes, std::move(task), driver, options,
                 std::make_unique<Parts>(driver, options, attributes.type, ShortName(attributes))) {}

CudaDevice::CudaDevice(const Backend& backend, const DeviceAttributes& attributes, std::shared_ptr<TaskResources> task,
                       Driver& driver, const CudaDeviceOptions& options, std::unique_ptr<Parts> parts)
    : Device(backend, attributes, *parts->memory, task, options.intra_op_threads),
      driver_(driver),
      card_(options.card),
      parts_(std::move(parts)),
      to_host_(driver, card_, StrCat(ShortName(attributes), " to host"), parts_->patience),
      from_host_(driver, card_, StrCat(ShortName(attributes), " from host"), parts_->patience),
      pinned_(PinnedPool::Of(driver)),
      host_(HostAttributes(attributes), task, options.intra_op_threads),
      recorder_(driver, card_, ShortName(attributes), parts_->compute, *parts_->memory, attributes.type,
                task->resources, [this](const Tensor& value) { return TryCopyFromHostAsync(value); }) {}

CudaDevice::~CudaDevice() {
  // Waits for the copies first: they wait for the compute stream, and it may wait for them.
  const auto deadline = Deadline();
  bool ended = true;
  for (CudaStream* stream : {&from_host_, &parts_->compute, &to_host_}) ended = stream->Finish(deadline) && ended;
  if (ended) return;
  LogWarning("cuda", "the work on ", name(),
             " does not end: a kernel stands still, or there is too much work; the process keeps the memory of the "
             "device, because the work may still write to it");
  parts_->memory->Withhold();
  KeepUntilProcessEnds(std::shared_ptr<Parts>(std::move(parts_)));
  KeepUntilProcessEnds(pinned_);
}

void CudaDevice::CheckProcess() const {
  if (IsForkedFromUser()) UseCards();  // throws
}

void CudaDevice::CheckMine(const Tensor& value) const {
  if (value.space() == parts_->memory->space()) return;
  throw InternalError(StrCat("[cuda] expected a tensor in the memory of ", name(), " (",
                             parts_->memory->space().ToString(), "); got one in ", value.space().ToString()));
}

void CudaDevice::Synchronize() {
  CudaRecording::Refuse("to wait for the card");
  parts_->compute.Record()->Synchronize(Deadline()).ThrowIfError();
}

Tensor CudaDevice::CopyToHost(const Tensor& value) {
  if (!IsCopied(value) || value.space().is_host()) return value;
  CudaRecording::Refuse("a value on the host");
  CheckMine(value);
  if (value.bytes() == 0) return Tensor(value.dtype(), value.shape());
  Tensor staged = pinned_->NewTensor(card_, value.dtype(), value.shape());
  to_host_.Wait(parts_->compute.Record());
  driver_.CopyAsync(staged.raw_data(), value.raw_data(), value.bytes(), Driver::Copy::kToHost, to_host_.handle());
  const std::shared_ptr<StreamEvent> copied = to_host_.Record();
  const Status status = copied->Synchronize(Deadline());
  if (status.code() == Code::kDeadlineExceeded) {
    LogWarning("cuda", "a copy of ", value.bytes(), " bytes from ", name(),
               " does not end; its host memory is not used again before it has ended");
    copied->OnReady([staged](const Status& later) { KeepIfStillWritten(later, staged); });
  }
  status.ThrowIfError();
  return staged;
}

Tensor CudaDevice::CopyFromHost(const Tensor& value) {
  CudaRecording::Refuse("to wait for a copy");
  Tensor copy = CopyFromHostAsync(value);
  if (!copy.space().is_host()) Synchronize();
  return copy;
}

void CudaDevice::CopyToHostAsync(const Tensor& value, CopyDone done) {
  if (!IsCopied(value) || value.space().is_host()) return done(Status(), value);
  CudaRecording::Refuse("a value on the host");
  CheckMine(value);
  // The copy keeps the device's tensor, which is freed on the host's thread when the copy has been made.
  struct Copy {
    Tensor device;
    Tensor host;
    CopyDone done;
  };
  auto copy =
      std::make_shared<Copy>(Copy{value, pinned_->NewTensor(card_, value.dtype(), value.shape()), std::move(done)});
  const std::shared_ptr<StreamEvent> computed = parts_->compute.Record();
  to_host_.Wait(computed);
  if (value.bytes() > 0) {
    driver_.CopyAsync(copy->host.raw_data(), value.raw_data(), value.bytes(), Driver::Copy::kToHost, to_host_.handle());
  }
  to_host_.Record()->OnReady([this, copy = std::move(copy), computed](const Status& status) mutable {
    KeepIfStillWritten(status, copy->host);
    RunOnHost([copy = std::move(copy), computed, until = Deadline(), status] {
      // The work has ended. Its callbacks, which tell the step of bad data, have another thread, and may not.
      if (status.ok()) (void)computed->Synchronize(until);
      copy->device.Reset();
      copy->done(status, status.ok() ? std::move(copy->host) : Tensor());
    });
  });
}

Tensor CudaDevice::CopyFromHostAsync(const Tensor& value) {
  if (!IsCopied(value)) return value;
  if (!value.space().is_host()) {
    CheckMine(value);
    return value;
  }
  if (CudaRecording* recording = CudaRecording::Current()) return recording->CopyFromHost(value);
  if (value.bytes() == 0) return Tensor(value.dtype(), value.shape(), allocator());
  return StartCopy(value, parts_->memory->AllocateForCopy(value.bytes()));
}

Tensor CudaDevice::TryCopyFromHostAsync(const Tensor& value) {
  CudaMemory::ForCopy memory = parts_->memory->TryAllocateForCopy(value.bytes());
  return memory.buffer ? StartCopy(value, std::move(memory)) : Tensor();
}

Tensor CudaDevice::StartCopy(const Tensor& value, CudaMemory::ForCopy memory) {
  Tensor copy(value.dtype(), value.shape(), std::move(memory.buffer), 0);
  const Tensor pinned = pinned_->Pinned(card_, value);
  CudaStream& compute = parts_->compute;
  from_host_.Wait(memory.writable);
  driver_.CopyAsync(copy.raw_data(), pinned.raw_data(), value.bytes(), Driver::Copy::kFromHost, from_host_.handle());
  std::shared_ptr<StreamEvent> copied = from_host_.Record();
  compute.Wait(copied);
  KeepUntil(pinned, std::move(copied));
  return copy;
}

void CudaDevice::KeepUntil(Tensor value, std::shared_ptr<StreamEvent> event) {
  std::vector<Kept> ended;  // is destroyed after the lock
  MutexLock lock(mu_);
  kept_.push_back({std::move(value), std::move(event)});
  while (!kept_.empty() && kept_.front().event->reached()) {
    ended.push_back(std::move(kept_.front()));
    kept_.pop_front();
  }
}

}  // namespace cohort::cuda
