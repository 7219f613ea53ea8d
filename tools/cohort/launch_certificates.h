// LaunchCertificates: the files of TLS of one launch.
#pragma once

#include <string>
#include <vector>

#include "tools/cohort/launch_layout.h"

namespace cohort::tools {

// Makes an authority for this launch, and a certificate for each task and one for clients, in a new folder that only
// this user may enter. The authority's key is never written: it is forgotten when the constructor returns. The
// certificates hold for longer than any launch. The destructor removes the folder.
class LaunchCertificates {
 public:
  // Throws the errors of cohort/core/file.h if the folder cannot be made.
  explicit LaunchCertificates(const std::vector<TaskId>& tasks);
  ~LaunchCertificates() { Remove(); }
  LaunchCertificates(const LaunchCertificates&) = delete;
  LaunchCertificates& operator=(const LaunchCertificates&) = delete;

  // Names the files of the task in its environment, in place of others. An evaluator has no server: it is a client.
  void SetFiles(const TaskId& task, Environment* current) const;
  // Removes the folder. Ignores errors. Later calls do nothing.
  void Remove() const;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace cohort::tools
