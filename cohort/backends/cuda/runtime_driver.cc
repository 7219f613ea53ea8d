// The Driver of builds with CUDA: it calls cudart, which is linked statically and opens libcuda.so.1 at its first call.
// So a program starts, and this file does nothing, on machines without a driver.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/cudart_status.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernel_not_loaded.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr const char* kDriverVersionFile = "/proc/driver/nvidia/version";

void Check(const char* call, int card, cudaError_t error) {
  if (error != cudaSuccess) [[unlikely]]
    CudartStatus(call, card, error).ThrowIfError();
}
// Makes the card the current one of this thread. All calls that need a context begin with it: otherwise a thread would
// make a context on card 0, which the program may not want to use.
void Use(int card) { Check("cudaSetDevice", card, cudaSetDevice(card)); }

cudaStream_t Native(StreamHandle stream) { return static_cast<cudaStream_t>(stream.native); }
cudaEvent_t Native(EventHandle event) { return static_cast<cudaEvent_t>(event.native); }
cudaGraphExec_t Native(GraphHandle graph) { return static_cast<cudaGraphExec_t>(graph.native); }

// Whether this thread captures a stream.
thread_local bool captures = false;

class RuntimeDriver final : public Driver {
 public:
  explicit RuntimeDriver(int cards) : cards_(cards) {}

  int CardCount() override { return cards_; }

  CardInfo Card(int card) override {
    MutexLock lock(mu_);
    CardInfo& known = known_[card];
    if (known.memory_bytes == 0) known = Ask(card);
    return known;
  }

  size_t FreeBytes(int card) override {
    Use(card);
    size_t free = 0;
    size_t total = 0;
    Check("cudaMemGetInfo", card, cudaMemGetInfo(&free, &total));
    return free;
  }

  void* Allocate(int card, size_t bytes) override {
    Use(card);
    void* data = nullptr;
    return Allocated("cudaMalloc", card, cudaMalloc(&data, bytes)) ? data : nullptr;
  }
  void Free(int card, void* data) override {
    Use(card);
    Check("cudaFree", card, cudaFree(data));
  }
  void* AllocatePinned(int card, size_t bytes) override {
    Use(card);
    void* data = nullptr;
    return Allocated("cudaHostAlloc", card, cudaHostAlloc(&data, bytes, cudaHostAllocPortable)) ? data : nullptr;
  }
  void FreePinned(int card, void* data) override {
    Use(card);
    Check("cudaFreeHost", card, cudaFreeHost(data));
  }

  StreamHandle MakeStream(int card, const std::string&) override {
    Use(card);
    cudaStream_t stream = nullptr;
    Check("cudaStreamCreateWithFlags", card, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return {stream, card};
  }
  void Destroy(int card, StreamHandle stream) override {
    Use(card);
    Check("cudaStreamDestroy", card, cudaStreamDestroy(Native(stream)));
  }
  EventHandle MakeEvent(int card, EventUse use) override {
    Use(card);
    cudaEvent_t event = nullptr;
    const unsigned int flags = cudaEventBlockingSync | (use == EventUse::kOrder ? cudaEventDisableTiming : 0);
    Check("cudaEventCreateWithFlags", card, cudaEventCreateWithFlags(&event, flags));
    return {event, card};
  }
  void Destroy(int card, EventHandle event) override {
    Use(card);
    Check("cudaEventDestroy", card, cudaEventDestroy(Native(event)));
  }
  void Record(EventHandle event, StreamHandle stream) override {
    Use(stream.card);
    Check("cudaEventRecord", stream.card, cudaEventRecord(Native(event), Native(stream)));
  }
  void Wait(StreamHandle stream, EventHandle event) override {
    Use(stream.card);
    Check("cudaStreamWaitEvent", stream.card, cudaStreamWaitEvent(Native(stream), Native(event), cudaEventWaitDefault));
  }
  Status IsReached(EventHandle event, bool* reached) override {
    *reached = false;
    if (Status used = CudartStatus("cudaSetDevice", event.card, cudaSetDevice(event.card)); !used.ok()) return used;
    const cudaError_t error = cudaEventQuery(Native(event));
    *reached = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
      (void)cudaGetLastError();
      return {};
    }
    return CudartStatus("cudaEventQuery", event.card, error);
  }
  Status Synchronize(EventHandle event) override {
    if (Status used = CudartStatus("cudaSetDevice", event.card, cudaSetDevice(event.card)); !used.ok()) return used;
    return CudartStatus("cudaEventSynchronize", event.card, cudaEventSynchronize(Native(event)));
  }

