// MakeNccl of a build with CUDA. RealNccl opens libnccl.so.2 at the first call. It makes non-blocking communicators
// only.
#include "cohort/backends/cuda/libraries/nccl.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstring>
#include <optional>
#include <utility>

#include "cohort/backends/cuda/libraries/library_requests.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

static_assert(NCCL_MAJOR == 2, "the functions below are those of NCCL 2");

struct Functions {
  explicit Functions(const DynamicLibrary& library)
#define COHORT_FUNCTION(name) name(library.Get<decltype(::name)>(#name))
      : COHORT_FUNCTION(ncclGetVersion),
        COHORT_FUNCTION(ncclGetUniqueId),
        COHORT_FUNCTION(ncclCommInitRankConfig),
        COHORT_FUNCTION(ncclCommGetAsyncError),
        COHORT_FUNCTION(ncclCommAbort),
        COHORT_FUNCTION(ncclGetErrorString),
        COHORT_FUNCTION(ncclGetLastError),
        COHORT_FUNCTION(ncclAllReduce),
        COHORT_FUNCTION(ncclBroadcast),
        COHORT_FUNCTION(ncclAllGather) {
  }
#undef COHORT_FUNCTION
#define COHORT_FUNCTION(name) decltype(::name)* const name
  COHORT_FUNCTION(ncclGetVersion);
  COHORT_FUNCTION(ncclGetUniqueId);
  COHORT_FUNCTION(ncclCommInitRankConfig);
  COHORT_FUNCTION(ncclCommGetAsyncError);
  COHORT_FUNCTION(ncclCommAbort);
  COHORT_FUNCTION(ncclGetErrorString);
  COHORT_FUNCTION(ncclGetLastError);
  COHORT_FUNCTION(ncclAllReduce);
  COHORT_FUNCTION(ncclBroadcast);
  COHORT_FUNCTION(ncclAllGather);
#undef COHORT_FUNCTION
};

ncclDataType_t TypeOf(NcclType type) {
  switch (type) {
    case NcclType::kFloat32: return ncclFloat32;
    case NcclType::kFloat64: return ncclFloat64;
    case NcclType::kInt32: return ncclInt32;
    case NcclType::kInt64: return ncclInt64;
    case NcclType::kUint8: return ncclUint8;
  }
  return ncclUint8;
}

ncclRedOp_t OpOf(NcclOp op) {
  switch (op) {
    case NcclOp::kSum: return ncclSum;
    case NcclOp::kProduct: return ncclProd;
    case NcclOp::kMin: return ncclMin;
    case NcclOp::kMax: return ncclMax;
  }
  return ncclSum;
}

ncclComm_t Native(NcclComm comm) { return static_cast<ncclComm_t>(comm.native); }
cudaStream_t Native(StreamHandle stream) { return static_cast<cudaStream_t>(stream.native); }

class RealNccl final : public Nccl {
 public:
  int Version() override {
    int version = 0;
    const ncclResult_t result = Open().ncclGetVersion(&version);
    if (result != ncclSuccess) throw InternalError(StrCat("[cuda/libraries] ncclGetVersion: ", Text(result, nullptr)));
    return version;
  }
  std::string UniqueId() override {
    ncclUniqueId id;
    const ncclResult_t result = Open().ncclGetUniqueId(&id);
    if (result != ncclSuccess) throw InternalError(StrCat("[cuda/libraries] ncclGetUniqueId: ", Text(result, nullptr)));
    return {id.internal, NCCL_UNIQUE_ID_BYTES};
  }
  NcclResult Init(int card, const std::string& id, int rank, int size, NcclComm* comm) override {
    if (id.size() != NCCL_UNIQUE_ID_BYTES) {
      return {NcclResult::State::kFailed,
              StrCat("expected an identifier of ", NCCL_UNIQUE_ID_BYTES, " bytes; got ", id.size(), " bytes")};
    }
    ncclUniqueId unique;
    std::memcpy(unique.internal, id.data(), id.size());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (cudaSetDevice(card) != cudaSuccess) return {NcclResult::State::kFailed, "cudaSetDevice has failed"};
    ncclComm_t made = nullptr;
    const ncclResult_t result = Open().ncclCommInitRankConfig(&made, size, unique, rank, &config);
    comm->native = made;
    return Outcome(result, made);
  }
  NcclResult AllReduce(NcclComm comm, const void* in, void* out, size_t count, NcclType type, NcclOp op,
                       StreamHandle stream) override {
    return Call(comm, stream, [&](ncclComm_t native, cudaStream_t on) {
      return Open().ncclAllReduce(in, out, count, TypeOf(type), OpOf(op), native, on);
    });
  }
  NcclResult Broadcast(NcclComm comm, const void* in, void* out, size_t count, NcclType type, int root,
                       StreamHandle stream) override {
    return Call(comm, stream, [&](ncclComm_t native, cudaStream_t on) {
      return Open().ncclBroadcast(in, out, count, TypeOf(type), root, native, on);
    });
  }
  NcclResult AllGather(NcclComm comm, const void* in, void* out, size_t count, NcclType type,
                       StreamHandle stream) override {
    return Call(comm, stream, [&](ncclComm_t native, cudaStream_t on) {
      return Open().ncclAllGather(in, out, count, TypeOf(type), native, on);
    });
  }
  NcclResult State(NcclComm comm) override {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t result = Open().ncclCommGetAsyncError(Native(comm), &state);
    return Outcome(result == ncclSuccess ? state : result, Native(comm));
  }
  NcclResult Abort(NcclComm comm) override { return Outcome(Open().ncclCommAbort(Native(comm)), nullptr); }

 private:
  template <typename Fn>
  NcclResult Call(NcclComm comm, StreamHandle stream, const Fn& fn) {
    if (cudaSetDevice(stream.card) != cudaSuccess) {
      return {NcclResult::State::kFailed, "cudaSetDevice has failed"};
    }
    return Outcome(fn(Native(comm), Native(stream)), Native(comm));
  }
  NcclResult Outcome(ncclResult_t result, ncclComm_t comm) {
    switch (result) {
      case ncclSuccess: return {};
      case ncclInProgress: return {NcclResult::State::kInProgress, ""};
      case ncclRemoteError: return {NcclResult::State::kRemoteFailed, Text(result, comm)};
      default: return {NcclResult::State::kFailed, Text(result, comm)};
    }
  }
  std::string Text(ncclResult_t result, ncclComm_t comm) {
    const Functions& nccl = Open();
    const char* const last = nccl.ncclGetLastError(comm);
    return StrCat(nccl.ncclGetErrorString(result), last == nullptr || *last == 0 ? "" : StrCat(": ", last));
  }
  const Functions& Open() {
    MutexLock lock(mu_);
    if (!functions_) functions_.emplace(DynamicLibrary::Open(NcclRequest(), CudaLibraryFolders()));
    return *functions_;
  }

  Mutex mu_;
  std::optional<const Functions> functions_ COHORT_GUARDED_BY(mu_);  // never changes once it is set
};

}  // namespace

std::unique_ptr<Nccl> MakeNccl() { return std::make_unique<RealNccl>(); }

}  // namespace cohort::cuda
