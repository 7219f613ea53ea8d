#include "cohort/estimator/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::estimator {
namespace {

std::string ThisProcess() {
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0) std::strcpy(host, "this host");
  return StrCat("process ", ::getpid(), " on ", host);
}

// The whole file. The lock belongs to the open file, not to the process, so that objects of one process exclude each
// other, and a second open file of the process does not free it.
struct flock WholeFile() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

FileLock::FileLock(const std::string& path, const std::string& what)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (fd_ < 0) ThrowErrno(errno, StrCat("[file] cannot open ", path, " for the lock of the ", what));
  struct flock lock = WholeFile();
  const int error = ::fcntl(fd_, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
  if (error == EAGAIN || error == EACCES) {
    ::close(fd_);
    const std::string owner = ReadFile(path);
    throw FailedPreconditionError(StrCat("[file] expected one ", what, " for ", path,
                                         "; got a second one: ", owner.empty() ? "another process" : owner,
                                         " holds the file. End that process, or use another folder"));
  }
  if (error != 0) {
    LogWarning("file", "no lock on ", path, " (", std::strerror(error), "); nothing checks that there is only one ",
               what);
    return;
  }
  const std::string owner = ThisProcess();
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, owner.data(), owner.size(), 0) < 0) {
    const int failure = errno;
    ::close(fd_);
    ThrowErrno(failure, StrCat("[file] cannot write ", path));
  }
}

FileLock::State FileLock::StateOf(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? State::kFree : State::kUnknown;
  struct flock lock = WholeFile();
  const bool known = ::fcntl(fd, F_OFD_GETLK, &lock) == 0;
  ::close(fd);
  if (!known) return State::kUnknown;
  return lock.l_type == F_UNLCK ? State::kFree : State::kHeld;
}

FileLock::~FileLock() { ::close(fd_); }

}  // namespace cohort::estimator
