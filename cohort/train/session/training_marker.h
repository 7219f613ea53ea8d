// TrainingMarker: by which a chief that was started again knows the variables of its own training, so that it goes on
// with them and does not replace them by an older checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"

namespace cohort::train {

// An int64 variable beside the global step. Its value identifies the state that the chief has given to the variables.
// The chief sets it to 0 before it restores or initializes them, and to a new number when that is complete. So the
// number never stands beside variables that are half restored. The marker is not in the graph's list of variables:
// neither initializers nor savers know it. Whoever opens sessions of a graph owns one. Only one thread may use it.
class COHORT_EXPORT TrainingMarker {
 public:
  TrainingMarker() = default;  // no marker
  // Adds the marker's nodes to `graph`, unless it has no variable. Requires: the graph is not finalized.
  explicit TrainingMarker(Graph& graph);
  // Adds the nodes of a marker of this name on `device`. Markers of one name on one task are one marker.
  TrainingMarker(Graph& graph, const std::string& device, const std::string& name);

  bool valid() const { return set_ != nullptr; }
  // The device on which it lies. Requires: valid().
  const std::string& device() const { return set_->device(); }
  // Returns the value, or nullopt if nobody has set it. Requires: valid(). Throws what Session::Run throws.
  std::optional<int64_t> Read(Session& session) const;
  // Requires: valid(). Throws what Session::Run throws.
  void Set(Session& session, int64_t number) const;

  // Returns whether `number` was given by this training: it is in the file "training_id" of `dir`. Without a folder, it
  // was given by this object, or by the same marker of a program that the launcher has started again: the launcher
  // gives all tasks of a job the same environment variable COHORT_RUN_ID, and the n-th marker of a program stands for
  // its n-th training.
  bool Knows(int64_t number, const std::string& dir) const;
  // Returns a number that was not given before, larger than 0, and writes it into the file. Throws what writing throws.
  int64_t NewNumber(const std::string& dir);

 private:
  void AddNodes(Graph& graph, const std::string& device, const std::string& name);

  // The nodes of the marker.
  Output value_;   // int64 []
  Output is_set_;  // bool []
  Output fed_;     // int64 []
  Node* set_ = nullptr;
  int64_t given_ = 0;  // the latest result of NewNumber
  uint64_t job_ = 0;   // 31 bits of the job and of this marker's place in the program; 0 without COHORT_RUN_ID
};

}  // namespace cohort::train
