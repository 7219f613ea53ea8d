// Driver: everything that the CUDA backend asks of NVIDIA's runtime library: cards, memory, streams, events, launches
// and graphs. The real one (runtime_driver.cc) calls cudart. The fake one (fake/fake_driver.h) works in host memory, so
// that the whole backend is tested on machines without a card.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cohort/core/error.h"

namespace cohort::cuda {

// Things that the driver has made, as it knows them, and their card. Only the driver that made one may use it.
struct StreamHandle {
  void* native = nullptr;
  int card = 0;
};
struct EventHandle {
  void* native = nullptr;
  int card = 0;
};
struct GraphHandle {  // a captured graph that can be launched
  void* native = nullptr;
  int card = 0;
};

// What a program may know about a card of this machine.
struct CardInfo {
  std::string name;        // "NVIDIA H100 80GB HBM3"
  std::string pci_bus_id;  // "0000:01:00.0"
  size_t memory_bytes = 0;
  int major = 0;  // the compute capability is major.minor
  int minor = 0;
  std::string problem;  // why this program cannot use the card; empty if it can
};

// How many blocks a launch has, how many threads a block, and how many bytes of dynamic shared memory a block.
struct LaunchSize {
  uint32_t blocks[3] = {1, 1, 1};
  uint32_t threads[3] = {1, 1, 1};
  size_t shared_bytes = 0;
};

// One kernel, compiled for the card and for the host. dialect/launch.h makes these objects, which exist as long as the
// process.
struct KernelCode {
  const char* name;
  const void* device;  // the address of the __global__ function, or null in a build without CUDA
  // Runs all blocks of a launch on the calling thread, on host memory. `argument` is the kernel object.
  void (*host)(const void* argument, const LaunchSize& size);
};

// What an event is for. One with a time costs the card more.
enum class EventUse { kOrder, kOrderAndTime };

// The clock of a driver.
class CardClock {
 public:
  virtual ~CardClock() = default;
  // Returns how much time of the card lies between two events that have times. Requires: both are reached.
  virtual double MicrosecondsBetween(EventHandle begin, EventHandle end) = 0;
};

// The number of a driver. No other driver of the process has it, also none that is made later. So what the process
// knows of a driver is found by its number: tests make and end many fake drivers, and addresses come again.
class DriverId {
 public:
  int64_t id() const { return id_; }

 private:
  static inline std::atomic<int64_t> last_{0};
  const int64_t id_ = ++last_;
};

// One driver serves all devices of the process, and lives as long as it. Thread-safe. `card` is a number from 0 to
// CardCount() - 1. CardCount and Card use no card; the first call of another function with a card makes a context on
// it, which takes some hundred MB of its memory. Functions throw InternalError with the name and the text of the
// driver's error ("an illegal memory access was encountered"), unless their comment says something else. After work on
// a stream has failed, all later calls on the card throw its error.
class Driver : public CardClock, public DriverId {
 public:
  // Returns how many cards the process may use, as CUDA_VISIBLE_DEVICES says.
  virtual int CardCount() = 0;
  virtual CardInfo Card(int card) = 0;
  // Returns how many bytes of the card's memory no process uses now.
  virtual size_t FreeBytes(int card) = 0;
  // Returns whether memory that goes back to a device's cache is filled with bytes of 0xff, in the order of the stream.
  // The fake driver wants that, because then work that reads freed memory reads NaN.
  virtual bool PoisonsFreedMemory() const { return false; }

  // Returns device memory, aligned to 256 bytes, or null if the card has not enough. `bytes` is not 0.
  virtual void* Allocate(int card, size_t bytes) = 0;
  virtual void Free(int card, void* data) = 0;
  // Returns host memory that all cards copy from and to without a stop, or null if there is not enough. `card` is one
  // that the process uses anyway: the driver asks it for the memory.
  virtual void* AllocatePinned(int card, size_t bytes) = 0;
  virtual void FreePinned(int card, void* data) = 0;

