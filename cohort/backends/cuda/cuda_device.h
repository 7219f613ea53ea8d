// CudaDevice: a device of type "GPU", with its streams and its memory.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "cohort/backends/cpu/cpu_device.h"
#include "cohort/backends/cuda/cuda_memory.h"
#include "cohort/backends/cuda/cuda_stream.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/error_words.h"
#include "cohort/backends/cuda/recording/step_recorder.h"
#include "cohort/core/mutex.h"
#include "cohort/device/device.h"
#include "cohort/device/kernel.h"

namespace cohort::cuda {

class PinnedPool;

// Which card a device uses, and how much of it.
struct CudaDeviceOptions {
  int card = 0;
  size_t memory_limit = 0;                         // bytes
  bool reserve_all_memory = false;                 // takes them at the first use, and not bit by bit
  int intra_op_threads = 1;                        // threads of kernels that run on the host
  std::function<size_t()> find_memory_limit = {};  // if set, is called at the first use, and returns the limit
  std::chrono::milliseconds patience = CudaStream::kPatience;  // with work that does not end
};

// A logical device: one card or a part of one, with one stream for kernels and two for copies. Logical devices of one
// card have memory limits of their own. The session or server for which it was made owns it. It uses the card, which
// costs some hundred MB of its memory, from the first allocation, copy or kernel on. Thread-safe.
class CudaDevice final : public Device {
 public:
  CudaDevice(const Backend& backend, const DeviceAttributes& attributes, std::shared_ptr<TaskResources> task,
             Driver& driver, const CudaDeviceOptions& options);
  // Waits until the work that is still on the streams has run. If it does not end, the process keeps the memory to
  // which it may write, and the log says so.
  ~CudaDevice() override;

  Driver& driver() const { return driver_; }
  int card() const { return card_; }
  void CheckProcess() const override;
  CudaStream* compute_stream() override { return &parts_->compute; }
  CudaStream* to_host_stream() override { return &to_host_; }
  CudaStream* from_host_stream() override { return &from_host_; }
  StepRecorder* step_recorder() override { return &recorder_; }
  // The error words of the steps that run on this device (error_words.h).
  ErrorWords& error_words() { return parts_->error_words; }
  const CudaMemory& memory() const { return *parts_->memory; }

  // Copy the bytes. A tensor of objects (strings, handles) is returned unchanged, because it is in host memory on every
  // device. CopyToHost and CopyFromHost wait for the copy; the other two enqueue it. Throw InternalError for a tensor
  // of another device. The two that wait throw DeadlineExceededError when the patience of the options ends. While the
  // calling thread records a step, only CopyFromHostAsync does not throw UnimplementedError.
  Tensor CopyToHost(const Tensor& value) override;
  Tensor CopyFromHost(const Tensor& value) override;
  void CopyToHostAsync(const Tensor& value, CopyDone done) override;
  Tensor CopyFromHostAsync(const Tensor& value) override;
  // Does what CopyFromHostAsync does, if there is memory for the copy that nobody uses. Otherwise returns an undefined
  // tensor. Requires: `value` has numbers, lies in host memory and is not empty.
  Tensor TryCopyFromHostAsync(const Tensor& value);

  // Waits until all work that is now on the compute stream has run. Throws the device's error if it has failed, and
  // DeadlineExceededError when the patience of the options ends.
  void Synchronize();
  // Returns the device that the CPU's kernels see when they compute for this device: the same task, with host memory.
  Device& host() { return host_; }

 private:
  // Members that must exist before the base class is constructed.
  struct Parts {
    Parts(Driver& driver, const CudaDeviceOptions& options, const std::string& type, const std::string& name);
    ~Parts();
    const std::chrono::milliseconds patience;
    CudaStream compute;
    ErrorWords error_words;
    std::shared_ptr<CudaMemory> memory;
  };
  CudaDevice(const Backend& backend, const DeviceAttributes& attributes, std::shared_ptr<TaskResources> task,
             Driver& driver, const CudaDeviceOptions& options, std::unique_ptr<Parts> parts);
  void CheckMine(const Tensor& value) const;
  std::chrono::steady_clock::time_point Deadline() const { return std::chrono::steady_clock::now() + parts_->patience; }
  // Begins to copy `value` to this memory, and returns the copy.
  Tensor StartCopy(const Tensor& value, CudaMemory::ForCopy memory);
  // Keeps the tensor, which lies in host memory, until the event of the stream from the host is reached.
  void KeepUntil(Tensor value, std::shared_ptr<StreamEvent> event);

  Driver& driver_;
  const int card_;
  std::unique_ptr<Parts> parts_;
  CudaStream to_host_;
  CudaStream from_host_;
  const std::shared_ptr<PinnedPool> pinned_;
  CpuDevice host_;
  CudaStepRecorder recorder_;
  struct Kept {
    Tensor value;
    std::shared_ptr<StreamEvent> event;
  };
  Mutex mu_;
  std::deque<Kept> kept_ COHORT_GUARDED_BY(mu_);  // what copies from the host still read, in the order of the stream
};

inline CudaDevice& CudaDeviceOf(const KernelContext& ctx) { return static_cast<CudaDevice&>(ctx.device()); }

}  // namespace cohort::cuda
