// PreparedSignature: the result of preparing a signature of a session. FeedValues: a view of fed values.
#pragma once

#include <memory>
#include <vector>

#include "cohort/runtime/build_graph.h"
#include "cohort/runtime/graph_dump.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/task_client.h"

namespace cohort {

// Says which task gets which feeds and returns which fetches. A SignatureBuilder makes it, and the session's master
// sets `master`. After that it never changes, and any thread may read it. The master owns it until the session is
// destroyed.
class PreparedSignature {
 public:
  // The part of the signature that one task runs.
  struct Part {
    std::shared_ptr<TaskClient> task;
    ExecutableKey key;
    std::vector<int> arg_feeds;    // for each argument of the task's executable: the index of the feed
    std::vector<int> ret_fetches;  // for each result of the executable: the index of the fetch
  };
  class Master* master = nullptr;  // runs the steps of the signature
  Signature signature;
  std::shared_ptr<const std::vector<Output>> fetches;  // the fetches of `signature`; RunResults share them
  std::vector<Part> parts;                             // the part of the default task, if it has one, is the last
  std::vector<int> fed_fetch;  // for each fetch: the index of the feed that has its value, or -1
  // The executable of the only part. Empty if there are several parts, if the part cannot run on the calling thread
  // (Executable::runs_inline), or if its results are not exactly the fetches in order.
  std::weak_ptr<Executable> inline_part;
  // Whether a task can repeat the steps by itself (RunOptions::repeat_on_task): there is one partition, and there are
  // no feeds and no fetches.
  bool can_repeat = false;
  bool calls_functions = false;  // the graph calls functions, which may have loops that run long
  // Writes the signature's graphs to files when a step has failed, if the user wants it (COHORT_DUMP_GRAPHS).
  std::shared_ptr<GraphDump> dump = std::make_shared<GraphDump>();
};

// A view of the fed values, which are in a list of feeds or in a list of tensors. Requires: the values are in the order
// of the signature, and the list lives longer than the view.
class FeedValues {
 public:
  FeedValues(const FeedList& feeds) : feeds_(&feeds) {}                // NOLINT(google-explicit-constructor)
  FeedValues(const std::vector<Tensor>& values) : values_(&values) {}  // NOLINT(google-explicit-constructor)

  size_t size() const { return feeds_ != nullptr ? feeds_->size() : values_->size(); }
  const Tensor& operator[](size_t i) const { return feeds_ != nullptr ? (*feeds_)[i].second : (*values_)[i]; }
  const Tensor& operator[](int i) const { return (*this)[static_cast<size_t>(i)]; }

 private:
  const FeedList* feeds_ = nullptr;
  const std::vector<Tensor>* values_ = nullptr;
};

}  // namespace cohort