  // Makes a stream that does not wait for the default stream.
  virtual StreamHandle MakeStream(int card, const std::string& name) = 0;
  virtual void Destroy(int card, StreamHandle stream) = 0;
  virtual EventHandle MakeEvent(int card, EventUse use) = 0;
  virtual void Destroy(int card, EventHandle event) = 0;
  virtual void Record(EventHandle event, StreamHandle stream) = 0;
  virtual void Wait(StreamHandle stream, EventHandle event) = 0;
  // Sets `reached` to whether all work before the last Record of the event has run. Returns the card's error if it has
  // failed.
  virtual Status IsReached(EventHandle event, bool* reached) = 0;
  // Waits until the event is reached. Returns the card's error if it has failed.
  virtual Status Synchronize(EventHandle event) = 0;

  // Lets two cards reach each other's memory without a detour through host memory, if the machine has a way between
  // them. Copies work without one, too. A call for two cards of an earlier one does nothing.
  virtual void EnablePeerAccess(int card, int peer) = 0;

  // Enqueue work. The memory must stay as it is until the work has run. A host address must be pinned memory if the
  // copy is to overlap with other work.
  enum class Copy { kToHost, kFromHost, kOnDevice };
  virtual void CopyAsync(void* to, const void* from, size_t bytes, Copy direction, StreamHandle stream) = 0;
  virtual void FillAsync(void* to, unsigned char value, size_t bytes, StreamHandle stream) = 0;
  // Enqueues a kernel. Copies the `bytes` of `argument` before it returns. In a capture: may throw KernelNotLoaded.
  virtual void Launch(const KernelCode& code, const LaunchSize& size, const void* argument, size_t bytes,
                      StreamHandle stream) = 0;
  // Returns whether LoadKernel works. It does not if kernels run on the host.
  virtual bool LoadsKernels() const { return false; }
  // Loads code that a compiler has made for the card. Returns its kernel `name` for KernelCode::device. It stays as
  // long as the process.
  virtual const void* LoadKernel(int card, const std::string& code, const char* name);

  // From BeginCapture to EndCapture or DropCapture, work that the calling thread enqueues on the stream is not run but
  // recorded, with its arguments as they are now. EndCapture returns the graph. It throws FailedPreconditionError, with
  // the reason, if a call in between could not be recorded; then nothing is recorded any more.
  virtual void BeginCapture(StreamHandle stream) = 0;
  virtual GraphHandle EndCapture(StreamHandle stream) = 0;
  // Ends a capture whose work is not wanted, and makes no graph. Returns whether all calls could be recorded.
  virtual bool DropCapture(StreamHandle stream) = 0;
  virtual void LaunchGraph(GraphHandle graph, StreamHandle stream) = 0;
  virtual void Destroy(GraphHandle graph) = 0;
};

// Returns the driver of this process, or null if there is none: a build without CUDA, a machine without a driver, or a
// driver that is too old. `why`, if not null, gets the reason in words.
Driver* FindDriver(std::string* why = nullptr);
// For tests: makes `driver` what FindDriver returns; null undoes it. Call it before devices are used for the first
// time.
void InstallDriver(Driver* driver);
// Makes the driver that FindDriver returns if none is installed, or returns null and says why. It is defined once for
// each kind of build: in runtime_driver.cc or in no_cuda.cc.
Driver* MakeDriver(std::string* why);
// What can be known about the driver of the machine without calling it.
enum class DriverSigns {
  kNotBuilt,  // this build has no CUDA
  kNone,      // the machine has no driver
  kSome       // it seems to have one, or one is installed for tests
};
// Looks only at files, so it may be called before main.
DriverSigns LookForDriver();
// The same, without regard to an installed driver. It is defined beside MakeDriver.
DriverSigns LookForDriverOfMachine();

}  // namespace cohort::cuda
