// CudaStepRecorder. Record captures the step again and again until the memory is large enough and the card has the code
// of all kernels: no call of the driver may allocate or load code while a stream is captured, and nobody knows before
// what the step needs. An attempt costs the time in which the host enqueues the step, and changes nothing. At the end,
// a segment that turned out much too large is replaced by one that fits.
#include "cohort/backends/cuda/recording/step_recorder.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/kernel_not_loaded.h"
#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/recording/recorded_graph.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr size_t kSegmentUnit = size_t{2} << 20;
constexpr size_t kMostWaste = size_t{4} << 20;  // of a segment that is kept
constexpr size_t kLeastPinned = 4096;
constexpr size_t kMostPinned = size_t{64} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

bool IsObject(DType dtype) { return DTypeSize(dtype) == 0; }

// Stateful ops whose state is a variable's value, which lies on the card.
bool HasStateOnCard(const Node& node) {
  static const std::set<std::string, std::less<>> reads = {"VarHandleOp", "ReadVariableOp", "ResourceGather",
                                                           "_CheckIndices"};
  return node.op().updates_variable() || reads.count(node.op_name()) > 0;
}

// The host counts the numbers that these ops have drawn, and tells each run where its numbers begin.
bool DrawsNumbers(const Node& node) {
  static const std::set<std::string, std::less<>> ops = {"RandomUniform", "RandomStandardNormal", "TruncatedNormal",
                                                         "RandomUniformInt", "RandomShuffle"};
  return ops.count(node.op_name()) > 0;
}

// VariableShape answers on the host. If the shape is declared, it is the same in all steps.
bool AsksForFixedShape(const Node& node) {
  if (node.op_name() != "VariableShape") return false;
  const Node& handle = *node.input(0).node;
  return handle.op_name() == "VarHandleOp" && handle.attr<Shape>("shape").IsFullyDefined();
}

// Returns whether a value of the node consists of objects other than handles of variables.
bool HasObjects(const Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    const DType dtype = node.input(i).dtype();
    if (IsObject(dtype) && dtype != DType::kResource) return true;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsObject(node.output_dtype(i)) && node.output_dtype(i) != DType::kResource) return true;
  }
  return false;
}

}  // namespace

CudaStepRecorder::CudaStepRecorder(Driver& driver, int card, const std::string& device, CudaStream& compute,
                                   CudaMemory& memory, std::string type, ResourceManager& resources,
                                   std::function<Tensor(const Tensor&)> copy_ahead)
    : driver_(driver),
      card_(card),
      type_(std::move(type)),
      device_(device),
      memory_(memory),
      resources_(resources),
      copy_ahead_(std::move(copy_ahead)),
      pinned_pool_(PinnedPool::Of(driver)),
      graphs_(std::make_shared<RecordedGraphs>()),
      home_{driver, card, compute, resources, pinned_pool_, graphs_},
      segments_(memory) {
  memory_.SetBeforeExhausted([graphs = graphs_] { return graphs->DropIdle(); });
}

CudaStepRecorder::~CudaStepRecorder() {
  if (IsForkedFromUser()) return;
  try {
    if (stream_.native != nullptr) driver_.Destroy(card_, stream_);
  } catch (const Error&) {
    // The card has failed. The process keeps the stream.
  }
}

std::string CudaStepRecorder::WhyNot(const Node& node, OpKernel& kernel) const {
  const OpDef& op = node.op();
  const KernelMemory memory = KernelRegistry::Global().MemoryOf(node.op_name(), type_);
  if (memory == KernelMemory::kHost || IsHostFallback(kernel)) return "its work is done on the host";
  if (HasObjects(node)) return "its values are objects in host memory";
  if (kernel.AsAsync() != nullptr) return "it waits for a value on the host, or for something else";
  if (op.has_data_dependent_shape()) return "the shapes of its outputs depend on the data";
  if (memory == KernelMemory::kEither && node.op_name() != "NoOp" && node.op_name() != "_ToDevice") {
    return "it moves values on the host";
  }
  if (op.is_stateful() && !HasStateOnCard(node) && !DrawsNumbers(node) && !AsksForFixedShape(node)) {
    return "it has a state on the host, which changes from step to step";
  }
  return "";
}

