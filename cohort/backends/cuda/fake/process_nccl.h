// ProcessNccl: an Nccl whose members are processes of one machine, for programs on fake cards. Tests kill and freeze
// them. For tests only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/backends/cuda/libraries/nccl.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

// The process that makes an identifier has a thread, the hub, which listens on a socket in the folder for temporary
// files. Members connect to it, send what they bring, and get the result. As with cards of one machine, a member that
// is killed or frozen tells the others nothing: their kernels wait until Abort. If the hub's process ends, State
// returns a remote failure.
//
// The environment variable COHORT_FAKE_NCCL_FAULT gives this process a fault. With "kernel:7" it hangs in the kernel of
// its seventh collective, with "call:7" in the call, and with "abort:7" in the kernel and then in Abort; it prints
// "nccl hangs" before. With "init:1" Init fails. With "absent:1" Version throws the error of a machine that has no
// NCCL. The object lives as long as the process. Thread-safe.
class ProcessNccl final : public Nccl {
 public:
  explicit ProcessNccl(Driver& driver);
  ~ProcessNccl() override;

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

 private:
  struct Comm;
  struct Part;
  NcclResult Enqueue(NcclComm comm, const Part& part, StreamHandle stream);
  // Runs a member's part of a collective, on the stream's thread.
  static void RunKernel(const void* argument, const LaunchSize& size);

  Driver& driver_;
  std::string fault_;     // "" or "kernel", "call", "abort", "init", "absent"
  int64_t fault_at_ = 0;  // the number of the collective, from 1
  Mutex mu_;
  int64_t ids_ COHORT_GUARDED_BY(mu_) = 0;
  std::vector<std::unique_ptr<Comm>> comms_ COHORT_GUARDED_BY(mu_);  // all that were made: kernels may still use them
};

}  // namespace cohort::cuda
