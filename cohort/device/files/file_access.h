// FileAccess: the folders in which the graphs of other processes may read and write files on this task.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/device/client_id.h"
#include "cohort/device/resource.h"

namespace cohort {

// A resource of the task. The server puts it into its ResourceManager before it listens, in a container that no peer
// can reset. If it is not there, graphs may use every path. Kernels and datasets that open files ask it. Immutable and
// thread-safe.
class FileAccess final : public Resource {
 public:
  // The container of the task's own resources. A container whose name begins with '_' is not reset for peers.
  static constexpr const char* kContainer = "_task";

  // `self` is this process: steps of its own sessions may use every path. `folders` are the allowed folders, at least
  // one. Throws InvalidArgumentError if there is none, and NotFoundError if one of them does not exist.
  FileAccess(ClientId self, const std::vector<std::string>& folders);

  std::string Describe() const override;
  // Throws PermissionDeniedError if `path` does not lie in one of the folders. Symbolic links are resolved first, and
  // so is "..". The end of the path need not exist. The error names the path and the folders. The check and the use of
  // the path are two steps: it does not hold against a process that can change links inside the folders.
  void Check(const std::string& path) const;

  // Puts `access` into `resources`. Requires: there is none yet.
  static void Install(ResourceManager& resources, std::shared_ptr<FileAccess> access);
  // Returns the object that bounds the steps of `origin`. Returns null if they may use every path: there is no object,
  // or the steps are of this process. An origin that is null is no session of this process, so it is bounded.
  static std::shared_ptr<const FileAccess> For(const ResourceManager& resources, const StepOrigin* origin);
  // Does the same as For(...)->Check(path). Does nothing if For returns null.
  static void CheckPath(const ResourceManager& resources, const StepOrigin* origin, const std::string& path);

 private:
  const ClientId self_;
  std::vector<std::string> folders_;  // canonical
};

}  // namespace cohort
