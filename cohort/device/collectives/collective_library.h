// CollectiveLibrary: a vendor's library of collectives between devices of several processes, and its communicators. A
// backend may offer one. collective/ decides when and in which order its calls are made.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cohort/core/tensor.h"
#include "cohort/device/communicator.h"
#include "cohort/device/device.h"

namespace cohort {

enum class LibraryCollective { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

// One collective as one member calls it.
struct LibraryCall {
  LibraryCollective kind = LibraryCollective::kAllReduce;
  ReduceOp op = ReduceOp::kSum;  // only for kAllReduce and kReduceScatter
  int root = 0;                  // only for kBroadcast
  Tensor input;                  // in the memory of the communicator's device; complete
  Tensor output;                 // in the same memory
};

// One member's connection to all others. One thread at a time may use it. No function but Abort waits for other
// members. After a function has thrown, only Abort and the destructor may be called.
class LibraryCommunicator {
 public:
  virtual ~LibraryCommunicator() = default;
  // Begins a collective. All members have to begin the same ones in the same order, which nothing checks. Requires: the
  // communicator is idle. Throws the errors of the library and of the device.
  virtual void Begin(LibraryCall call) = 0;
  // Goes on with the connecting or the collective that has begun. Returns true if the communicator is idle: connected,
  // and the output is complete. Throws UnavailableError if another member has closed its connections, and other errors
  // if the library or the device has failed here.
  virtual bool IsIdle() = 0;
  // Returns whether the library has passed the collective to the device. Until then it may wait inside its own code.
  virtual bool is_on_device() const = 0;
  // Ends what is under way and closes all connections. It may hang if the library does.
  virtual void Abort() = 0;
};

// One library of the process. The backend owns it, and it lives as long as the process. Thread-safe.
class CollectiveLibrary {
 public:
  virtual ~CollectiveLibrary() = default;
  // Opens the library if it is not open yet. Throws FailedPreconditionError or UnimplementedError, which says why it
  // cannot be used here.
  virtual void Open() = 0;
  // Returns the name and the version: "NCCL 2.28.7". Requires: it is open.
  virtual std::string Describe() = 0;
  // Returns a name of the physical device. Two devices of one machine have equal names if they share one. Two members
  // that share a physical device cannot be in one communicator.
  virtual std::string PhysicalName(const Device& device) = 0;
  // Returns whether the library computes this collective as Communicator promises it.
  virtual bool Has(LibraryCollective kind, ReduceOp op, DType dtype) = 0;
  // Returns a new identifier for a communicator. One member makes it and gives it to all others.
  virtual std::string NewId() = 0;
  // Begins to connect the member `rank` of `size` members. `wake` is called, on any thread, when it is worth to call
  // IsIdle; other changes are not told. `wake` must be quick. Does not wait. Throws the errors of the library.
  virtual std::unique_ptr<LibraryCommunicator> Connect(Device& device, const std::string& id, int rank, int size,
                                                       std::function<void()> wake) = 0;
};

}  // namespace cohort
