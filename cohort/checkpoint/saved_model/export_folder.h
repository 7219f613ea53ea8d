// ExportFolder: a folder that gets its name only when it is complete. Internal.
#pragma once

#include <string>

namespace cohort::saved_model {

// The code that fills the folder owns it. Used by one thread.
class ExportFolder {
 public:
  // Makes the folder `temporary`, and the folders above it. `path` is the name that Publish gives to it. Requires: both
  // are in the same folder. Throws the errors of core/file.h.
  ExportFolder(std::string path, std::string temporary);
  // Removes the temporary folder with its contents, unless Publish has succeeded. Ignores errors.
  ~ExportFolder();
  ExportFolder(const ExportFolder&) = delete;
  ExportFolder& operator=(const ExportFolder&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  // Gives the folder its name. When it has returned, a crash of the machine does not undo it. Replaces an empty folder
  // that has the name. Throws the errors of core/file.h.
  void Publish();

 private:
  const std::string path_;
  const std::string temporary_;
  bool published_ = false;
};

// Returns a folder that becomes `path`. Until then its name is `<path>.tempstate<16 hex digits>`. Throws
// InvalidArgumentError if `path` is empty, AlreadyExistsError, which names `path`, if there is something of this name
// that is not an empty folder, and the errors of core/file.h.
ExportFolder NewExportFolder(const std::string& path);

}  // namespace cohort::saved_model
