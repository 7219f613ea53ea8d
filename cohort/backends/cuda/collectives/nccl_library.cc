// NcclLibrary. A communicator has a stream of its own, so that NCCL's kernels run beside others. A collective goes
// through these stages: the stream waits for the compute stream; elements are converted if need be; NCCL enqueues its
// kernel, perhaps in the background (kEnqueuing); the result is converted, and an event is recorded behind it
// (kOnDevice).
#include "cohort/backends/cuda/collectives/nccl_library.h"

#include <chrono>
#include <utility>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/kernels/combine.cu.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/kernels/unary.cu.h"
#include "cohort/backends/cuda/libraries/nccl.h"
#include "cohort/core/logging.h"

namespace cohort::cuda {
namespace {

constexpr std::chrono::seconds kAbortedWithin{3};  // less than an abort may take (collective/nccl/limits.h)

bool ReducesElements(LibraryCollective kind) {
  return kind == LibraryCollective::kAllReduce || kind == LibraryCollective::kReduceScatter;
}

NcclType NcclTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return NcclType::kFloat32;
    case DType::kFloat64: return NcclType::kFloat64;
    case DType::kInt32: return NcclType::kInt32;
    case DType::kInt64: return NcclType::kInt64;
    default: return NcclType::kUint8;
  }
}

NcclOp NcclOpOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kProduct: return NcclOp::kProduct;
    case ReduceOp::kMin: return NcclOp::kMin;
    case ReduceOp::kMax: return NcclOp::kMax;
    case ReduceOp::kSum:
    case ReduceOp::kMean: return NcclOp::kSum;
  }
  return NcclOp::kSum;
}

class NcclCommunicator final : public LibraryCommunicator {
 public:
  NcclCommunicator(CudaDevice& device, const std::string& id, int rank, int size, std::function<void()> wake)
      : device_(device),
        rank_(rank),
        size_(size),
        wake_(std::move(wake)),
        stream_(device.driver(), device.card(), "nccl") {
    try {
      connecting_ = StillGoesOn(FindNccl().Init(device.card(), id, rank, size, &comm_));
    } catch (...) {
      Abort();
      throw;
    }
  }
  ~NcclCommunicator() override { Abort(); }

  void Begin(LibraryCall call) override {
    call_ = std::move(call);
    const DType dtype = call_.input.dtype();
    const bool sums = ReducesElements(call_.kind);
    const DType type = sums && dtype == DType::kBfloat16 ? DType::kFloat32 : dtype;
    if (sums) wide_ = Tensor(type, call_.input.shape(), device_.allocator());
    stream_.Wait(device_.compute_stream()->Record());  // also for the memory's last users
    stage_ = Stage::kEnqueuing;
    if (call_.input.num_elements() == 0) return;
    const void* in = std::as_const(call_.input).raw_data();
    if (type != dtype) {
      LaunchCast(device_.driver(), stream_.handle(), ElementTypeOf(dtype), ElementTypeOf(type),
                 UnaryArgs{in, wide_.raw_data(), wide_.num_elements()});
      in = std::as_const(wide_).raw_data();
    }
    Enqueue(in, type);
  }

  bool IsIdle() override {
    if (connecting_) connecting_ = Goes();
    if (connecting_ || stage_ == Stage::kIdle) return !connecting_;
    const bool goes = Goes();  // also tells of errors that come later
    if (stage_ == Stage::kEnqueuing) {
      if (goes) return false;
      EnqueueEnd();
    }
    if (!event_->reached()) return false;
    event_->Synchronize(std::chrono::steady_clock::now()).ThrowIfError();
    stage_ = Stage::kIdle;
    event_.reset();
    wide_.Reset();
    call_ = {};
    return true;
  }
  bool is_on_device() const override { return stage_ != Stage::kEnqueuing; }

  void Abort() override {
    if (comm_.native == nullptr) return;
    const NcclComm comm = std::exchange(comm_, {});
    (void)FindNccl().Abort(comm);
    // NCCL's kernels have ended. The tensors may go when the stream has run what was behind them.
    if (!stream_.Finish(std::chrono::steady_clock::now() + kAbortedWithin)) {
      LogWarning("cuda", "NCCL's work at rank ", rank_, " does not end within ", kAbortedWithin.count(),
                 " s after its abort; the process keeps the memory of the collective, because the work may still write "
                 "to it");
      KeepUntilProcessEnds(std::make_shared<LibraryCall>(std::move(call_)));
      KeepUntilProcessEnds(std::make_shared<Tensor>(std::move(wide_)));
    }
    call_ = {};
    wide_.Reset();
  }

 private:
  enum class Stage { kIdle, kEnqueuing, kOnDevice };

