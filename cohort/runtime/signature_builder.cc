// Prepares a signature in this order (Build): prune the graph; give nodes the requested devices of their colocation
// groups; place them; make one _Arg for each device that reads a feed; add the update barriers; make one _Retval for
// each fetch; number feeds and fetches by task; cut the graph by device; register each task's partitions on the task.
#include "cohort/runtime/signature_builder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <utility>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/debugging.h"
#include "cohort/runtime/execution/update_barrier.h"
#include "cohort/runtime/placement/colocation.h"
#include "cohort/runtime/placement/placer.h"

namespace cohort {
namespace {

std::string TaskOf(const std::string& device) { return DeviceName::Parse(device).Task().ToString(); }

}  // namespace

SignatureBuilder::SignatureBuilder(const Graph& graph, const SessionConfig& config, uint64_t session,
                                   std::unique_ptr<ClusterView> view)
    : graph_(graph), config_(config), session_(session), view_(std::move(view)) {
  TaskFor(view_->default_task());
}

std::shared_ptr<TaskClient> SignatureBuilder::TaskFor(const DeviceName& task) {
  const std::string name = task.ToString();
  const auto known = tasks_.find(name);
  if (known != tasks_.end()) return known->second;
  bool allowed = config_.device_filters.empty() || task == view_->default_task();
  for (const std::string& filter : config_.device_filters) {
    allowed = allowed || DeviceName::Parse(filter).Matches(task);
  }
  if (!allowed) {
    throw InvalidArgumentError(StrCat("[session] ", name, " is needed but no device filter matches it (",
                                      StrJoin(config_.device_filters, ", "), ")"));
  }
  return tasks_[name] = view_->Connect(task, DeadlineAfter(config_.connect_timeout));
}

// Devices of the tasks that the graph names, the default task's first.
std::vector<DeviceAttributes> SignatureBuilder::DevicesFor(const Graph& graph) {
  std::set<std::string> seen;
  std::vector<DeviceAttributes> devices;
  const auto add = [&](const DeviceName& task) {
    if (!seen.insert(task.ToString()).second) return;
    const auto& more = TaskFor(task)->devices();
    devices.insert(devices.end(), more.begin(), more.end());
  };
  add(view_->default_task());
  for (const Node* node : graph.nodes()) {
    DeviceName name = DeviceName::Parse(node->device());
    if (!name.job) continue;
    name.replica = 0;
    if (!name.task) {
      for (const DeviceName& task : view_->tasks()) {
        if (task.job == name.job && (!name.task || *task.task < *name.task)) name.task = task.task;
      }
      if (!name.task) name.task = 0;  // Connect names the job that there is not
    }
    add(name.Task());
  }
  return devices;
}

std::unique_ptr<PreparedSignature> SignatureBuilder::Build(const Signature& signature) {
  PrunedGraph pruned = Prune(graph_, signature);
  auto prepared = std::make_unique<PreparedSignature>();
  prepared->signature = signature;
  prepared->fetches = std::make_shared<const std::vector<Output>>(signature.fetches);
  prepared->fed_fetch = pruned.fed_fetch;
  // A request of a node that was pruned holds for those that stand with it.
  const std::vector<std::string> requests = ColocatedRequests(graph_);
  for (Node* node : pruned.graph->nodes()) {
    const Node* original = graph_.FindNode(node->name());
    if (original != nullptr && static_cast<size_t>(original->id()) < requests.size()) {
      node->set_device(requests[static_cast<size_t>(original->id())]);
    }
  }

  const std::vector<Node*> args = pruned.args;
  Placed placed = PlaceGraph(std::move(pruned));
  AddArgsPerDevice(placed, args);
  AddUpdateBarriers(*placed.graph, placed.device_of_node);
  AddRetvals(placed);
  RegisterParts(std::move(placed), *prepared);
  return prepared;
}

SignatureBuilder::Placed SignatureBuilder::PlaceGraph(PrunedGraph pruned) {
  const std::vector<DeviceAttributes> devices = DevicesFor(*pruned.graph);
  PlacementOptions options;
  options.allow_soft_placement = config_.allow_soft_placement;
  options.default_task = view_->default_task();
  const std::vector<const DeviceAttributes*> placement = Place(*pruned.graph, devices, options);
  if (config_.log_device_placement || debugging::GetLogDevicePlacement()) {
    std::fputs(PlacementLog(*pruned.graph, placement).c_str(), stdout);
    std::fflush(stdout);
  }
  Placed placed{std::move(pruned.graph), {}, std::move(pruned.fetches)};
  for (const DeviceAttributes* device : placement) placed.device_of_node.push_back(device->name.ToString());
  return placed;
}

// A feed goes straight to each device that consumes it: one _Arg a device.
void SignatureBuilder::AddArgsPerDevice(Placed& placed, const std::vector<Node*>& args) {
  const std::vector<Node*> nodes = placed.graph->nodes();
  for (Node* arg : args) {
    if (arg == nullptr) continue;
    std::map<std::string, Node*> on_device;
    for (Node* consumer : nodes) {
      for (int i = 0; i < consumer->num_inputs(); ++i) {
        if (consumer->input(i).node != arg) continue;
        const std::string& device = placed.device_of_node[static_cast<size_t>(consumer->id())];
        Node*& here = on_device[device];
        if (here == nullptr && on_device.size() == 1) {
          here = arg;
          placed.device_of_node[static_cast<size_t>(arg->id())] = device;
        } else if (here == nullptr) {
          here = placed.graph->Op("_Arg").Name(arg->name()).Attrs(arg->attrs()).IgnoreScopes().Finish();
          placed.device_of_node.push_back(device);
        }
        if (here != arg) consumer->ReplaceInput(i, here->output(0));
      }
    }
  }
}

void SignatureBuilder::AddRetvals(Placed& placed) {
  for (size_t i = 0; i < placed.fetches.size(); ++i) {
    const Output& fetch = placed.fetches[i];
    if (!fetch.valid()) continue;
    placed.graph->Op("_Retval")
        .Name(StrCat("_retval_", fetch.node->name(), "_", fetch.index))
        .Input(fetch)
        .Attr("index", static_cast<int64_t>(i))
        .IgnoreScopes()
        .Finish();
    placed.device_of_node.push_back(placed.device_of_node[static_cast<size_t>(fetch.node->id())]);
  }
}

// Feeds and fetches are numbered within each task before the graph is cut, while they are still in one place.
SignatureBuilder::PartsByTask SignatureBuilder::NumberFeedsAndFetches(const Graph& graph,
                                                                      const std::vector<std::string>& device_of_node) {
  PartsByTask parts;
  for (Node* node : graph.nodes()) {
    const bool is_arg = node->op_name() == "_Arg";
    if (!is_arg && node->op_name() != "_Retval") continue;
    PreparedSignature::Part& part = parts[TaskOf(device_of_node[static_cast<size_t>(node->id())])];
    std::vector<int>& numbers = is_arg ? part.arg_feeds : part.ret_fetches;
    const int global = static_cast<int>(node->attr<int64_t>("index"));
    const auto found = std::find(numbers.begin(), numbers.end(), global);
    const int64_t local = found - numbers.begin();
    if (found == numbers.end()) numbers.push_back(global);
    node->SetAttr("index", local);
  }
  return parts;
}

SignatureBuilder::TaskNumbers SignatureBuilder::NumberTasks(const PartitionedGraph& cut) {
  TaskNumbers tasks;
  for (const Partition& partition : cut.partitions) {
    const std::string task = TaskOf(partition.device);
    const auto found = std::find(tasks.names.begin(), tasks.names.end(), task);
    tasks.of_partition.push_back(static_cast<int>(found - tasks.names.begin()));
    if (found == tasks.names.end()) tasks.names.push_back(task);
  }
  return tasks;
}

void SignatureBuilder::RegisterParts(Placed placed, PreparedSignature& prepared) {
  PartsByTask parts = NumberFeedsAndFetches(*placed.graph, placed.device_of_node);
  prepared.calls_functions = !placed.graph->functions().empty();

  PartitionedGraph cut = PartitionByDevice(*placed.graph, placed.device_of_node);
  for (const Partition& partition : cut.partitions) prepared.dump->Keep(partition.device, *partition.graph);
  prepared.can_repeat =
      cut.partitions.size() == 1 && prepared.signature.feeds.empty() && prepared.signature.fetches.empty();
  const TaskNumbers tasks = NumberTasks(cut);
  std::vector<EdgeRoute> routes;
  for (const CrossingEdge& edge : cut.edges) {
    routes.push_back({tasks.of_partition[static_cast<size_t>(edge.src_partition)],
                      tasks.of_partition[static_cast<size_t>(edge.dst_partition)], edge.tensor_name});
  }
  const ExecutableKey key{session_, next_executable_++};
  const std::string default_task = view_->default_task().ToString();
  for (size_t t = 0; t < tasks.names.size(); ++t) {
    ExecutableSpec spec;
    spec.key = key;
    spec.tasks = tasks.names;
    spec.self = static_cast<int>(t);
    spec.edges = routes;
    for (size_t p = 0; p < cut.partitions.size(); ++p) {
      if (tasks.of_partition[p] == static_cast<int>(t)) {
        spec.partitions.push_back({cut.partitions[p].device, std::move(cut.partitions[p].graph)});
      }
    }
    PreparedSignature::Part part = std::move(parts[tasks.names[t]]);
    part.task = TaskFor(DeviceName::Parse(tasks.names[t]));
    part.key = key;
    spec.num_args = static_cast<int>(part.arg_feeds.size());
    spec.num_rets = static_cast<int>(part.ret_fetches.size());
    part.task->Register(std::move(spec));
    const bool is_default = tasks.names[t] == default_task;
    prepared.parts.insert(is_default ? prepared.parts.end() : prepared.parts.begin(), std::move(part));
  }
  FindInlinePart(prepared);
}

void SignatureBuilder::FindInlinePart(PreparedSignature& prepared) {
  if (prepared.parts.size() != 1) return;
  const PreparedSignature::Part& only = prepared.parts.front();
  bool in_order = only.ret_fetches.size() == prepared.fed_fetch.size();
  for (size_t i = 0; i < only.ret_fetches.size(); ++i) {
    in_order = in_order && only.ret_fetches[i] == static_cast<int>(i);
  }
  if (in_order) prepared.inline_part = only.task->FindInline(only.key);
}

}  // namespace cohort
