// VariableSnapshots: the nodes with which a Saver takes the values of variables wherever they live, and the
// transfer of these values into files. Internal.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"

namespace cohort {

// Constant once made; one call at a time.
class VariableSnapshots {
 public:
  // Adds one set of nodes a device that holds some of `variables`, under the current name scope and no other
  // scope.
  VariableSnapshots(Graph& graph, std::vector<VariableInfo*> variables);

  // Both take a snapshot on each device (one after another, so that closed gates never wait for one another),
  // write it and drop it again, also where they throw: what the session throws (FailedPreconditionError for a
  // variable without a value, UnavailableError, ...), and what the files throw.
  //
  // Streams everything through this process in chunks into one file. In memory: two chunks, beside what the
  // tasks keep of values that change meanwhile.
  void Write(Session& session, const std::string& prefix) const;
  // Each task writes what it holds as a part below the folder `<prefix>_temp_<random>`, once it has seen a
  // file there; the parts become one checkpoint. Throws FailedPreconditionError that names a task which does
  // not share the folder.
  void WriteSharded(Session& session, const std::string& prefix) const;

 private:
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
    std::vector<Shape> shapes;  // of the shard's variables
  };
  class Snapshots;  // taken; dropped when it goes
  class Stream;
  struct Source {
    const Shard* shard;
    const Taken* taken;
    size_t index;
  };

  static void AddNodes(Graph& graph, Shard& shard, Node* after);
  static void Append(Session& session, const Source& source, BundleWriter& writer);

  std::vector<Shard> shards_;  // by device
};

}  // namespace cohort
