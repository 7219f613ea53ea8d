// The Driver of builds with CUDA: it calls cudart, which is linked statically and opens libcuda.so.1 at its first call.
// So a program starts, and this file does nothing, on machines without a driver.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <utility>

#include "cohort/backends/cuda/driver.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr int kOldestCuda = 13000;  // as cudaDriverGetVersion counts: what driver 580 brings
constexpr const char* kOldestDriver = "580";
constexpr const char* kDriverVersionFile = "/proc/driver/nvidia/version";

std::string Text(cudaError_t error) { return StrCat(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")"); }

std::string Advice(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
      return "; this build has no code for this card: set -DCMAKE_CUDA_ARCHITECTURES to the card's compute capability";
    case cudaErrorDevicesUnavailable:
      return "; another process uses the card alone, or nobody may use it (nvidia-smi -q -d COMPUTE)";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
      return "; the card cannot be used by this process any more: restart the program from its last checkpoint";
    default: return "";
  }
}

[[noreturn]] void Throw(const char* call, cudaError_t error, const std::string& what = "") {
  (void)cudaGetLastError();  // so that a later call does not report it again
  throw InternalError(StrCat("[cuda] ", call, what, ": ", Text(error), Advice(error)));
}
void Check(const char* call, cudaError_t error) {
  if (error != cudaSuccess) [[unlikely]]
    Throw(call, error);
}
void Use(int card) { Check("cudaSetDevice", cudaSetDevice(card)); }

cudaStream_t Native(StreamHandle stream) { return static_cast<cudaStream_t>(stream.native); }
cudaEvent_t Native(EventHandle event) { return static_cast<cudaEvent_t>(event.native); }
cudaGraphExec_t Native(GraphHandle graph) { return static_cast<cudaGraphExec_t>(graph.native); }

// Makes the stream's card the current one of this thread, as a launch demands.
void UseCardOf(StreamHandle stream) {
  int card = 0;
  Check("cudaStreamGetDevice", cudaStreamGetDevice(Native(stream), &card));
  Use(card);
}

Status StatusOf(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();
  return Status(Code::kInternal, StrCat("[cuda] ", call, ": ", Text(error), Advice(error)));
}

class RuntimeDriver final : public Driver {
 public:
  explicit RuntimeDriver(int cards) : cards_(cards) {}

  int CardCount() override { return cards_; }

