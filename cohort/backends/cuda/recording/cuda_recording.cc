#include "cohort/backends/cuda/recording/cuda_recording.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cohort/backends/cuda/kernels/error_values.cu.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/resource.h"

namespace cohort::cuda {
namespace {

constexpr size_t kPinnedAlignment = 64;
constexpr size_t kOutcomeBytes = 2 * sizeof(ErrorWord);  // the word, and the value behind it

thread_local CudaRecording* current = nullptr;

}  // namespace

CudaRecording::CudaRecording(Driver& driver, StreamHandle stream, std::shared_ptr<RecordingMemory> memory,
                             Tensor pinned)
    : driver_(driver), stream_(stream) {
  parts_.memory = std::move(memory);
  parts_.pinned = std::move(pinned);
  parts_.outcome = reinterpret_cast<const uint64_t*>(TakePinned(kOutcomeBytes));
  current = this;
}

CudaRecording::~CudaRecording() {
  current = nullptr;
  if (parts_.memory != nullptr) parts_.memory->EndRecording();
}

CudaRecording* CudaRecording::Current() { return current; }

void CudaRecording::Fail(const char* what) {
  throw UnimplementedError(
      StrCat("[cuda] expected a step that only enqueues work on its stream; a kernel wants ", what));
}

char* CudaRecording::TakePinned(size_t bytes) {
  const size_t end = pinned_used_ + (bytes + kPinnedAlignment - 1) / kPinnedAlignment * kPinnedAlignment;
  if (end > parts_.pinned.bytes()) throw RecordingNeedsPinned{end};
  return static_cast<char*>(parts_.pinned.raw_data()) + std::exchange(pinned_used_, end);
}

void CudaRecording::Hold(const Tensor& value) {
  const auto same = [&](const Tensor& held) { return held.buffer().get() == value.buffer().get(); };
  if (std::none_of(parts_.held.begin(), parts_.held.end(), same)) parts_.held.push_back(value);
}

Tensor CudaRecording::NewHeld(DType dtype, const Shape& shape) {
  Tensor made(dtype, shape, *parts_.memory);
  Hold(made);
  return made;
}

Tensor CudaRecording::Feed(size_t arg, const Tensor& value) {
  for (const RecordedParts::Feed& feed : parts_.feeds) {
    if (feed.arg == arg) return feed.place;
  }
  Tensor place = NewHeld(value.dtype(), value.shape());
  parts_.feeds.push_back({arg, place});
  return place;
}

void CudaRecording::Fetch(size_t ret, const Tensor& value) {
  RecordedParts::Fetch fetch{ret, value.dtype(), value.shape(), nullptr, Tensor()};
  if (value.space().is_host()) {
    fetch.value = value.Clone();  // the program may want its fed memory back
  } else {
    char* pinned = TakePinned(value.bytes());
    driver_.CopyAsync(pinned, value.raw_data(), value.bytes(), Driver::Copy::kToHost, stream_);
    fetch.pinned = pinned;
  }
  parts_.fetches.push_back(std::move(fetch));
}

Tensor CudaRecording::CopyFromHost(const Tensor& value) {
  Tensor copy = NewHeld(value.dtype(), value.shape());
  if (value.bytes() == 0) return copy;
  char* pinned = TakePinned(value.bytes());
  std::memcpy(pinned, value.raw_data(), value.bytes());
  driver_.CopyAsync(copy.raw_data(), pinned, value.bytes(), Driver::Copy::kFromHost, stream_);
  return copy;
}

Tensor CudaRecording::PerRun(size_t bytes, std::function<void(void* to)> write) {
  Tensor copy(DType::kUint8, Shape{static_cast<int64_t>(bytes)}, *parts_.memory);
  char* pinned = TakePinned(bytes);
  driver_.CopyAsync(copy.raw_data(), pinned, bytes, Driver::Copy::kFromHost, stream_);
  parts_.written.push_back({pinned, std::move(write)});
  return copy;
}

void CudaRecording::Note(const KernelContext& ctx, VariableResource& variable, const Tensor& value, bool updates) {
  for (VariableResource::Place& place : parts_.variables) {
    if (place.variable != &variable) continue;
    if (place.data != value.raw_data() || place.shape != value.shape()) {
      throw AbortedError(StrCat("[cuda] expected the value of variable '", variable.name(),
                                "' at one place while a step is recorded; another step has moved it"));
    }
    place.updates += updates ? 1 : 0;
    return;
  }
  parts_.variables.push_back({&variable, value.raw_data(), value.shape(), updates ? 1 : 0});
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Tensor& input = ctx.input(i);
    if (input.dtype() != DType::kResource || ResourceOfHandle(input).get() != &variable) continue;
    parts_.handles.push_back(input);
    return;
  }
  throw InternalError(
      StrCat("[cuda] expected the handle of variable '", variable.name(), "' as an input of ", ctx.node().Describe()));
}

void CudaRecording::NoteRead(const KernelContext& ctx, VariableResource& variable, const Tensor& value) {
  Note(ctx, variable, value, false);
}

void CudaRecording::Update(const KernelContext& ctx, const std::vector<VariableResource*>& variables,
                           const Change& change) {
  std::vector<Tensor> values;
  for (VariableResource* variable : variables) {
    if (std::count(variables.begin(), variables.end(), variable) > 1) {
      throw InvalidArgumentError(
          StrCat("[variable] expected different variables in one update; got '", variable->name(), "' twice"));
    }
    if (!variable->OwnsValueAlone()) {
      throw AbortedError(StrCat("[cuda] expected that only variable '", variable->name(),
                                "' holds its value when it is updated; another step, or a later node of this one, "
                                "wants the old value, too"));
    }
    values.push_back(variable->Read());
    Note(ctx, *variable, values.back(), true);
  }
  std::vector<Tensor> outs = values;
  change(values, outs);
}

ErrorWords::Check CudaRecording::Announce(ErrorWords::Describe describe, std::string where) {
  if (word_ == nullptr) {
    Tensor word = NewHeld(DType::kUint8, Shape{static_cast<int64_t>(kOutcomeBytes)});
    word_ = static_cast<ErrorWord*>(word.raw_data());
    driver_.FillAsync(word_, 0, kOutcomeBytes, stream_);
  }
  parts_.checks.push_back({std::move(describe), std::move(where)});
  return {word_, static_cast<uint32_t>(parts_.checks.size())};
}

void CudaRecording::Finish() {
  if (word_ != nullptr) LaunchFetchError(driver_, stream_, word_, const_cast<uint64_t*>(parts_.outcome));
  const auto expected = static_cast<int>(parts_.held.size());
  if (parts_.memory->live() == expected) return;
  throw UnimplementedError(StrCat("[cuda] expected a step whose values end with it; ", parts_.memory->live() - expected,
                                  " of them are kept by a kernel or a resource"));
}

}  // namespace cohort::cuda
