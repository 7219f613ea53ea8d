// GraphDump: writes the partitioned graphs of a signature as text when a step has failed, to help find the cause.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Does nothing if the environment variable COHORT_DUMP_GRAPHS does not name a folder. The PreparedSignature owns it.
// Write is thread-safe. Requires: Keep is not called after the first Write.
class GraphDump {
 public:
  // Stores the graph of one device. `device` is its full name.
  void Keep(const std::string& device, const Graph& graph);
  // The first call writes one file for each device: FOLDER/step_<step>_of_<session>/<device>.pbtxt, which is a GraphDef
  // in protobuf's text form. It logs the folder. If it cannot write, it logs a warning. Later calls do nothing.
  void Write(uint64_t session, int64_t step) const;

 private:
  std::vector<std::pair<std::string, std::string>> texts_;  // by device
  mutable std::atomic<bool> written_{false};
};

}  // namespace cohort
