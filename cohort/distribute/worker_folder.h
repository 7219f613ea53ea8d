// WorkerFolder: for programs in which every worker writes the same files and only the chief's files are kept.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

// Gives each worker a folder to write to. The chief gets the folder itself. Each other worker gets a folder of its own
// inside it, such as "workertempdir_1", which the destructor removes. The callbacks of Fit do not need this class,
// because they write only at the chief. One thread.
class COHORT_EXPORT WorkerFolder {
 public:
  // Makes the folder with its parents. In a temporary folder, first removes what an earlier process has left. Throws
  // what core/file.h throws.
  WorkerFolder(const Strategy& strategy, const std::string& folder);
  ~WorkerFolder();
  WorkerFolder(const WorkerFolder&) = delete;
  WorkerFolder& operator=(const WorkerFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  const bool temporary_;
  const std::string path_;
};

}  // namespace cohort::distribute
