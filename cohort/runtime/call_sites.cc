#include "cohort/runtime/call_sites.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/graph/function.h"

namespace cohort {
namespace {

constexpr std::string_view kBegin = "[[";
constexpr std::string_view kEnd = "]]";
constexpr std::string_view kNode = " node '";
constexpr std::string_view kFunction = "\n  in function '";
constexpr std::string_view kCaller = "', called by ";

// A node that the message names: `where` is the place in the message behind its description.
struct Named {
  std::string node;
  std::string function;  // the node stands in; "": in the graph of the session
  size_t where = 0;
};

// Returns the text between the quotes that follow `mark`, which is looked for in message[begin, end), and moves `begin`
// behind the closing quote. Returns "" if there is none.
std::string Quoted(std::string_view message, std::string_view mark, size_t end, size_t* begin) {
  const size_t found = message.find(mark, *begin);
  if (found == std::string_view::npos || found >= end) return "";
  const size_t first = found + mark.size();
  const size_t last = message.find('\'', first);
  if (last == std::string_view::npos || last >= end) return "";
  *begin = last + 1;
  return std::string(message.substr(first, last - first));
}

// Reads "[[OP node 'NAME' on DEVICE, inputs: ...]]" at `begin`, and the lines "in function 'F', called by OP node 'C'"
// behind it, the innermost function first. Returns the place behind all of it.
size_t ReadDescription(std::string_view message, size_t begin, std::vector<Named>* all) {
  size_t end = message.find(kEnd, begin);
  if (end == std::string_view::npos) return message.size();
  end += kEnd.size();
  while (end < message.size() && message[end] == ']') ++end;  // a shape ends before it
  size_t at = begin;
  all->push_back({Quoted(message, kNode, end, &at), "", end});
  while (message.substr(end).starts_with(kFunction)) {
    size_t next = end;
    const std::string function = Quoted(message, kFunction, message.size(), &next);
    next -= next > end ? 1 : 0;  // kCaller begins with the closing quote
    if (function.empty() || !message.substr(next).starts_with(kCaller)) break;
    const std::string caller = Quoted(message, kNode, message.size(), &next);
    if (caller.empty()) break;
    all->back().function = function;
    all->push_back({caller, "", next});
    end = next;
  }
  return end;
}

std::string SiteOf(const Graph& graph, const Named& named) {
  const std::shared_ptr<const Function> function =
      named.function.empty() ? nullptr : graph.FindFunction(named.function);
  if (!named.function.empty() && function == nullptr) return "";
  const Node* node = (function == nullptr ? graph : function->graph()).FindNode(named.node);
  return node == nullptr ? "" : node->site().ToString();
}

}  // namespace

std::string WithCallSites(const Graph& graph, const std::string& message) {
  std::vector<Named> all;
  for (size_t at = message.find(kBegin); at < message.size(); at = message.find(kBegin, at)) {
    at = ReadDescription(message, at, &all);
  }
  std::string result;
  size_t copied = 0;
  for (const Named& named : all) {
    const std::string site = SiteOf(graph, named);
    if (site.empty()) continue;
    result += StrCat(std::string_view(message).substr(copied, named.where - copied), ", made at ", site);
    copied = named.where;
  }
  return result + message.substr(copied);
}

}  // namespace cohort
