// Files for checkpoints, records and readers of data. Errors name the file. If the system reports an error (errno), the
// functions throw:
// - NotFoundError if the file or a directory of its path does not exist;
// - AlreadyExistsError if the system says that the file exists already;
// - PermissionDeniedError if the process lacks the right, or if the file system can only be read;
// - ResourceExhaustedError if the disk or a quota is full, the file is too large, too many files are open, or the
//   system lacks memory;
// - FailedPreconditionError if a file is expected and the path is a directory, if a directory is expected and the path
//   is a file, or if a directory is not empty;
// - UnknownError for every other error.
// Two functions return false instead: RemoveFile if there is no such file, and FileExists for every error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort {

// Throws the error that the list above gives for `error`, an errno value. Adds the text of the system to `message`:
// "MESSAGE: No space left on device" for ENOSPC.
[[noreturn]] COHORT_EXPORT void ThrowErrno(int error, const std::string& message);

// A file that is open for reading at any offset. All methods are thread-safe. The destructor closes the file.
class COHORT_EXPORT RandomAccessFile {
 public:
  explicit RandomAccessFile(const std::string& path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  const std::string& path() const { return path_; }
  // Returns the present size of the file in bytes. A file that is being written grows.
  int64_t Size() const;
  // Reads from `offset` on until `out` is full or the file ends. Returns the number of bytes read.
  size_t Read(int64_t offset, std::span<char> out) const;

 private:
  std::string path_;
  int fd_;
};

// Returns the contents of a regular file. (Other files, such as pipes, have no size.)
COHORT_EXPORT std::string ReadFile(const std::string& path);

// Writes a file from its beginning, without a buffer. The constructor creates the file or empties it. Not thread-safe.
// After Close() only the destructor, Close(), path() and size() may be called.
class COHORT_EXPORT WritableFile {
 public:
  explicit WritableFile(const std::string& path);
  ~WritableFile();  // closes the file; ignores an error, so call Close() first
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  void Append(std::string_view bytes);
  // Waits until the system has written the bytes to the storage device.
  void Sync();
  void Close();

 private:
  std::string path_;
  int64_t size_ = 0;
  int fd_;
};

// Writes a file that gets its name only when it is complete. Until then its name is `<path>.tempstate<16 hex digits>`.
// Call Append, Finish and Publish in this order, and then SyncDirectory. The destructor removes the temporary file
// unless Publish() has succeeded. Not thread-safe.
class COHORT_EXPORT AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  int64_t size() const { return file_.size(); }
  void Append(std::string_view bytes) { file_.Append(bytes); }
  // Syncs and closes the temporary file. If this succeeds, there was enough space on the disk.
  void Finish();
  // Renames the temporary file to the final name. Replaces a file that has this name. Requires: Finish() has returned.
  void Publish();

 private:
  std::string path_;
  bool published_ = false;
  WritableFile file_;
};

// Writes a whole file with AtomicFile and syncs its directory.
COHORT_EXPORT void WriteFileAtomically(const std::string& path, std::string_view bytes);

// Removes a file. Returns false if the file does not exist.
COHORT_EXPORT bool RemoveFile(const std::string& path);
// Returns whether there is a file or a directory with this path. Returns false also if the system cannot tell, for
// example because the program may not enter a directory of the path.
COHORT_EXPORT bool FileExists(const std::string& path);
// Renames a file. Replaces a file that is called `to`.
COHORT_EXPORT void RenameFile(const std::string& from, const std::string& to);
// Creates a directory and its parents. Does nothing if the directory exists.
COHORT_EXPORT void CreateDirectories(const std::string& path);
// Waits until the storage device knows which files the directory `path` contains. After that, a crash of the machine
// undoes no earlier creation, renaming or removal of a file in the directory.
COHORT_EXPORT void SyncDirectory(const std::string& path);
// Returns "/a/b" for "/a/b/c", "/" for "/c", and "." for "c".
COHORT_EXPORT std::string DirectoryOf(const std::string& path);

}  // namespace cohort
