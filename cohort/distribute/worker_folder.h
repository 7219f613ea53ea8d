// WorkerFolder: for programs that have to write the same at every worker, of which the chief's files alone are wanted.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

// The chief has the folder itself. Each other worker has one of its own in it, "workertempdir_1", for as long as the
// object lives; what an earlier process has left of it is removed first. What Fit's callbacks write needs none of this:
// they write at the chief alone.
class COHORT_EXPORT WorkerFolder {
 public:
  // Makes the folder, with its parents. Throws what core/file.h throws.
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
