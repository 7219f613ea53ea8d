#include "cohort/core/error.h"

#include <new>

namespace cohort {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "OK";
    case Code::kCancelled: return "Cancelled";
    case Code::kUnknown: return "Unknown";
    case Code::kInvalidArgument: return "InvalidArgument";
    case Code::kDeadlineExceeded: return "DeadlineExceeded";
    case Code::kNotFound: return "NotFound";
    case Code::kAlreadyExists: return "AlreadyExists";
    case Code::kPermissionDenied: return "PermissionDenied";
    case Code::kResourceExhausted: return "ResourceExhausted";
    case Code::kFailedPrecondition: return "FailedPrecondition";
    case Code::kAborted: return "Aborted";
    case Code::kOutOfRange: return "OutOfRange";
    case Code::kUnimplemented: return "Unimplemented";
    case Code::kInternal: return "Internal";
    case Code::kUnavailable: return "Unavailable";
    case Code::kDataLoss: return "DataLoss";
    case Code::kUnauthenticated: return "Unauthenticated";
  }
  return "Unknown";
}

void ThrowError(Code code, const std::string& message) {
  switch (code) {
    case Code::kCancelled: throw CancelledError(message);
    case Code::kInvalidArgument: throw InvalidArgumentError(message);
    case Code::kDeadlineExceeded: throw DeadlineExceededError(message);
    case Code::kNotFound: throw NotFoundError(message);
    case Code::kAlreadyExists: throw AlreadyExistsError(message);
    case Code::kPermissionDenied: throw PermissionDeniedError(message);
    case Code::kResourceExhausted: throw ResourceExhaustedError(message);
    case Code::kFailedPrecondition: throw FailedPreconditionError(message);
    case Code::kAborted: throw AbortedError(message);
    case Code::kOutOfRange: throw OutOfRangeError(message);
    case Code::kUnimplemented: throw UnimplementedError(message);
    case Code::kInternal: throw InternalError(message);
    case Code::kUnavailable: throw UnavailableError(message);
    case Code::kDataLoss: throw DataLossError(message);
    case Code::kUnauthenticated: throw UnauthenticatedError(message);
    case Code::kOk:
    case Code::kUnknown: break;
  }
  throw UnknownError(message);
}

Status Status::FromException(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return Status(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return Status(Code::kResourceExhausted, "out of memory");
  } catch (const std::exception& e) {
    return Status(Code::kInternal, e.what());
  } catch (...) {
    return Status(Code::kInternal, "an exception that is not a std::exception");
  }
}

Status Status::WithPlace(const std::string& place) const {
  return ok() ? *this : Status(code_, message_ + " (from " + place + ")");
}

std::string Status::ToString() const { return ok() ? "OK" : std::string(CodeName(code_)) + ": " + message_; }

}  // namespace cohort