  CardInfo Card(int card) override {
    cudaDeviceProp properties;
    Check("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, card));
    CardInfo info;
    info.name = properties.name;
    char bus_id[32] = {};
    Check("cudaDeviceGetPCIBusId", cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), card));
    info.pci_bus_id = bus_id;
    info.memory_bytes = properties.totalGlobalMem;
    info.major = properties.major;
    info.minor = properties.minor;
    info.multiprocessors = properties.multiProcessorCount;
    info.shared_bytes_per_block = properties.sharedMemPerBlockOptin;
    return info;
  }

  size_t FreeBytes(int card) override {
    Use(card);
    size_t free = 0;
    size_t total = 0;
    Check("cudaMemGetInfo", cudaMemGetInfo(&free, &total));
    return free;
  }

  void* Allocate(int card, size_t bytes) override {
    Use(card);
    void* data = nullptr;
    return Allocated("cudaMalloc", cudaMalloc(&data, bytes)) ? data : nullptr;
  }
  void Free(int card, void* data) override {
    Use(card);
    Check("cudaFree", cudaFree(data));
  }
  void* AllocatePinned(size_t bytes) override {
    void* data = nullptr;
    return Allocated("cudaHostAlloc", cudaHostAlloc(&data, bytes, cudaHostAllocPortable)) ? data : nullptr;
  }
  void FreePinned(void* data) override { Check("cudaFreeHost", cudaFreeHost(data)); }

  StreamHandle MakeStream(int card, const std::string&) override {
    Use(card);
    cudaStream_t stream = nullptr;
    Check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return {stream};
  }
  void DestroyStream(int card, StreamHandle stream) override {
    Use(card);
    Check("cudaStreamDestroy", cudaStreamDestroy(Native(stream)));
  }
  EventHandle MakeEvent(int card) override {
    Use(card);
    cudaEvent_t event = nullptr;
    Check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync));
    return {event};
  }
  void DestroyEvent(int card, EventHandle event) override {
    Use(card);
    Check("cudaEventDestroy", cudaEventDestroy(Native(event)));
  }
  void Record(EventHandle event, StreamHandle stream) override {
    Check("cudaEventRecord", cudaEventRecord(Native(event), Native(stream)));
  }
  void Wait(StreamHandle stream, EventHandle event) override {
    Check("cudaStreamWaitEvent", cudaStreamWaitEvent(Native(stream), Native(event), cudaEventWaitDefault));
  }
  Status IsReached(EventHandle event, bool* reached) override {
    const cudaError_t error = cudaEventQuery(Native(event));
    *reached = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
      (void)cudaGetLastError();
      return {};
    }
    return StatusOf("cudaEventQuery", error);
  }
  Status Synchronize(EventHandle event) override {
    return StatusOf("cudaEventSynchronize", cudaEventSynchronize(Native(event)));
  }

  void CopyAsync(void* to, const void* from, size_t bytes, Copy direction, StreamHandle stream) override {
    if (bytes == 0) return;
    const cudaMemcpyKind kind = direction == Copy::kToHost     ? cudaMemcpyDeviceToHost
                                : direction == Copy::kFromHost ? cudaMemcpyHostToDevice
                                                               : cudaMemcpyDeviceToDevice;
    Check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, kind, Native(stream)));
  }
  void FillAsync(void* to, unsigned char value, size_t bytes, StreamHandle stream) override {
    if (bytes == 0) return;
    Check("cudaMemsetAsync", cudaMemsetAsync(to, value, bytes, Native(stream)));
  }

  void Launch(const KernelCode& code, const LaunchSize& size, const void* argument, size_t,
              StreamHandle stream) override {
    UseCardOf(stream);
    if (size.shared_bytes > kSharedWithoutAsking) AllowShared(code, size.shared_bytes);
    void* arguments[] = {const_cast<void*>(argument)};
    const cudaError_t error = cudaLaunchKernel(code.device, dim3(size.blocks[0], size.blocks[1], size.blocks[2]),
                                               dim3(size.threads[0], size.threads[1], size.threads[2]), arguments,
                                               size.shared_bytes, Native(stream));
    if (error != cudaSuccess) [[unlikely]]
      Throw("cudaLaunchKernel", error, StrCat(" of ", code.name));
  }

  bool LoadsKernels() const override { return true; }
  const void* LoadKernel(int card, const std::string& code, const char* name) override {
    Use(card);
    cudaLibrary_t library = nullptr;
    Check("cudaLibraryLoadData", cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    cudaKernel_t kernel = nullptr;
    Check("cudaLibraryGetKernel", cudaLibraryGetKernel(&kernel, library, name));
    return kernel;  // cudaLaunchKernel takes it in place of a function
  }

  void BeginCapture(StreamHandle stream) override {
    // Other threads may allocate meanwhile.
    Check("cudaStreamBeginCapture", cudaStreamBeginCapture(Native(stream), cudaStreamCaptureModeThreadLocal));
  }
  GraphHandle EndCapture(StreamHandle stream) override {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(Native(stream), &graph);
    if (error != cudaSuccess) {
      (void)cudaGetLastError();
      throw FailedPreconditionError(StrCat("[cuda] expected a step that can be captured; got: ", Text(error)));
    }
    cudaGraphExec_t launchable = nullptr;
    const cudaError_t made = cudaGraphInstantiate(&launchable, graph, 0);
    (void)cudaGraphDestroy(graph);
    Check("cudaGraphInstantiate", made);
    return {launchable};
  }
  void LaunchGraph(GraphHandle graph, StreamHandle stream) override {
    Check("cudaGraphLaunch", cudaGraphLaunch(Native(graph), Native(stream)));
  }
  void DestroyGraph(GraphHandle graph) override { Check("cudaGraphExecDestroy", cudaGraphExecDestroy(Native(graph))); }

 private:
  static constexpr size_t kSharedWithoutAsking = 48 * 1024;

  static bool Allocated(const char* call, cudaError_t error) {
    if (error == cudaSuccess) return true;
    if (error != cudaErrorMemoryAllocation) Throw(call, error);
    (void)cudaGetLastError();
    return false;
  }
  // Lets a kernel have more dynamic shared memory on the current card than the card gives without being asked.
  void AllowShared(const KernelCode& code, size_t bytes) {
    int card = 0;
    Check("cudaGetDevice", cudaGetDevice(&card));
    MutexLock lock(mu_);
    size_t& allowed = allowed_[{code.device, card}];
    if (bytes <= allowed) return;
    Check("cudaFuncSetAttribute",
          cudaFuncSetAttribute(code.device, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
    allowed = bytes;
  }

  const int cards_;
  Mutex mu_;
  std::map<std::pair<const void*, int>, size_t> allowed_ COHORT_GUARDED_BY(mu_);
};

std::string CudaVersion(int version) { return StrCat(version / 1000, ".", version % 1000 / 10); }

// Returns the version of the installed driver as its kernel module tells it ("535.104.05"), or "of unknown version".
std::string DriverVersion() {
  std::ifstream file(kDriverVersionFile);
  std::string word;
  while (file >> word) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  }
  return "of unknown version";
}

}  // namespace

DriverSigns LookForDriverOfMachine() {
  for (const char* path :
       {kDriverVersionFile, "/dev/nvidiactl", "/dev/dxg"}) {  // the last one: Linux inside of Windows
    if (access(path, F_OK) == 0) return DriverSigns::kSome;
  }
  return DriverSigns::kNone;
}

Driver* MakeDriver(std::string* why) {
  if (LookForDriverOfMachine() == DriverSigns::kNone) {
    *why = StrCat("expected a driver of NVIDIA's, ", kOldestDriver, " or later; this machine has none (",
                  kDriverVersionFile, " does not exist)");
    return nullptr;
  }
  int version = 0;
  const cudaError_t asked = cudaDriverGetVersion(&version);
  if (asked != cudaSuccess || version < kOldestCuda) {
    (void)cudaGetLastError();
    *why = StrCat(
        "expected a driver ", kOldestDriver, " or later, which has CUDA ", CudaVersion(kOldestCuda),
        "; this machine has driver ", DriverVersion(),
        version == 0 ? ", and libcuda.so.1 cannot be opened" : StrCat(", which has CUDA ", CudaVersion(version)));
    return nullptr;
  }
  int cards = 0;
  const cudaError_t counted = cudaGetDeviceCount(&cards);
  if (counted != cudaSuccess || cards == 0) {
    (void)cudaGetLastError();
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    *why = StrCat("expected at least one card; the driver lists none: ", Text(counted),
                  visible == nullptr ? std::string() : StrCat("; CUDA_VISIBLE_DEVICES is '", visible, "'"));
    return nullptr;
  }
  return new RuntimeDriver(cards);  // streams use it until the process ends
}

}  // namespace cohort::cuda
