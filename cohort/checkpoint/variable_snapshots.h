// VariableSnapshots: the nodes with which a Saver takes the values of variables on all their devices, and the transfer
// of these values into files. Internal.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"

namespace cohort {

// A Saver owns it, and makes one call at a time. It does not change after the constructor.
class VariableSnapshots {
 public:
  // Adds nodes for each device that holds some of `variables`. The names of the nodes are in the graph's current name
  // scope. Scopes of devices and of control inputs have no effect on the nodes.
  VariableSnapshots(Graph& graph, std::vector<VariableInfo*> variables);

  // Write and WriteSharded take a snapshot on each device and write the values. At the end they drop the snapshots,
  // even if writing has failed. A snapshot that cannot be dropped stays until SnapshotStore frees it. Devices take
  // their snapshots one after another, because two update gates that are closed at the same time could wait for each
  // other. So the values of one device are one cut, and those of two devices may be of different steps. Both functions
  // throw what the session throws (FailedPreconditionError if a variable has no value, UnavailableError, ...) and what
  // writing throws. While they write, a task needs memory for the old values of variables that change. Write moves all
  // values through this process, in chunks of 4 MiB, into one file. Strings are moved one tensor at a time.
  void Write(Session& session, const std::string& prefix) const;
  // WriteSharded lets each task write the values that it holds, into the folder `<prefix>_temp_<random>`. Before that,
  // it checks that each task sees a file that this process has written into the folder. At the end the parts become one
  // checkpoint. If a task does not share the folder, throws FailedPreconditionError that names the task.
  void WriteSharded(Session& session, const std::string& prefix) const;

 private:
  // The variables of one device, and the nodes there.
  struct Shard {
    std::string device;
    std::vector<VariableInfo*> variables;
    Node* take = nullptr;
    Output read_request, read;
    Output strings_request, strings;
    Output write_snapshot, write_prefix;
    Node* write = nullptr;
    Output drop_snapshot;
    Node* drop = nullptr;
    Output probe_path, probe_content;
    Node* probe = nullptr;
  };
  struct Taken {
    int64_t snapshot = 0;
    std::vector<Shape> shapes;  // of the variables of the shard
  };
  class Snapshots;  // taken snapshots; the destructor drops them
  class Stream;
  // One variable's value in a snapshot.
  struct Source {
    const Shard* shard;
    const Taken* taken;
    size_t index;
  };

  static void AddNodes(Graph& graph, Shard& shard);
  static void Append(Session& session, const Source& source, BundleWriter& writer);

  std::vector<Shard> shards_;  // sorted by device
};

}  // namespace cohort
