// Errors: the exceptions that Cohort throws, and Status, which carries a failure to another thread or process.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort {

// The codes of errors. The numbers are those of gRPC and TensorFlow. Messages between tasks contain these numbers.
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// Returns "InvalidArgument", "Unavailable", ... Returns "Unknown" if the number is not one of the codes.
COHORT_EXPORT std::string_view CodeName(Code code);

// The base of all exceptions of Cohort. what() returns the message without the name of the code.
class COHORT_EXPORT Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

// The base of the classes below. There is one class for each code except kOk. So a program can catch the errors of one
// code alone: `catch (const NotFoundError&)`. If nothing catches the exception, std::terminate prints the name of the
// class.
template <Code kCode>
class COHORT_EXPORT CodedError : public Error {
 public:
  explicit CodedError(const std::string& message) : Error(kCode, message) {}
};

class COHORT_EXPORT CancelledError : public CodedError<Code::kCancelled> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT UnknownError : public CodedError<Code::kUnknown> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT InvalidArgumentError : public CodedError<Code::kInvalidArgument> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT DeadlineExceededError : public CodedError<Code::kDeadlineExceeded> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT NotFoundError : public CodedError<Code::kNotFound> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT AlreadyExistsError : public CodedError<Code::kAlreadyExists> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT PermissionDeniedError : public CodedError<Code::kPermissionDenied> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT ResourceExhaustedError : public CodedError<Code::kResourceExhausted> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT FailedPreconditionError : public CodedError<Code::kFailedPrecondition> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT AbortedError : public CodedError<Code::kAborted> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT OutOfRangeError : public CodedError<Code::kOutOfRange> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT UnimplementedError : public CodedError<Code::kUnimplemented> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT InternalError : public CodedError<Code::kInternal> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT UnavailableError : public CodedError<Code::kUnavailable> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT DataLossError : public CodedError<Code::kDataLoss> {
 public:
  using CodedError::CodedError;
};
class COHORT_EXPORT UnauthenticatedError : public CodedError<Code::kUnauthenticated> {
 public:
  using CodedError::CodedError;
};

// Throws the subclass of Error for `code`. Throws UnknownError for kOk and for an unknown number.
[[noreturn]] COHORT_EXPORT void ThrowError(Code code, const std::string& message);

// The outcome of an operation as a value: OK, or the code and the message of an error. Callbacks and messages between
// tasks use it. ThrowIfError() throws the error as an exception, and does nothing if the status is OK.
class [[nodiscard]] COHORT_EXPORT Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  // Returns the Status for an exception. A cohort::Error keeps its code and message. std::bad_alloc becomes
  // kResourceExhausted, and every other exception kInternal.
  static Status FromException(const std::exception_ptr& error);
  static Status FromCurrentException() { return FromException(std::current_exception()); }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  void ThrowIfError() const {
    if (!ok()) ThrowError(code_, message_);
  }
  // Returns this status with `place` added to the message: "... (from /job:ps/task:0 (127.0.0.1:2222))". An OK status
  // stays OK.
  Status WithPlace(const std::string& place) const;
  // Returns "OK" or, for example, "InvalidArgument: message".
  std::string ToString() const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

}  // namespace cohort
