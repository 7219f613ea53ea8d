#include "cohort/checkpoint/saved_model/export_folder.h"

#include <cstdio>
#include <filesystem>
#include <random>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

namespace cohort::saved_model {
namespace {

namespace fs = std::filesystem;

std::string TemporaryNameOf(const std::string& path) {
  std::random_device random;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%08x%08x", random(), random());
  return StrCat(path, ".tempstate", digits);
}

}  // namespace

ExportFolder::ExportFolder(std::string path, std::string temporary)
    : path_(std::move(path)), temporary_(std::move(temporary)) {
  CreateDirectories(temporary_);
}

ExportFolder::~ExportFolder() {
  std::error_code ignored;
  if (!published_) fs::remove_all(temporary_, ignored);
}

void ExportFolder::Publish() {
  SyncDirectory(temporary_);
  RenameFile(temporary_, path_);
  published_ = true;
  SyncDirectory(DirectoryOf(path_));
}

ExportFolder NewExportFolder(const std::string& path) {
  std::string plain = path;  // without slashes at the end
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  if (plain.empty()) throw InvalidArgumentError("[saved model] expected the name of a folder to export to; got \"\"");
  std::error_code ignored;
  if (FileExists(plain) && !(fs::is_directory(plain, ignored) && fs::is_empty(plain, ignored))) {
    throw AlreadyExistsError(StrCat("[saved model] expected a new or an empty folder to export to; got ", plain,
                                    ", which has contents; remove it, or choose another name"));
  }
  std::string temporary = TemporaryNameOf(plain);
  return ExportFolder(std::move(plain), std::move(temporary));
}

}  // namespace cohort::saved_model
