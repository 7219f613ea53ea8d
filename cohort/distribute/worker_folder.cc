#include "cohort/distribute/worker_folder.h"

#include <filesystem>
#include <system_error>

#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::distribute {
namespace {

void RemoveFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) LogWarning("distribute", "the temporary folder '", path, "' stays: ", error.message());
}

}  // namespace

WorkerFolder::WorkerFolder(const Strategy& strategy, const std::string& folder)
    : temporary_(!strategy.is_chief()),
      path_(temporary_ ? StrCat(folder, "/workertempdir_", strategy.worker()) : folder) {
  if (temporary_) RemoveFolder(path_);
  CreateDirectories(path_);
}

WorkerFolder::~WorkerFolder() {
  if (temporary_) RemoveFolder(path_);
}

}  // namespace cohort::distribute
