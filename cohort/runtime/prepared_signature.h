// PreparedSignature: what a (feeds, fetches, targets) signature of a session has become. FeedValues: fed values where
// they lie.
#pragma once

#include <memory>
#include <vector>

#include "cohort/runtime/build_graph.h"
#include "cohort/runtime/graph_dump.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/task_client.h"

namespace cohort {

// Which task takes which feeds and returns which fetches. Made by a SignatureBuilder, constant afterwards; lives as
// long as its session, and as the runs of it that are under way.
class PreparedSignature : public std::enable_shared_from_this<PreparedSignature> {
 public:
  struct Part {
    std::shared_ptr<TaskClient> task;
    ExecutableKey key;
    std::vector<int> arg_feeds;    // index: arg of the task's executable; value: index of the feed
    std::vector<int> ret_fetches;  // index: result of the executable; value: index of the fetch
  };
  class Master* master = nullptr;
  Signature signature;
  std::shared_ptr<const std::vector<Output>> fetches;  // those of `signature`, shared with the results
  std::vector<Part> parts;                             // the part of the default task, if it has one, is last
  std::vector<int> fed_fetch;                          // index of the feed that answers a fetch, or -1
  // The one part, if there is only one that runs on the caller's thread and returns the fetches in order; else empty.
  std::weak_ptr<Executable> inline_part;
  bool calls_functions = false;  // a loop among them may run for any time
  GraphDump dump;
};

// A view of the fed values, in a list of feeds or in a list of values. The list must outlive it.
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