  // Returns whether the call goes on in the background. Throws if it has failed.
  bool StillGoesOn(const NcclResult& result) const {
    using State = NcclResult::State;
    if (result.state == State::kDone) return false;
    if (result.state == State::kInProgress) return true;
    const std::string text = StrCat("[cuda/nccl] NCCL has failed at rank ", rank_, ": ", result.error);
    if (result.state == State::kRemoteFailed) throw UnavailableError(text);
    throw InternalError(text);
  }
  bool Goes() const { return StillGoesOn(FindNccl().State(comm_)); }

  void Enqueue(const void* in, DType type) {
    Nccl& nccl = FindNccl();
    const auto count = static_cast<size_t>(call_.input.num_elements());
    const auto bytes = call_.input.bytes();
    switch (call_.kind) {
      case LibraryCollective::kAllReduce:
      case LibraryCollective::kReduceScatter:
        (void)StillGoesOn(
            nccl.AllReduce(comm_, in, wide_.raw_data(), count, NcclTypeOf(type), NcclOpOf(call_.op), stream_.handle()));
        break;
      case LibraryCollective::kBroadcast:
        (void)StillGoesOn(
            nccl.Broadcast(comm_, in, call_.output.raw_data(), bytes, NcclType::kUint8, call_.root, stream_.handle()));
        break;
      case LibraryCollective::kAllGather:
        (void)StillGoesOn(
            nccl.AllGather(comm_, in, call_.output.raw_data(), bytes, NcclType::kUint8, stream_.handle()));
        break;
    }
  }

  // Turns the sums of all elements into the output, and records the event behind that.
  void EnqueueEnd() {
    if (ReducesElements(call_.kind) && call_.output.num_elements() > 0) FinishSums();
    stage_ = Stage::kOnDevice;
    event_ = stream_.Record();
    event_->OnReady([wake = wake_](const Status&) { wake(); });
  }
  void FinishSums() {
    Driver& driver = device_.driver();
    const DType type = wide_.dtype();
    const int64_t n = call_.output.num_elements();
    const int64_t first = call_.kind == LibraryCollective::kReduceScatter ? rank_ * n : 0;
    void* sums = static_cast<char*>(wide_.raw_data()) + static_cast<size_t>(first) * DTypeSize(type);
    void* out = call_.output.raw_data();
    const bool converts = type != call_.output.dtype();
    CombineArgs args;
    args.in[args.inputs++] = sums;
    args.out[args.outputs++] = converts ? sums : out;
    args.n = n;
    args.divisor = size_;
    const CombineOp op = call_.op == ReduceOp::kMean ? CombineOp::kMean : CombineOp::kSum;  // of one input: a copy
    if (!converts || op == CombineOp::kMean) LaunchCombine(driver, stream_.handle(), op, ElementTypeOf(type), args);
    if (converts) {
      LaunchCast(driver, stream_.handle(), ElementTypeOf(type), ElementTypeOf(call_.output.dtype()),
                 UnaryArgs{sums, out, n});
    }
  }

  CudaDevice& device_;
  const int rank_;
  const int size_;
  const std::function<void()> wake_;
  CudaStream stream_;
  NcclComm comm_;
  bool connecting_ = false;
  Stage stage_ = Stage::kIdle;
  LibraryCall call_;  // under way
  Tensor wide_;       // the sums of all elements
  std::shared_ptr<StreamEvent> event_;
};

}  // namespace

void NcclLibrary::Open() { (void)FindNccl().Version(); }

std::string NcclLibrary::Describe() {
  const int version = FindNccl().Version();
  return StrCat("NCCL ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

std::string NcclLibrary::PhysicalName(const Device& device) {
  const auto& cuda = static_cast<const CudaDevice&>(device);
  return cuda.driver().Card(cuda.card()).pci_bus_id;
}

bool NcclLibrary::Has(LibraryCollective kind, ReduceOp op, DType dtype) {
  if (!ReducesElements(kind)) return DTypeSize(dtype) > 0;
  const bool loses_nan = IsFloating(dtype) && (op == ReduceOp::kMin || op == ReduceOp::kMax);
  return (IsFloating(dtype) || IsInteger(dtype)) && !loses_nan;
}

std::string NcclLibrary::NewId() { return FindNccl().UniqueId(); }

std::unique_ptr<LibraryCommunicator> NcclLibrary::Connect(Device& device, const std::string& id, int rank, int size,
                                                          std::function<void()> wake) {
  return std::make_unique<NcclCommunicator>(static_cast<CudaDevice&>(device), id, rank, size, std::move(wake));
}

}  // namespace cohort::cuda
