// ErrorWords. A step has an entry from its first check on. BeforeRecord enqueues a kernel for each entry with a new
// check: it copies the word to pinned memory. The callback behind it takes the outcome (Take), and removes the entry if
// no check is left whose outcome is unknown. The word of a removed entry serves another step, which first sets it to 0
// in the order of the stream: so work that still reads it for the old step sees the old value.
#include "cohort/backends/cuda/error_words.h"

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/kernels/error_values.cu.h"
#include "cohort/backends/cuda/kernels/value_checks.h"
#include "cohort/backends/cuda/recording/cuda_recording.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr size_t kErrorsOfChunk = 256;
constexpr size_t kWordsOfError = 2;  // the word, and the value behind it
constexpr size_t kChunkBytes = kErrorsOfChunk * kWordsOfError * sizeof(ErrorWord);

StepError& ErrorOf(const KernelContext& ctx) {
  if (ctx.step().error != nullptr) return *ctx.step().error;
  throw InternalError(
      StrCat("[cuda] expected a step that keeps errors of its streams; got none for ", ctx.node().Describe()));
}

}  // namespace

class ErrorWords::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Driver& driver, int card, const CudaStream& stream) : driver_(driver), card_(card), stream_(stream) {}
  ~Impl() {
    if (IsForkedFromUser()) return;
    try {
      for (uint64_t* chunk : word_chunks_) driver_.Free(card_, chunk);
      for (uint64_t* chunk : pinned_chunks_) driver_.FreePinned(card_, chunk);
    } catch (const Error&) {
      // The card has failed.
    }
  }

  const ErrorWord* WordOf(const KernelContext& ctx) {
    MutexLock lock(mu_);
    const Entry* entry = Find(ctx);
    return entry == nullptr ? nullptr : entry->word;
  }

  const ErrorWord* Hold(const KernelContext& ctx) {
    if (ctx.step().error == nullptr) return nullptr;
    MutexLock lock(mu_);
    // Take sets the error under the lock, before it removes the entry.
    ctx.step().error->status().ThrowIfError();
    Entry* entry = Find(ctx);
    if (entry == nullptr) return nullptr;
    ++entry->open;
    return entry->word;
  }

  void Release(const KernelContext& ctx) {
    if (ctx.step().error == nullptr) return;
    MutexLock lock(mu_);
    const auto found = entries_.find(ctx.step().error);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    --entry.open;
    if (!IsLast(entry)) return;
    if (!entry.failed) Count(*ctx.step().error, &entry, entry.updates);
    Remove(found);
  }

  Check Announce(const KernelContext& ctx, Describe describe, std::string where) {
    StepError& error = ErrorOf(ctx);
    (void)stream_.handle();  // makes the stream, which takes locks that a thread in BeforeRecord may hold
    MutexLock lock(mu_);
    // Memory is taken here, where a kernel can throw, and not when an event is recorded.
    uint64_t* const pinned = TakePinned();
    Entry* entry = Find(ctx);
    try {
      if (entry == nullptr) entry = Make(error, ctx.step().step_id);
    } catch (...) {
      free_pinned_.push_back(pinned);
      throw;
    }
    entry->pinned.push_back(pinned);
    entry->checks.push_back({std::move(describe), std::move(where), entry->updates});
    ++entry->open;
    return {entry->word, static_cast<uint32_t>(entry->checks.size())};
  }

  void Follow(const KernelContext& ctx) {
    MutexLock lock(mu_);
    Entry* entry = Find(ctx);
    if (entry == nullptr) return;
    --entry->open;
    if (!std::exchange(entry->dirty, true)) dirty_.push_back(&ErrorOf(ctx));
  }

  bool MayRun(const KernelContext& ctx) {
    StepError* const error = ctx.step().error;
    if (error == nullptr) return true;
    if (error->set()) return false;
    MutexLock lock(mu_);
    const Entry* entry = Find(ctx);
    return (entry != nullptr && entry->updates > 0) || error->MayRun(ctx.step().cancellation);
  }

  void CountUpdate(const KernelContext& ctx) {
    if (ctx.step().error == nullptr) return;
    MutexLock lock(mu_);
    if (Entry* entry = Find(ctx)) {
      ++entry->updates;
    } else {
      ctx.step().error->CountUpdate();
    }
  }

  StreamEvent::Callback BeforeRecord() {
    std::vector<Reading> readings;
    MutexLock lock(mu_);
    // Emptied first: if the card fails meanwhile, these words are not read again.
    for (StepError* error : std::exchange(dirty_, {})) {
      const auto found = entries_.find(error);
      if (found == entries_.end()) continue;
      Entry& entry = found->second;
      entry.dirty = false;
      uint64_t* const pinned = entry.pinned.back();
      LaunchFetchError(driver_, stream_.handle(), entry.word, pinned);
      entry.pinned.pop_back();
      ++entry.readings;
      readings.push_back({error, entry.serial, pinned, entry.updates});
    }
    if (readings.empty()) return {};
    return [self = shared_from_this(), readings = std::move(readings)](const Status& status) {
      for (const Reading& reading : readings) self->Take(reading, status);
    };
  }

 private:
  struct CheckOfStep {
    Describe describe;
    std::string where;
    int64_t updates_before;  // how many updates stood on the stream before the check
  };
  struct Entry {
    int64_t serial = 0;
    int64_t step_id = 0;
    ErrorWord* word = nullptr;
    std::deque<CheckOfStep> checks;
    std::vector<uint64_t*> pinned;  // for readings: at least one for each check that was not read yet
    int64_t updates = 0;            // enqueued since the entry was made
    int64_t counted = 0;            // of these: StepError knows them
    int open = 0;                   // checks and updates whose kernels are not enqueued yet
    int readings = 0;               // on their way
    bool dirty = false;             // a check was enqueued since the last reading
    bool failed = false;
  };
  struct Reading {
    StepError* error;
    int64_t serial;
    uint64_t* pinned;
    int64_t updates;  // on the stream before it
  };

  // Returns whether the outcome of all checks is known, and no kernel is about to use the word.
  static bool IsLast(const Entry& entry) { return entry.readings == 0 && !entry.dirty && entry.open == 0; }

  Entry* Find(const KernelContext& ctx) COHORT_REQUIRES(mu_) {
    if (entries_.empty()) return nullptr;
    const auto found = entries_.find(ctx.step().error);
    if (found == entries_.end()) return nullptr;
    if (found->second.step_id == ctx.step().step_id) return &found->second;
    // Of an earlier step that failed between a check and its kernel.
    Remove(found);
    return nullptr;
  }
  Entry* Make(StepError& error, int64_t step_id) COHORT_REQUIRES(mu_) {
    Entry entry;
    entry.serial = ++last_serial_;
    entry.step_id = step_id;
    entry.word = TakeWord();
    return &entries_.insert_or_assign(&error, std::move(entry)).first->second;
  }
  void Remove(std::map<StepError*, Entry>::iterator at) COHORT_REQUIRES(mu_) {
    free_words_.push_back(at->second.word);
    free_pinned_.insert(free_pinned_.end(), at->second.pinned.begin(), at->second.pinned.end());
    std::erase(dirty_, at->first);
    entries_.erase(at);
  }

  ErrorWord* TakeWord() COHORT_REQUIRES(mu_) {
    if (free_words_.empty()) {
      auto* chunk = static_cast<uint64_t*>(driver_.Allocate(card_, kChunkBytes));
      if (chunk == nullptr) {
        throw ResourceExhaustedError(
            StrCat("[cuda] expected ", kChunkBytes, " bytes of the memory of card ", card_,
                   " for the errors of steps; got none: end other programs on the card, or set "
                   "a memory limit that leaves some memory"));
      }
      word_chunks_.push_back(chunk);
      for (size_t i = 0; i < kErrorsOfChunk; ++i) free_words_.push_back(chunk + i * kWordsOfError);
    }
    ErrorWord* word = free_words_.back();
    driver_.FillAsync(word, 0, sizeof(ErrorWord) * kWordsOfError, stream_.handle());
    free_words_.pop_back();
    return word;
  }
  uint64_t* TakePinned() COHORT_REQUIRES(mu_) {
    if (free_pinned_.empty()) {
      auto* chunk = static_cast<uint64_t*>(driver_.AllocatePinned(card_, kChunkBytes));
      if (chunk == nullptr) {
        throw ResourceExhaustedError(
            StrCat("[cuda] expected ", kChunkBytes,
                   " bytes of pinned host memory for the errors of steps; got none: free memory of this machine"));
      }
      pinned_chunks_.push_back(chunk);
      for (size_t i = 0; i < kErrorsOfChunk; ++i) free_pinned_.push_back(chunk + i * kWordsOfError);
    }
    uint64_t* pinned = free_pinned_.back();
    free_pinned_.pop_back();
    pinned[0] = pinned[1] = 0;
    return pinned;
  }

  // Takes the outcome of the checks that stood before the reading.
  void Take(const Reading& reading, const Status& status) {
    const uint64_t error = reading.pinned[0];
    const auto value = static_cast<int64_t>(reading.pinned[1]);
    MutexLock lock(mu_);
    free_pinned_.push_back(reading.pinned);
    const auto found = entries_.find(reading.error);
    if (found == entries_.end() || found->second.serial != reading.serial) return;
    Entry& entry = found->second;
    --entry.readings;
    const bool last = IsLast(entry);
    if (status.ok() && !entry.failed) {
      if (error != 0) {
        entry.failed = true;
        const CheckOfStep& check = entry.checks[static_cast<size_t>(error >> kErrorPositionBits) - 1];
        Count(*reading.error, &entry, check.updates_before);
        const auto position = static_cast<int64_t>(error & ((ErrorWord{1} << kErrorPositionBits) - 1));
        const Status described = check.describe(position, value);
        reading.error->Set(Status(described.code(), StrCat(described.message(), "\n  ", check.where)));
      } else {
        Count(*reading.error, &entry, last ? entry.updates : reading.updates);
      }
    } else {
      entry.failed = true;  // also if the card has failed: which updates were applied is not known
    }
    if (last) Remove(found);
  }
  static void Count(StepError& error, Entry* entry, int64_t updates) {
    for (; entry->counted < updates; ++entry->counted) error.CountUpdate();
  }

  Driver& driver_;
  const int card_;
  const CudaStream& stream_;
  Mutex mu_;
  int64_t last_serial_ COHORT_GUARDED_BY(mu_) = 0;
  std::map<StepError*, Entry> entries_ COHORT_GUARDED_BY(mu_);
  std::vector<StepError*> dirty_ COHORT_GUARDED_BY(mu_);
  std::vector<ErrorWord*> free_words_ COHORT_GUARDED_BY(mu_);
  std::vector<uint64_t*> free_pinned_ COHORT_GUARDED_BY(mu_);
  std::vector<uint64_t*> word_chunks_ COHORT_GUARDED_BY(mu_);
  std::vector<uint64_t*> pinned_chunks_ COHORT_GUARDED_BY(mu_);
};

