#include "cohort/runtime/graph_dump.h"

#include <cstdlib>
#include <exception>

#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/graph/graph_def.h"

namespace cohort {
namespace {

std::string Folder() {
  const char* folder = std::getenv("COHORT_DUMP_GRAPHS");
  return folder == nullptr ? "" : folder;
}

// Returns, for example, "job_ps_replica_0_task_1_device_CPU_0".
std::string FileNameOf(const std::string& device) {
  std::string name = device.substr(device.front() == '/' ? 1 : 0);
  for (char& c : name) {
    if (c == '/' || c == ':') c = '_';
  }
  return name;
}

}  // namespace

void GraphDump::Keep(const std::string& device, const Graph& graph) {
  if (!Folder().empty()) texts_.emplace_back(device, GraphDefText(graph));
}

void GraphDump::Write(uint64_t session, int64_t step) const {
  if (texts_.empty() || written_.exchange(true)) return;
  const std::string folder = StrCat(Folder(), "/step_", step, "_of_", session);
  try {
    CreateDirectories(folder);
    for (const auto& [device, text] : texts_) WriteFileAtomically(folder + "/" + FileNameOf(device) + ".pbtxt", text);
    LogInfo("session", "step ", step, " failed; its graphs are in ", folder);
  } catch (const std::exception& e) {
    LogWarning("session", "the graphs of step ", step, ", which failed, cannot be written: ", e.what());
  }
}

}  // namespace cohort
