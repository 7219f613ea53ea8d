#include "cohort/train/session/save_attempts.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::train {
namespace {

constexpr std::chrono::seconds kCountInterval{1};

// Returns whether writing files has failed with `code`, and not a step of the session.
bool IsOfFiles(Code code) {
  switch (code) {
    case Code::kResourceExhausted:
    case Code::kPermissionDenied:
    case Code::kNotFound:
    case Code::kDataLoss:
    case Code::kUnknown: return true;  // kUnknown: such as EIO
    default: return false;
  }
}

}  // namespace

SaveAttempts::SaveAttempts(int limit, std::string who, std::function<Clock::time_point()> now)
    : limit_(limit), who_(std::move(who)), now_(std::move(now)) {
  if (limit < 1) {
    throw InvalidArgumentError(StrCat("[", who_, "] expected max_save_failures of at least 1; got ", limit));
  }
}

bool SaveAttempts::Try(const std::function<void()>& save) {
  try {
    save();
  } catch (const Error& error) {
    if (!IsOfFiles(error.code())) throw;
    const Clock::time_point now = now_();
    if (counted_at_ && now - *counted_at_ < kCountInterval) {
      LogInfo(who_,
              "a checkpoint could not be written; this does not count, because one has failed less than a second "
              "ago: ",
              error.what());
      return false;
    }
    counted_at_ = now;
    ++failed_;
    if (failed_ >= limit_) {
      LogError(who_, "no checkpoint could be written ", failed_, " times in a row: the training ends");
      throw;
    }
    LogWarning(who_, "a checkpoint could not be written (", failed_, " of at most ", limit_,
               " in a row): ", error.what(), "; the training goes on, and the next checkpoint is tried");
    return false;
  }
  failed_ = 0;
  counted_at_.reset();
  return true;
}

}  // namespace cohort::train
