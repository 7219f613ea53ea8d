// TempFolder: a folder for the files of one test.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

namespace cohort::testing {

// A new, empty folder below ::testing::TempDir(). The system chooses a name that no other folder has, so tests may run
// at the same time. Only the user of this process may enter the folder.
//
// The destructor removes the folder with everything in it. It ignores errors. Declare the object before all objects
// that write into the folder, so that those are destroyed first. All methods are thread-safe.
class TempFolder {
 public:
  // Throws the error that ThrowErrno() gives if the system cannot make the folder.
  TempFolder() : path_((std::filesystem::path(::testing::TempDir()) / "cohort-XXXXXX").string()) {
    const std::string pattern = path_;
    if (mkdtemp(path_.data()) == nullptr) ThrowErrno(errno, StrCat("[temp_folder] cannot make a folder ", pattern));
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  // Returns the path of the folder, without a slash at its end.
  const std::string& path() const { return path_; }
  // Returns the path of `name` in the folder. Does not make a file.
  std::string operator/(std::string_view name) const { return StrCat(path_, "/", name); }

 private:
  std::string path_;
};

}  // namespace cohort::testing