  double MicrosecondsBetween(EventHandle begin, EventHandle end) override {
    Use(begin.card);
    float milliseconds = 0;
    Check("cudaEventElapsedTime", begin.card, cudaEventElapsedTime(&milliseconds, Native(begin), Native(end)));
    constexpr double kMicroseconds = 1000;
    return kMicroseconds * static_cast<double>(milliseconds);
  }

  // Segments come from cudaMalloc and not from a pool of the driver's, so a card with access reaches all of them.
  void EnablePeerAccess(int card, int peer) override {
    MutexLock lock(mu_);
    if (peers_.count(std::minmax({card, peer})) > 0) return;
    const bool direct = ReachesMemory(card, peer) && ReachesMemory(peer, card);
    peers_.insert(std::minmax({card, peer}));
    LogInfo("cuda", "the cards ", card, " and ", peer, direct ? " reach" : " do not reach", " each other's memory",
            direct ? "" : ": copies between them go through host memory");
  }

  void CopyAsync(void* to, const void* from, size_t bytes, Copy direction, StreamHandle stream) override {
    if (bytes == 0) return;
    Use(stream.card);
    const cudaMemcpyKind kind = direction == Copy::kToHost     ? cudaMemcpyDeviceToHost
                                : direction == Copy::kFromHost ? cudaMemcpyHostToDevice
                                                               : cudaMemcpyDeviceToDevice;
    Check("cudaMemcpyAsync", stream.card, cudaMemcpyAsync(to, from, bytes, kind, Native(stream)));
  }
  void FillAsync(void* to, unsigned char value, size_t bytes, StreamHandle stream) override {
    if (bytes == 0) return;
    Use(stream.card);
    Check("cudaMemsetAsync", stream.card, cudaMemsetAsync(to, value, bytes, Native(stream)));
  }

  void Launch(const KernelCode& code, const LaunchSize& size, const void* argument, size_t,
              StreamHandle stream) override {
    Use(stream.card);
    if (captures && !HasLoaded(code, stream.card)) {
      throw KernelNotLoaded{[this, &code, card = stream.card] { Load(code, card); }};
    }
    if (size.shared_bytes > kSharedWithoutAsking) AllowShared(code, stream.card, size.shared_bytes);
    void* arguments[] = {const_cast<void*>(argument)};
    const cudaError_t error = cudaLaunchKernel(code.device, dim3(size.blocks[0], size.blocks[1], size.blocks[2]),
                                               dim3(size.threads[0], size.threads[1], size.threads[2]), arguments,
                                               size.shared_bytes, Native(stream));
    if (error != cudaSuccess) [[unlikely]]
      CudartStatus(StrCat("cudaLaunchKernel of ", code.name), stream.card, error).ThrowIfError();
    if (!captures) NoteLoaded(code, stream.card);
  }