ErrorWords::ErrorWords(Driver& driver, int card, const CudaStream& stream)
    : impl_(std::make_shared<Impl>(driver, card, stream)) {}
ErrorWords::~ErrorWords() = default;

const ErrorWord* ErrorWords::WordOf(const KernelContext& ctx) {
  const CudaRecording* recording = CudaRecording::Current();
  return recording == nullptr ? impl_->WordOf(ctx) : recording->word();
}
const ErrorWord* ErrorWords::Hold(const KernelContext& ctx) {
  const CudaRecording* recording = CudaRecording::Current();
  return recording == nullptr ? impl_->Hold(ctx) : recording->word();
}
void ErrorWords::Release(const KernelContext& ctx) {
  if (CudaRecording::Current() == nullptr) impl_->Release(ctx);
}
ErrorWords::Check ErrorWords::Announce(const KernelContext& ctx, Describe describe, std::string where) {
  if (const Node& node = ctx.node();
      !ChecksValues(node) && !node.op().updates_variable() && node.op_name() != "_CheckIndices") {
    throw InternalError(StrCat("[cuda] the op ", node.op_name(), " is missing in kernels/value_checks.cc"));
  }
  CudaRecording* recording = CudaRecording::Current();
  return recording == nullptr ? impl_->Announce(ctx, std::move(describe), std::move(where))
                              : recording->Announce(std::move(describe), std::move(where));
}
void ErrorWords::Follow(const KernelContext& ctx) {
  if (CudaRecording::Current() == nullptr) impl_->Follow(ctx);
}
bool ErrorWords::MayRun(const KernelContext& ctx) { return CudaRecording::Current() != nullptr || impl_->MayRun(ctx); }
void ErrorWords::CountUpdate(const KernelContext& ctx) {
  if (CudaRecording::Current() == nullptr) impl_->CountUpdate(ctx);
}
StreamEvent::Callback ErrorWords::BeforeRecord() { return impl_->BeforeRecord(); }

}  // namespace cohort::cuda
