#include "cohort/runtime/execution/executable_checks.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/graph/function.h"

namespace cohort {
namespace {

constexpr std::string_view kAdvice = "; the master's message is damaged, or its version has an error";

bool IsOfRuntime(const Node& node) {
  const std::string& op = node.op_name();
  return op == "_Arg" || op == "_Retval" || op == "_Send" || op == "_Recv";
}

class SpecChecker {
 public:
  explicit SpecChecker(const ExecutableSpec& spec)
      : spec_(spec),
        returned_(CheckedCount(spec.num_rets, "results")),
        sent_(spec.edges.size()),
        received_(spec.edges.size()) {}

  void Check() {
    CheckedCount(spec_.num_args, "fed values");
    CheckRoutes();
    for (const ExecutableSpec::Part& part : spec_.partitions) {
      if (part.graph == nullptr) Fail(StrCat("a graph for ", part.device), "none");
      for (const Node* node : part.graph->nodes()) CheckNode(*node);
      for (const auto& function : part.graph->functions()) CheckFunction(*function);
    }
    const auto missing = std::find(returned_.begin(), returned_.end(), false);
    if (missing != returned_.end()) {
      Fail(StrCat("one _Retval for each of ", spec_.num_rets, " results"),
           StrCat("none for result ", missing - returned_.begin()));
    }
  }

 private:
  [[noreturn]] void Fail(const std::string& expected, const std::string& got) const {
    throw InvalidArgumentError(StrCat("[executable] expected ", expected, "; got ", got, " in executable ",
                                      spec_.key.id, " of session ", spec_.key.session, kAdvice));
  }

  // A result of a partition needs a node in a graph that is there, so a larger number than that of the nodes is wrong.
  size_t CheckedCount(int count, const char* what) const {
    size_t nodes = 0;
    for (const ExecutableSpec::Part& part : spec_.partitions) {
      if (part.graph != nullptr) nodes += part.graph->nodes().size();
    }
    if (count < 0 || static_cast<size_t>(count) > nodes) {
      Fail(StrCat("at most ", nodes, " ", what, ", as many as there are nodes"), StrCat(count));
    }
    return static_cast<size_t>(count);
  }

  void CheckRoutes() const {
    const int tasks = static_cast<int>(spec_.tasks.size());
    const auto is_task = [tasks](int task) { return task >= 0 && task < tasks; };
    for (size_t i = 0; i < spec_.edges.size(); ++i) {
      const EdgeRoute& edge = spec_.edges[i];
      if (is_task(edge.src_task) && is_task(edge.dst_task) && is_task(spec_.self)) continue;
      Fail(StrCat("edges between ", tasks, " tasks"),
           StrCat("edge ", i, " from task ", edge.src_task, " to task ", edge.dst_task, ", seen by task ", spec_.self));
    }
  }

  size_t IndexOf(const Node& node, const char* attribute, size_t count) const {
    const int64_t index = node.attr<int64_t>(attribute);
    if (index >= 0 && static_cast<uint64_t>(index) < count) return static_cast<size_t>(index);
    Fail(StrCat("an attribute '", attribute, "' of 0 or more and below ", count),
         StrCat(index, " at ", node.Describe()));
  }

  void TakeOnce(std::vector<bool>& taken, size_t index, const Node& node) const {
    if (taken[index]) Fail(StrCat("one ", node.op_name(), " of number ", index), StrCat("a second: ", node.Describe()));
    taken[index] = true;
  }

  void CheckEdge(const Node& node, int EdgeRoute::*end, std::vector<bool>& taken) const {
    const size_t edge = IndexOf(node, "edge", spec_.edges.size());
    if (spec_.edges[edge].*end != spec_.self) {
      Fail(StrCat("an edge with this end at task ", spec_.self), StrCat("edge ", edge, " at ", node.Describe()));
    }
    TakeOnce(taken, edge, node);
  }

  void CheckNode(const Node& node) {
    if (!IsOfRuntime(node)) return;
    if (node.has_attr("_of_function")) Fail("a node of a partition", StrCat("a function's ", node.Describe()));
    if (node.op_name() == "_Arg") IndexOf(node, "index", static_cast<size_t>(spec_.num_args));
    if (node.op_name() == "_Retval") TakeOnce(returned_, IndexOf(node, "index", returned_.size()), node);
    if (node.op_name() == "_Send") CheckEdge(node, &EdgeRoute::src_task, sent_);
    if (node.op_name() == "_Recv") CheckEdge(node, &EdgeRoute::dst_task, received_);
  }

  void CheckFunction(const Function& function) const {
    for (const Node* node : function.graph().nodes()) {
      if (!IsOfRuntime(*node)) continue;
      Fail(StrCat("no _Arg, _Retval, _Send or _Recv in the function '", function.name(), "'"), node->Describe());
    }
  }

  const ExecutableSpec& spec_;
  std::vector<bool> returned_;
  std::vector<bool> sent_;
  std::vector<bool> received_;
};

}  // namespace

void CheckExecutableSpec(const ExecutableSpec& spec) { SpecChecker(spec).Check(); }

}  // namespace cohort