  bool LoadsKernels() const override { return true; }
  const void* LoadKernel(int card, const std::string& code, const char* name) override {
    Use(card);
    cudaLibrary_t library = nullptr;
    Check("cudaLibraryLoadData", card,
          cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    cudaKernel_t kernel = nullptr;
    Check("cudaLibraryGetKernel", card, cudaLibraryGetKernel(&kernel, library, name));
    return kernel;  // cudaLaunchKernel takes it in place of a function
  }

  void BeginCapture(StreamHandle stream) override {
    Use(stream.card);
    // Other threads may allocate meanwhile.
    Check("cudaStreamBeginCapture", stream.card,
          cudaStreamBeginCapture(Native(stream), cudaStreamCaptureModeThreadLocal));
    captures = true;
  }
  GraphHandle EndCapture(StreamHandle stream) override {
    captures = false;
    Use(stream.card);
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(Native(stream), &graph);
    if (error != cudaSuccess) {
      (void)cudaGetLastError();
      throw FailedPreconditionError(StrCat("[cuda] expected a step that can be captured; got: ", CudartText(error)));
    }
    cudaGraphExec_t launchable = nullptr;
    const cudaError_t made = cudaGraphInstantiate(&launchable, graph, 0);
    (void)cudaGraphDestroy(graph);
    Check("cudaGraphInstantiate", stream.card, made);
    return {launchable, stream.card};
  }
  bool DropCapture(StreamHandle stream) override {
    captures = false;
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaSetDevice(stream.card);
    if (error == cudaSuccess) error = cudaStreamEndCapture(Native(stream), &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    return error == cudaSuccess;
  }
  void LaunchGraph(GraphHandle graph, StreamHandle stream) override {
    Use(stream.card);
    Check("cudaGraphLaunch", stream.card, cudaGraphLaunch(Native(graph), Native(stream)));
  }
  void Destroy(GraphHandle graph) override {
    Use(graph.card);
    Check("cudaGraphExecDestroy", graph.card, cudaGraphExecDestroy(Native(graph)));
  }

 private:
  static constexpr size_t kSharedWithoutAsking = 48 * 1024;

  static CardInfo Ask(int card) {
    cudaDeviceProp properties;
    Check("cudaGetDeviceProperties", card, cudaGetDeviceProperties(&properties, card));
    CardInfo info;
    info.name = properties.name;
    char bus_id[32] = {};
    Check("cudaDeviceGetPCIBusId", card, cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), card));
    info.pci_bus_id = bus_id;
    info.memory_bytes = properties.totalGlobalMem;
    info.major = properties.major;
    info.minor = properties.minor;
    info.problem = ProblemOfArchitecture(COHORT_CUDA_ARCHITECTURES, info.major, info.minor);
    return info;
  }
  // Lets the card reach the memory of another one. Returns whether there is a way.
  static bool ReachesMemory(int card, int peer) {
    int has_way = 0;
    cudaError_t error = cudaDeviceCanAccessPeer(&has_way, card, peer);
    if (error == cudaSuccess && has_way != 0) {
      Use(card);
      error = cudaDeviceEnablePeerAccess(peer, 0);
    }
    (void)cudaGetLastError();
    return has_way != 0 && (error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled);
  }
  static bool Allocated(const char* call, int card, cudaError_t error) {
    if (error == cudaSuccess) return true;
    if (error != cudaErrorMemoryAllocation) Check(call, card, error);
    (void)cudaGetLastError();
    return false;
  }
  void Load(const KernelCode& code, int card) {
    Use(card);
    cudaFuncAttributes attributes;  // to ask for them loads the code
    const cudaError_t error = cudaFuncGetAttributes(&attributes, code.device);
    if (error != cudaSuccess) CudartStatus(StrCat("cudaFuncGetAttributes of ", code.name), card, error).ThrowIfError();
    NoteLoaded(code, card);
  }
  // Says that the card has loaded the kernel's code. It is called at each launch, so a thread remembers what it has
  // said, and takes no lock for it again.
  void NoteLoaded(const KernelCode& code, int card) {
    thread_local std::set<std::pair<const void*, int>> noted;
    const std::pair<const void*, int> kernel(code.device, card);
    if (!noted.insert(kernel).second) return;
    MutexLock lock(mu_);
    loaded_.insert(kernel);
  }
  bool HasLoaded(const KernelCode& code, int card) {
    MutexLock lock(mu_);
    return loaded_.contains({code.device, card});
  }
  // Lets a kernel have more dynamic shared memory on the card than the card gives without being asked. Requires: the
  // card is the current one of this thread.
  void AllowShared(const KernelCode& code, int card, size_t bytes) {
    MutexLock lock(mu_);
    size_t& allowed = allowed_[{code.device, card}];
    if (bytes <= allowed) return;
    Check("cudaFuncSetAttribute", card,
          cudaFuncSetAttribute(code.device, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
    allowed = bytes;
  }

  const int cards_;
  Mutex mu_;
  std::map<int, CardInfo> known_ COHORT_GUARDED_BY(mu_);
  std::map<std::pair<const void*, int>, size_t> allowed_ COHORT_GUARDED_BY(mu_);
  std::set<std::pair<int, int>> peers_ COHORT_GUARDED_BY(mu_);           // the two cards of EnablePeerAccess, sorted
  std::set<std::pair<const void*, int>> loaded_ COHORT_GUARDED_BY(mu_);  // kernels, and cards that have their code
};

// Returns the version of the installed driver as its kernel module tells it ("535.104.05"), or "".
std::string DriverVersion() {
  std::ifstream file(kDriverVersionFile);
  std::string word;
  while (file >> word) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  }
  return "";
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
  DriverFacts facts;
  facts.looked_at = kDriverVersionFile;
  facts.visible = VisibleDevices();
  facts.exists = LookForDriverOfMachine() != DriverSigns::kNone;
  if (facts.exists) {
    facts.version = DriverVersion();
    if (cudaDriverGetVersion(&facts.cuda) != cudaSuccess) facts.cuda = 0;
  }
  if (facts.cuda >= kOldestCuda) {
    UseCards();  // the driver does not work in a child that is forked after it has listed the cards
    const cudaError_t listed = cudaGetDeviceCount(&facts.cards);
    if (listed != cudaSuccess) facts.cards = 0;
    facts.listing = CudartText(listed);
    (void)cudaGetLastError();
  }
  *why = ProblemOfDriver(facts);
  return why->empty() ? new RuntimeDriver(facts.cards) : nullptr;  // streams use it until the process ends
}

}  // namespace cohort::cuda
