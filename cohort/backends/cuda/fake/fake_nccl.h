// FakeNccl: an Nccl whose members are threads of one process, on a driver whose launches run on the host. Its kernels
// wait for each other as those of NCCL do. Members can hang, fail late, or report an error of another member. For tests
// only.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cohort/backends/cuda/libraries/nccl.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

// What goes wrong at a member.
enum class NcclFault {
  kHangInKernel,  // the kernel does not end before Abort
  kHangInCall,    // the call does not return before Heal
  kFailLate,      // State returns an error of this member after the kernel has been enqueued
  kRemoteError,   // State returns that another member has failed
  kHangInAbort,   // Abort does not return before Heal
  kRefuseInit,    // Init fails
};

// It lives as long as the process. Thread-safe.
class FakeNccl final : public Nccl {
 public:
  explicit FakeNccl(Driver& driver);
  ~FakeNccl() override;

  int Version() override;
  std::string UniqueId() override;
  NcclResult Init(int card, const std::string& id, int rank, int size, NcclComm* comm) override;
  NcclResult AllReduce(NcclComm comm, const void* in, void* out, size_t count, NcclType type, NcclOp op,
                       StreamHandle stream) override;
  NcclResult Broadcast(NcclComm comm, const void* in, void* out, size_t count, NcclType type, int root,
                       StreamHandle stream) override;
  NcclResult AllGather(NcclComm comm, const void* in, void* out, size_t count, NcclType type,
                       StreamHandle stream) override;
  NcclResult State(NcclComm comm) override;
  NcclResult Abort(NcclComm comm) override;

  // The next call of the member `rank`, of any communicator, meets the fault, and so do later ones, until Heal.
  void Break(int rank, NcclFault fault);
  // Ends all faults, and the waits of kHangInCall and kHangInAbort.
  void Heal();
  // Makes Version, and so the opening of the library, fail.
  void set_absent(bool absent) { absent_ = absent; }
  // Return how many identifiers were made, how many collectives members have begun, and how many have run to their end.
  int ids() const { return ids_; }
  int64_t calls() const { return calls_; }
  int64_t collectives() const { return collectives_; }

 private:
  struct World;
  struct Comm;
  struct Part;
  friend struct Part;

  bool Has(int rank, NcclFault fault) COHORT_EXCLUDES(mu_);
  // Waits until the member does not have the fault any more.
  void HangWhile(int rank, NcclFault fault) COHORT_EXCLUDES(mu_);
  NcclResult Enqueue(NcclComm comm, std::shared_ptr<Part> part, StreamHandle stream) COHORT_EXCLUDES(mu_);
  // Runs a member's part of a collective on the stream's thread.
  void RunPart(Part& part) COHORT_EXCLUDES(mu_);
  static void RunKernel(const void* argument, const LaunchSize& size);

  Driver& driver_;
  std::atomic<bool> absent_{false};
  std::atomic<int> ids_{0};
  std::atomic<int64_t> calls_{0};
  std::atomic<int64_t> collectives_{0};
  Mutex mu_;
  CondVar changed_;
  std::set<std::pair<int, NcclFault>> faults_ COHORT_GUARDED_BY(mu_);
  std::map<std::string, std::shared_ptr<World>> worlds_ COHORT_GUARDED_BY(mu_);  // by identifier
  std::vector<std::unique_ptr<Comm>> comms_ COHORT_GUARDED_BY(mu_);              // all that were made
};

}  // namespace cohort::cuda
