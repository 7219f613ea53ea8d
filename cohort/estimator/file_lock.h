// FileLock: lets only one process at a time do something with a folder.
#pragma once

#include <string>

#include "cohort/core/export.h"

namespace cohort::estimator {

// Holds a file for one owner, from the constructor to the destructor. The system frees the lock if the process dies,
// however it dies; a process that is stopped keeps it. Two objects of one process exclude each other, too. The file
// stays when the lock is gone. It holds host and process of its latest owner, for messages.
class COHORT_EXPORT FileLock {
 public:
  // Makes the file if it is missing. `what` names the owner in messages: "chief". Does not wait. Throws
  // FailedPreconditionError, which names the file and the other process, if the file is held, and the errors of
  // core/file.h if it cannot be opened. If the file system has no locks, logs a warning and holds nothing.
  FileLock(const std::string& path, const std::string& what);
  ~FileLock();
  // kUnknown: the file cannot be opened, or its file system has no locks.
  enum class State { kFree, kHeld, kUnknown };
  // Returns whether an object of any process holds the file. A file that is missing is free. Does not lock it.
  static State StateOf(const std::string& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

}  // namespace cohort::estimator
