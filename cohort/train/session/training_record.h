// TrainingRecord: how the sessions of one training find out that there is one chief, and that all of them train the
// same model in the same way. Internal.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cohort/cluster/server.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/step_clock.h"
#include "cohort/runtime/session.h"
#include "cohort/train/session_manager.h"

namespace cohort::train {

// Makes `value` a part of what all workers of a training have to agree on. `key` names it in errors:
// "SyncReplicasOptimizer's replicas_to_aggregate".
void AddTrainingSetting(Graph& graph, const std::string& key, int64_t value);

// Returns the description of the training that the graph is for: a line for each setting, and for each variable that is
// not local.
std::string DescribeTraining(const Graph& graph);

// Returns how a worker's description differs from the chief's, or nullopt if they agree. They agree if all settings and
// all trained variables are the same, and the worker has no variable that the chief lacks or has with another dtype or
// shape. The chief may have further variables that are not trained.
std::optional<std::string> DifferenceOfTrainings(const std::string& worker, const std::string& worker_task,
                                                 const std::string& chief, const std::string& chief_task);

// Throws InvalidArgumentError, which begins with the name of the component and names the variables, if variables of a
// worker that is not chief have no device. They would lie on the worker itself, and so the workers would not share
// them.
void CheckDevicesOfVariables(const Graph& graph, const std::string& component);

// Returns the name under which a session takes part in a training: that of the server's task or, without a server, that
// of a client of `master`.
std::string NameInTraining(const Server* server, const std::string& master);

// The nodes of a chief record (ops::ChiefRecord) on the device of the global step. A SessionCreator or a Supervisor
// owns it.
class TrainingRecord {
 public:
  // Adds the nodes to the graph, on `device`, which must be the same for all sessions of the training. Errors begin
  // with `component`.
  TrainingRecord(Graph& graph, const std::string& device, std::string component);

  // Makes a SessionManager with these options hold the record (for the chief) or compare with it (for the other
  // workers), as the functions below do. `task` names the session's task in errors. The record must outlive the
  // manager.
  void Guard(SessionManagerOptions* options, const std::string& task, std::chrono::milliseconds chief_wait) const;

  // For the chief. Takes the record for the session, and writes the description into it. Waits at most `wait` for the
  // session that holds the record; afterwards throws AlreadyExistsError, which names its task. Throws what the session
  // throws.
  void Hold(Session& session, const std::string& task, std::chrono::milliseconds wait) const;
  // For a worker. Returns whether its description agrees with the one that was written last. Throws
  // InvalidArgumentError, with both values and both tasks, if they differ and the chief that has written it is there.
  // If that chief has ended, the parameter servers may hold an earlier training, and another chief may come. Throws
  // what the session throws.
  bool AgreesWithChief(Session& session, const std::string& task) const;
  // For a chief that finds its training on the parameter servers. Throws InvalidArgumentError, with both values, if the
  // description differs from the one of its predecessor, because other workers may still train as that one says.
  void CheckAgainstPredecessor(Session& session, const std::string& task) const;

 private:
  struct Found {
    std::string holder;
    std::optional<std::string> difference;
  };
  // Compares the description of this graph with the one in the record.
  Found Compare(Session& session, const std::string& task) const;

  const Graph& graph_;
  const std::string component_;
  Output holder_;       // string [], fed
  Output description_;  // string [], fed
  Node* hold_ = nullptr;
  ops::ChiefRecordText text_;
};

}  // namespace cohort::train
