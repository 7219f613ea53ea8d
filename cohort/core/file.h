// Files as checkpoints, records and readers need them: exact reads, writes that end whole or not at all, and
// errors that name the file. A failing call throws the Error of its errno: NotFound, PermissionDenied,
// AlreadyExists, ResourceExhausted (disk or quota full, file too large, too many open files),
// FailedPrecondition (a directory where a file was expected and the reverse), else Unknown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort {

// Throws the Error that belongs to `error` (an errno value): "MESSAGE: No space left on device".
[[noreturn]] COHORT_EXPORT void ThrowErrno(int error, const std::string& message);

// Immutable once opened; reads are thread-safe.
class COHORT_EXPORT RandomAccessFile {
 public:
  explicit RandomAccessFile(const std::string& path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  const std::string& path() const { return path_; }
  // Bytes in the file now (it may be growing).
  int64_t Size() const;
  // Fills `out` from `offset`; fewer bytes only where the file ends. Returns their count.
  size_t Read(int64_t offset, std::span<char> out) const;

 private:
  std::string path_;
  int fd_;
};

// The whole of a regular file.
COHORT_EXPORT std::string ReadFile(const std::string& path);

// A new (or emptied) file, written from its beginning, unbuffered. Not thread-safe.
class COHORT_EXPORT WritableFile {
 public:
  explicit WritableFile(const std::string& path);
  ~WritableFile();  // closes; an error then is lost
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  void Append(std::string_view bytes);
  // Has the system put the bytes on the device.
  void Sync();
  void Close();

 private:
  std::string path_;
  int64_t size_ = 0;
  int fd_;
};

// A file that appears under its name only when it is whole: written as `<path>.tempstate<16 hex digits>`
// beside it, synced, renamed. The temporary file is removed by the destructor unless Publish() succeeded.
class COHORT_EXPORT AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  int64_t size() const { return file_.size(); }
  void Append(std::string_view bytes) { file_.Append(bytes); }
  // Syncs and closes, still under the temporary name: what can fail for lack of space has then succeeded.
  void Finish();
  // Takes the final name, in place of a file that had it. Finish() first; SyncDirectory() afterwards.
  void Publish();

 private:
  std::string path_;
  bool published_ = false;
  WritableFile file_;
};

// AtomicFile with one Append, through to SyncDirectory.
COHORT_EXPORT void WriteFileAtomically(const std::string& path, std::string_view bytes);

// Removes a file; false where there was none.
COHORT_EXPORT bool RemoveFile(const std::string& path);
COHORT_EXPORT bool FileExists(const std::string& path);
COHORT_EXPORT void RenameFile(const std::string& from, const std::string& to);
// With its parents; no error where it exists.
COHORT_EXPORT void CreateDirectories(const std::string& path);
// Makes renames and removals in `path` durable.
COHORT_EXPORT void SyncDirectory(const std::string& path);
// "/a/b" of "/a/b/c", "." of "c".
COHORT_EXPORT std::string DirectoryOf(const std::string& path);

}  // namespace cohort
