#include "cohort/runtime/build_graph.h"

#include <unordered_map>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/topological_order.h"

namespace cohort {
namespace {

class Pruner {
 public:
  Pruner(const Graph& source, const Signature& signature) : source_(source), signature_(signature) {}

  PrunedGraph Run() {
    result_.graph = std::make_unique<Graph>();
    result_.args.resize(signature_.feeds.size(), nullptr);
    CheckFeeds();
    Mark();
    for (Node* node : TopologicalOrder(source_)) {
      if (needed_.count(node) > 0) Copy(node);
    }
    for (const Output& fetch : signature_.fetches) {
      const int feed = FeedIndex(fetch);
      result_.fed_fetch.push_back(feed);
      result_.fetches.push_back(feed >= 0 ? Output{} : Output{copies_.at(fetch.node), fetch.index});
    }
    TakeFunctions(source_, *result_.graph);
    return std::move(result_);
  }

 private:
  void CheckFeeds() {
    for (const Output& feed : signature_.feeds) {
      CheckOwner(feed.node, "feed");
      for (size_t i = 0; i < signature_.feeds.size(); ++i) {
        if (signature_.feeds[i] == feed && &signature_.feeds[i] != &feed) {
          throw InvalidArgumentError(StrCat("[session] ", feed.name(), " is fed twice"));
        }
      }
    }
  }

  void CheckOwner(const Node* node, const char* what) {
    if (node == nullptr) throw InvalidArgumentError(StrCat("[session] a ", what, " is no value of any graph"));
    if (&node->graph() != &source_) {
      throw InvalidArgumentError(StrCat("[session] the ", what, " '", node->name(), "' is of another graph"));
    }
  }

  int FeedIndex(const Output& value) const {
    for (size_t i = 0; i < signature_.feeds.size(); ++i) {
      if (signature_.feeds[i] == value) return static_cast<int>(i);
    }
    return -1;
  }

  // Returns the feed of an output of `node`, or -1. A node that must run after such a node runs after the feed instead:
  // as in TensorFlow, a node whose output is fed does not run.
  int FeedOf(const Node* node) const {
    for (size_t i = 0; i < signature_.feeds.size(); ++i) {
      if (signature_.feeds[i].node == node) return static_cast<int>(i);
    }
    return -1;
  }

  void Mark() {
    std::vector<Node*> stack;
    const auto need = [&](Node* node) {
      if (needed_.emplace(node, true).second) stack.push_back(node);
    };
    for (const Output& fetch : signature_.fetches) {
      CheckOwner(fetch.node, "fetch");
      if (IsHandle(fetch.dtype())) {
        throw InvalidArgumentError(
            StrCat("[session] ", fetch.name(), " is a ", fetch.dtype(), " handle, which cannot be fetched"));
      }
      if (FeedIndex(fetch) < 0) need(fetch.node);
    }
    for (Node* target : signature_.targets) {
      CheckOwner(target, "target");
      need(target);
    }
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const Output& input : node->inputs()) {
        if (FeedIndex(input) < 0) need(input.node);
      }
      for (Node* control : node->control_inputs()) {
        if (FeedOf(control) < 0) need(control);
      }
    }
  }

  Node* ArgOf(int feed) {
    Node*& arg = result_.args[static_cast<size_t>(feed)];
    if (arg == nullptr) {
      const Output& fed = signature_.feeds[static_cast<size_t>(feed)];
      arg = result_.graph->Op("_Arg")
                .ExactName(StrCat("_arg_", fed.node->name(), "_", fed.index))
                .Attr("T", fed.dtype())
                .Attr("index", feed)
                .Attr("shape", fed.shape())
                .IgnoreScopes()
                .Finish();
    }
    return arg;
  }

  void Copy(Node* node) {
    std::vector<Output> inputs;
    for (const Output& input : node->inputs()) {
      const int feed = FeedIndex(input);
      if (feed >= 0) {
        inputs.push_back({ArgOf(feed), 0});
      } else {
        inputs.push_back({copies_.at(input.node), input.index});
      }
    }
    std::vector<Node*> controls;
    for (Node* control : node->control_inputs()) {
      const int feed = FeedOf(control);
      controls.push_back(feed >= 0 ? ArgOf(feed) : copies_.at(control));
    }
    copies_[node] = CopyNode(*result_.graph, *node, inputs, controls);
  }

  const Graph& source_;
  const Signature& signature_;
  PrunedGraph result_;
  std::unordered_map<Node*, bool> needed_;
  std::unordered_map<Node*, Node*> copies_;
};

}  // namespace

PrunedGraph Prune(const Graph& graph, const Signature& signature) { return Pruner(graph, signature).Run(); }

}  // namespace cohort
