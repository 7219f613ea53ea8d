#include "tools/cohort/token_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "cohort/core/str_cat.h"

namespace cohort::tools {
namespace {

constexpr std::string_view kPrefix = "launch-";
constexpr std::string_view kSuffix = ".token";

std::string VariableOr(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

// Returns "" if neither of the variables is set.
std::filesystem::path FolderOfTokens() {
  const std::string home = VariableOr("HOME", "");
  const std::string config = VariableOr("XDG_CONFIG_HOME", home.empty() ? "" : home + "/.config");
  const std::string folder = VariableOr("XDG_RUNTIME_DIR", config);
  return folder.empty() ? std::filesystem::path() : std::filesystem::path(folder) / "cohort";
}

// Returns the process in the name of a token file, or nullopt if it is another file.
std::optional<pid_t> OwnerOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view number = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), pid);
  return error == std::errc() && end == number.data() + number.size() && pid > 0 ? std::optional(pid) : std::nullopt;
}

void RemoveAbandonedTokens(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::optional<pid_t> owner = OwnerOf(entry.path().filename().string());
    if (owner && kill(*owner, 0) != 0 && errno == ESRCH) unlink(entry.path().c_str());
  }
}

}  // namespace

TokenFile::TokenFile(const std::string& token) {
  const std::filesystem::path folder = FolderOfTokens();
  if (token.empty() || folder.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  RemoveAbandonedTokens(folder);
  const std::string path = (folder / StrCat(kPrefix, getpid(), kSuffix)).string();
  unlink(path.c_str());  // of an earlier process with this number
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return;
  const std::string line = token + "\n";
  const bool written = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(fd);
  written ? static_cast<void>(path_ = path) : static_cast<void>(unlink(path.c_str()));
}

TokenFile::~TokenFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

}  // namespace cohort::tools
