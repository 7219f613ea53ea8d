// GraphDump: the partitioned graphs of a signature as text, for those who look for the cause of a step that failed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Does something only where the environment variable COHORT_DUMP_GRAPHS names a folder. Keep() before the first
// Write(); that one is thread-safe.
class GraphDump {
 public:
  // `device`: full name.
  void Keep(const std::string& device, const Graph& graph);
  // The first time: FOLDER/step_<step>_of_<session>/<device>.pbtxt, GraphDef in protobuf's text form, one file a
  // device; the log says where. What cannot be written is a warning in the log.
  void Write(uint64_t session, int64_t step) const;

 private:
  std::vector<std::pair<std::string, std::string>> texts_;  // by device
  mutable std::atomic<bool> written_{false};
};

}  // namespace cohort
