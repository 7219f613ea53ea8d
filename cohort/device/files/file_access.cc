#include "cohort/device/files/file_access.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr const char* kName = "file_access";

bool LiesIn(const std::filesystem::path& path, const std::filesystem::path& folder) {
  // The folder's parts are the first parts of the path, so that /data does not contain /data2.
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

FileAccess::FileAccess(ClientId self, const std::vector<std::string>& folders) : self_(std::move(self)) {
  if (folders.empty()) throw InvalidArgumentError("[server] expected at least one folder that graphs may use");
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::canonical(folder, error);
    if (error || !std::filesystem::is_directory(canonical, error)) {
      throw NotFoundError(StrCat("[server] expected a folder for --allow_path; got '", folder,
                                 "', which is none; create it, or name another one"));
    }
    folders_.push_back(canonical.string());
  }
}

std::string FileAccess::Describe() const { return StrCat("the allowed paths ", StrJoin(folders_, ", ")); }

void FileAccess::Check(const std::string& path) const {
  std::error_code error, ignored;
  // A NUL would end the path for the system and not for the check.
  const bool whole = !path.empty() && path.find('\0') == std::string::npos;
  const std::filesystem::path absolute = whole ? std::filesystem::absolute(path, error) : std::filesystem::path();
  const std::filesystem::path resolved =
      whole && !error ? std::filesystem::weakly_canonical(absolute, error) : std::filesystem::path();
  // The target of a link that leads nowhere would be created outside.
  const bool dangles = whole && std::filesystem::is_symlink(std::filesystem::symlink_status(absolute, ignored)) &&
                       !std::filesystem::exists(absolute, ignored);
  if (whole && !error && !dangles) {
    for (const std::string& folder : folders_) {
      if (LiesIn(resolved, folder)) return;
    }
  }
  throw PermissionDeniedError(StrCat("[server] expected a path in ", StrJoin(folders_, ", "), "; got '", path, "'",
                                     resolved.empty() ? "" : StrCat(", which is ", resolved.string()),
                                     "; start the server with --allow_path=FOLDER for the folder of the file"));
}

void FileAccess::Install(ResourceManager& resources, std::shared_ptr<FileAccess> access) {
  resources.LookupOrCreate<FileAccess>(kContainer, kName, [&access] { return std::move(access); });
}

std::shared_ptr<const FileAccess> FileAccess::For(const ResourceManager& resources, const StepOrigin* origin) {
  auto access = std::dynamic_pointer_cast<const FileAccess>(resources.Lookup(kContainer, kName));
  if (access == nullptr || (origin != nullptr && origin->client == access->self_)) return nullptr;
  return access;
}

void FileAccess::CheckPath(const ResourceManager& resources, const StepOrigin* origin, const std::string& path) {
  if (const auto access = For(resources, origin)) access->Check(path);
}

}  // namespace cohort
