#include "cohort/cluster/token.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr size_t kTokenBytes = 16;

std::string Trim(std::string text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  return end == std::string::npos ? "" : text.substr(0, end + 1);
}

std::string NewToken() {
  std::array<unsigned char, kTokenBytes> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw InternalError("[token] the system gives no random bytes");
  }
  std::string text;
  constexpr char kHex[] = "0123456789abcdef";
  for (const unsigned char byte : bytes) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::string ReadTokenFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    throw NotFoundError(StrCat("[token] cannot read the token file ", path, ": ", std::strerror(errno),
                               "; to make one, run: (umask 077; head -c 32 /dev/urandom | base64 > ", path,
                               "), and copy it to every host"));
  }
  if ((info.st_mode & 077) != 0) {
    throw PermissionDeniedError(StrCat("[token] other users can read ", path, " (mode ", std::oct, info.st_mode & 0777,
                                       "); run: chmod 600 ", path));
  }
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  const std::string token = Trim(line);
  if (token.empty()) throw InvalidArgumentError(StrCat("[token] ", path, " holds no token"));
  return token;
}

std::filesystem::path UserTokenPath() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config != '\0') return std::filesystem::path(config) / "cohort" / "token";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    throw FailedPreconditionError("[token] neither COHORT_TOKEN, COHORT_TOKEN_FILE nor HOME is set");
  }
  return std::filesystem::path(home) / ".config" / "cohort" / "token";
}

// The process that comes first creates the whole file. The others read it.
void MakeTokenFile(const std::filesystem::path& path) {
  CreateDirectories(path.parent_path().string());
  const std::string temporary = StrCat(path.string(), ".", getpid(), ".", NewToken());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) throw PermissionDeniedError(StrCat("[token] cannot make ", temporary, ": ", std::strerror(errno)));
  const std::string line = NewToken() + "\n";
  const bool written = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(fd);
  if (written && link(temporary.c_str(), path.c_str()) != 0 && errno != EEXIST) {
    const std::string why = std::strerror(errno);
    unlink(temporary.c_str());
    throw PermissionDeniedError(StrCat("[token] cannot make ", path.string(), ": ", why));
  }
  unlink(temporary.c_str());
  if (!written) throw ResourceExhaustedError(StrCat("[token] cannot write ", temporary));
}

}  // namespace

std::string JobToken() {
  if (const char* token = std::getenv("COHORT_TOKEN")) {
    const std::string text = Trim(token);
    if (text.empty())
      throw InvalidArgumentError("[token] COHORT_TOKEN is empty; unset it, or give all tasks of a job the same text");
    return text;
  }
  if (const char* path = std::getenv("COHORT_TOKEN_FILE")) return ReadTokenFile(path);
  if (const char* folder = std::getenv("COHORT_TLS_FOLDER")) {
    const std::filesystem::path beside = std::filesystem::path(folder) / "token";
    if (std::error_code none; std::filesystem::exists(beside, none)) return ReadTokenFile(beside.string());
  }
  const std::filesystem::path path = UserTokenPath();
  std::error_code unreadable;  // ReadTokenFile then reports the reason
  if (!std::filesystem::exists(path, unreadable) && !unreadable) MakeTokenFile(path);
  return ReadTokenFile(path.string());
}

}  // namespace cohort