std::unique_ptr<RecordedStep> CudaStepRecorder::Record(const Work& work) {
  const MutexLock lock(mu_);
  if (stream_.native == nullptr) stream_ = driver_.MakeStream(card_, StrCat(device_, " recording"));
  // However an attempt ends, what was prepared for the next one is let go at the end.
  struct Clear {
    CudaStepRecorder& recorder;
    ~Clear() COHORT_NO_THREAD_SAFETY_ANALYSIS {
      recorder.own_.clear();
      recorder.pinned_.Reset();
    }
  } const clear{*this};
  fits_ = false;
  MakePinned(kLeastPinned);
  for (;;) {  // ends: the memory grows, and the card's is limited; each kernel is loaded once
    if (std::unique_ptr<RecordedStep> recorded = TryToRecord(work)) return recorded;
  }
}

std::unique_ptr<RecordedStep> CudaStepRecorder::TryToRecord(const Work& work) {
  const int64_t epoch = resources_.epoch();  // before any variable is looked up
  auto memory = std::make_shared<RecordingMemory>(memory_.space(), driver_, stream_, segments_.Held());
  RecordedParts parts;
  GraphHandle graph;
  try {
    graph = Capture(work, memory, &parts);
  } catch (const RecordingNeedsMemory& needed) {
    size_t own = 0;
    for (const RecordingSegmentPtr& segment : own_) own += segment->size();
    memory.reset();
    own_.clear();
    own_.push_back(MakeLarger(own, needed.bytes));
    return nullptr;
  } catch (const RecordingNeedsPinned& needed) {
    MakePinned(needed.bytes);
    return nullptr;
  } catch (const KernelNotLoaded& needed) {
    needed.load();
    return nullptr;
  }
  const size_t used = memory->most_in_use();
  std::unique_ptr<RecordedStep> recorded = std::make_unique<RecordedGraph>(home_, graph, std::move(parts), epoch);
  if (!std::exchange(fits_, true) && own_.size() == 1 && own_[0]->size() == memory->size() &&
      used + kMostWaste < memory->size()) {
    recorded.reset();
    memory.reset();
    own_.clear();
    own_.push_back(segments_.Make(used));
    return nullptr;
  }
  LogDebug("cuda", "a step was recorded on ", device_, " in ", used, " of ", memory->size(), " bytes");
  return recorded;
}

RecordingSegmentPtr CudaStepRecorder::MakeLarger(size_t bytes, size_t request) {
  const size_t least = RoundUp(bytes + request, kSegmentUnit);
  if (2 * bytes > least) {
    try {
      return segments_.Make(RoundUp(2 * bytes, kSegmentUnit));
    } catch (const ResourceExhaustedError&) {
      // The step may need less.
    }
  }
  return segments_.Make(least);
}

GraphHandle CudaStepRecorder::Capture(const Work& work, const std::shared_ptr<RecordingMemory>& memory,
                                      RecordedParts* parts) {
  driver_.BeginCapture(stream_);
  std::exception_ptr failure;
  {
    CudaRecording recording(driver_, stream_, memory, pinned_);
    try {
      work(recording);
      recording.Finish();
      *parts = recording.TakeParts();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (failure != nullptr) {
    const bool valid = driver_.DropCapture(stream_);
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      if (valid) throw;
      // A call that is not allowed. Another thread may have made it, so another attempt may succeed.
      throw AbortedError(error.what());
    }
  }
  try {
    return driver_.EndCapture(stream_);
  } catch (const FailedPreconditionError& invalid) {
    *parts = RecordedParts();
    throw AbortedError(invalid.what());
  }
}

void CudaStepRecorder::MakePinned(size_t bytes) {
  if (bytes > kMostPinned) {
    throw UnimplementedError(StrCat("[cuda] expected at most ", kMostPinned >> 20,
                                    " MiB of fetched values in a recorded step; got more than ", bytes, " bytes"));
  }
  pinned_ = pinned_pool_->NewTensor(card_, DType::kUint8, Shape{static_cast<int64_t>(std::bit_ceil(bytes))});
  if (pinned_pool_->Has(pinned_)) return;
  throw ResourceExhaustedError(
      StrCat("[cuda] expected ", bytes, " bytes of pinned memory for a recorded step; got none"));
}

}  // namespace cohort::cuda
