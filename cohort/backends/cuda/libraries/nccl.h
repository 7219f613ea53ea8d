// Nccl: the calls of NVIDIA's library of collectives. The real one (nccl.cc) opens it when it is first needed. The fake
// one (fake/fake_nccl.h) connects the threads of one process.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// A communicator of one member. Only the Nccl that made it may use it.
struct NcclComm {
  void* native = nullptr;
};

enum class NcclType { kFloat32, kFloat64, kInt32, kInt64, kUint8 };
enum class NcclOp { kSum, kProduct, kMin, kMax };

// What a call has done. All communicators are non-blocking, so a call may go on in the background.
struct NcclResult {
  enum class State {
    kDone,
    kInProgress,  // State() tells when it is done
    kFailed,
    kRemoteFailed,  // another member has failed or is gone
  };
  State state = State::kDone;
  std::string error;  // of the two that failed: the library's text
};

// The library of the process. Its functions with a communicator may be called by one thread at a time for each
// communicator. Functions that return no NcclResult throw FailedPreconditionError if the library cannot be opened, and
// UnimplementedError in a build without CUDA.
class Nccl {
 public:
  virtual ~Nccl() = default;
  // Returns the version: 22807 is 2.28.7.
  virtual int Version() = 0;
  // Returns a new identifier. It has an address of this process, at which the first members meet.
  virtual std::string UniqueId() = 0;
  // Begins to make a communicator. `id` must be one of UniqueId; if it is not, the result is kFailed.
  virtual NcclResult Init(int card, const std::string& id, int rank, int size, NcclComm* comm) = 0;
  // Enqueue a collective on a stream of the communicator's card. `count` is the number of elements of one member.
  virtual NcclResult AllReduce(NcclComm comm, const void* in, void* out, size_t count, NcclType type, NcclOp op,
                               StreamHandle stream) = 0;
  virtual NcclResult Broadcast(NcclComm comm, const void* in, void* out, size_t count, NcclType type, int root,
                               StreamHandle stream) = 0;
  virtual NcclResult AllGather(NcclComm comm, const void* in, void* out, size_t count, NcclType type,
                               StreamHandle stream) = 0;
  // Returns the state of the last call, or an error that has come since.
  virtual NcclResult State(NcclComm comm) = 0;
  // Ends the kernels of the communicator and frees it. It may hang.
  virtual NcclResult Abort(NcclComm comm) = 0;
};

// Returns the library of this process. It exists as long as the process. Nothing is opened before its first use.
Nccl& FindNccl();
// For tests: makes `nccl` what FindNccl returns; null undoes it.
void InstallNccl(Nccl* nccl);
// Makes what FindNccl returns unless a test has installed another: NCCL, or in a build without CUDA an object that
// throws UnimplementedError.
std::unique_ptr<Nccl> MakeNccl();

}  // namespace cohort::cuda
