// Files by the calls of POSIX. Each function repeats a call that was interrupted or did a part of the work, and turns
// errno into an Error with the name of the file. An AtomicFile writes to a temporary name and then renames.
#include "cohort/core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

Code CodeOfErrno(int error) {
  switch (error) {
    case ENOENT: return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return Code::kPermissionDenied;
    case EEXIST: return Code::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE: return Code::kResourceExhausted;
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY: return Code::kFailedPrecondition;
    default: return Code::kUnknown;
  }
}

int OpenOrThrow(const std::string& path, int flags, const char* purpose) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) ThrowErrno(errno, StrCat("[file] cannot open ", path, " for ", purpose));
  return fd;
}

// The most bytes of one read or write. Linux accepts at most 2 GiB.
constexpr size_t kMaxTransfer = size_t{1} << 30;

std::string TemporaryName(const std::string& path) {
  std::random_device random;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%08x%08x", random(), random());
  return path + ".tempstate" + digits;
}

}  // namespace

void ThrowErrno(int error, const std::string& message) {
  ThrowError(CodeOfErrno(error), StrCat(message, ": ", std::generic_category().message(error)));
}

RandomAccessFile::RandomAccessFile(const std::string& path) : path_(path), fd_(OpenOrThrow(path, O_RDONLY, "reading")) {
  struct stat info;
  if (::fstat(fd_, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(fd_);
    ThrowErrno(EISDIR, StrCat("[file] cannot open ", path, " for reading"));
  }
}

RandomAccessFile::~RandomAccessFile() { ::close(fd_); }

int64_t RandomAccessFile::Size() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) ThrowErrno(errno, StrCat("[file] cannot ask for the size of ", path_));
  return info.st_size;
}

size_t RandomAccessFile::Read(int64_t offset, std::span<char> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count =
        ::pread(fd_, out.data() + done, std::min(out.size() - done, kMaxTransfer), offset + static_cast<int64_t>(done));
    if (count < 0) {
      if (errno == EINTR) continue;
      ThrowErrno(errno, StrCat("[file] cannot read ", out.size(), " bytes at offset ", offset, " of ", path_));
    }
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

std::string ReadFile(const std::string& path) {
  const RandomAccessFile file(path);
  std::string contents(static_cast<size_t>(file.Size()), '\0');
  contents.resize(file.Read(0, contents));
  return contents;
}

WritableFile::WritableFile(const std::string& path)
    : path_(path), fd_(OpenOrThrow(path, O_WRONLY | O_CREAT | O_TRUNC, "writing")) {}

WritableFile::~WritableFile() {
  if (fd_ >= 0) ::close(fd_);
}

void WritableFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), std::min(bytes.size(), kMaxTransfer));
    if (count < 0) {
      if (errno == EINTR) continue;
      ThrowErrno(errno, StrCat("[file] cannot write ", bytes.size(), " bytes at offset ", size_, " of ", path_));
    }
    size_ += count;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void WritableFile::Sync() {
  if (::fsync(fd_) != 0 && errno != EINVAL) {  // EINVAL: a pipe or a device, which has nothing to sync
    ThrowErrno(errno, StrCat("[file] cannot sync ", path_, " (", size_, " bytes)"));
  }
}

void WritableFile::Close() {
  const int fd = std::exchange(fd_, -1);
  if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) {
    ThrowErrno(errno, StrCat("[file] cannot close ", path_, " (", size_, " bytes)"));
  }
}

namespace {

// Opens the temporary file of `path`. Errors name `path` first, because the caller does not know the temporary name.
WritableFile OpenTemporary(const std::string& path) {
  try {
    return WritableFile(TemporaryName(path));
  } catch (const Error& error) {
    const std::string folder = DirectoryOf(path);
    const char* advice = FileExists(folder) ? "" : "; its folder does not exist: make it first";
    ThrowError(error.code(), StrCat("[file] cannot write '", path, "' in the folder '", folder, "'", advice,
                                    "; the cause is: ", error.what()));
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), file_(OpenTemporary(path)) {}

AtomicFile::~AtomicFile() {
  if (!published_) ::unlink(file_.path().c_str());
}

void AtomicFile::Finish() {
  file_.Sync();
  file_.Close();
}

void AtomicFile::Publish() {
  RenameFile(file_.path(), path_);
  published_ = true;
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.Append(bytes);
  file.Finish();
  file.Publish();
  SyncDirectory(DirectoryOf(path));
}

bool RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  ThrowErrno(errno, StrCat("[file] cannot remove ", path));
}

bool FileExists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

void RenameFile(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    ThrowErrno(errno, StrCat("[file] cannot rename ", from, " to ", to));
  }
}

void CreateDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) ThrowErrno(error.value(), StrCat("[file] cannot create the directory ", path));
}

void SyncDirectory(const std::string& path) {
  const int fd = OpenOrThrow(path, O_RDONLY | O_DIRECTORY, "syncing");
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0 && error != EINVAL) ThrowErrno(error, StrCat("[file] cannot sync the directory ", path));
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace cohort
