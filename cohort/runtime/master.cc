#include "cohort/runtime/master.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/colocation.h"
#include "cohort/runtime/partitioner.h"
#include "cohort/runtime/placer.h"
#include "cohort/runtime/update_barrier.h"

namespace cohort {
namespace {

size_t HashOf(const FeedList& feeds, const std::vector<Output>& fetches, const std::vector<Node*>& targets) {
  size_t hash = feeds.size() * 31 + fetches.size();
  const auto mix = [&hash](const void* pointer, int index) {
    hash = (hash ^ (reinterpret_cast<size_t>(pointer) + static_cast<size_t>(index))) * 0x9e3779b97f4a7c15ull;
  };
  for (const auto& [feed, value] : feeds) mix(feed.node, feed.index);
  for (const Output& fetch : fetches) mix(fetch.node, fetch.index);
  for (const Node* target : targets) mix(target, -1);
  return hash;
}

bool IsFor(const Signature& signature, const FeedList& feeds, const std::vector<Output>& fetches,
           const std::vector<Node*>& targets) {
  return std::equal(signature.feeds.begin(), signature.feeds.end(), feeds.begin(), feeds.end(),
                    [](const Output& known, const auto& feed) { return known == feed.first; }) &&
         signature.fetches == fetches && signature.targets == targets;
}

std::string TaskOf(const std::string& device) { return DeviceName::Parse(device).Task().ToString(); }

}  // namespace

Master::Master(const Graph& graph, const std::string& target, const SessionConfig& config)
    : graph_(graph),
      config_(config),
      session_id_(NewIncarnation()),
      view_(SessionFactories::Global().Make(target, config)) {
  MutexLock lock(build_mu_);
  TaskFor(view_->default_task());
}

Master::~Master() { Close(); }

void Master::Close() {
  if (closed_.exchange(true)) return;
  std::vector<std::shared_ptr<TaskClient>> tasks;
  {
    MutexLock lock(build_mu_);
    for (const auto& [name, task] : tasks_) tasks.push_back(task);
  }
  for (const auto& task : tasks) task->CloseSession(session_id_);
}

const PreparedSignature& Master::Prepare(const FeedList& feeds, const std::vector<Output>& fetches,
                                         const std::vector<Node*>& targets) {
  if (closed_.load(std::memory_order_relaxed)) throw FailedPreconditionError("[session] the session is closed");
  const size_t hash = HashOf(feeds, fetches, targets);
  const auto find = [&]() -> const PreparedSignature* {
    MutexLock lock(mu_);
    const auto [begin, end] = prepared_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (IsFor(it->second->signature, feeds, fetches, targets)) return it->second.get();
    }
    return nullptr;
  };
  if (const PreparedSignature* found = find()) return *found;
  MutexLock build_lock(build_mu_);
  if (const PreparedSignature* found = find()) return *found;
  Signature signature{{}, fetches, targets};
  for (const auto& [feed, value] : feeds) signature.feeds.push_back(feed);
  WatchGrowth();
  std::unique_ptr<PreparedSignature> built = Build(signature);
  MutexLock lock(mu_);
  return *prepared_.emplace(hash, std::move(built))->second;
}

void Master::WatchGrowth() {
  const int64_t version = graph_.version();
  if (growths_ == kGrowthsToTell) return;  // told
  if (built_version_ < 0 || version == built_version_) {
    growths_ = 0;
    version_before_growths_ = version;
  } else if (++growths_ == kGrowthsToTell) {
    const Node* latest = graph_.nodes().back();
    LogWarning("session", "nodes were added to the graph before each of the latest ", growths_, " new runs: it has ",
               version, " nodes, ", version - version_before_growths_, " more than before them, the latest is ",
               latest->Describe(),
               ". Each such run plans and compiles the graph again, which takes longer the more nodes there are; add "
               "the nodes before the loop, and call Graph::Finalize() to make a later one an error");
  }
  built_version_ = version;
}

std::shared_ptr<TaskClient> Master::TaskFor(const DeviceName& task) {
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
  const auto timeout = std::chrono::duration<double>(config_.connect_timeout_secs);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(timeout);
  return tasks_[name] = view_->Connect(task, deadline);
}

// Devices of the tasks that the graph names, the default task's first.
std::vector<DeviceAttributes> Master::DevicesFor(const Graph& graph) {
  std::set<std::string> seen;
  std::vector<DeviceAttributes> devices;
  const auto add = [&](const DeviceName& task) REQUIRES(build_mu_) {
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

std::unique_ptr<PreparedSignature> Master::Build(const Signature& signature) {
  PrunedGraph pruned = Prune(graph_, signature);
  auto prepared = std::make_unique<PreparedSignature>();
  prepared->master = this;
  prepared->signature = signature;
  prepared->fed_fetch = pruned.fed_fetch;
  // A request of a node that was pruned holds for those that stand with it.
  const std::vector<std::string> requests = ColocatedRequests(graph_);
  for (Node* node : pruned.graph->nodes()) {
    const Node* original = graph_.FindNode(node->name());
    if (original != nullptr && static_cast<size_t>(original->id()) < requests.size()) {
      node->set_device(requests[static_cast<size_t>(original->id())]);
    }
  }

  const std::vector<DeviceAttributes> devices = DevicesFor(*pruned.graph);
  PlacementOptions options;
  options.allow_soft_placement = config_.allow_soft_placement;
  options.default_task = view_->default_task();
  const std::vector<const DeviceAttributes*> placement = Place(*pruned.graph, devices, options);
  if (config_.log_device_placement) {
    std::fputs(PlacementLog(*pruned.graph, placement).c_str(), stdout);
    std::fflush(stdout);
  }
  Placed placed{std::move(pruned.graph), {}, std::move(pruned.fetches)};
  for (const DeviceAttributes* device : placement) placed.device_of_node.push_back(device->name.ToString());
  AddArgsPerDevice(placed, pruned.args);
  AddUpdateBarriers(*placed.graph, placed.device_of_node);
  AddRetvals(placed);
  RegisterParts(std::move(placed), *prepared);
  return prepared;
}

// A feed goes straight to each device that consumes it: one _Arg a device.
void Master::AddArgsPerDevice(Placed& placed, const std::vector<Node*>& args) {
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

void Master::AddRetvals(Placed& placed) {
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

void Master::RegisterParts(Placed placed, PreparedSignature& prepared) {
  // Feeds and fetches are numbered within each task before the graph is cut, while they are still in one place.
  std::map<std::string, PreparedSignature::Part> parts;
  for (Node* node : placed.graph->nodes()) {
    const bool is_arg = node->op_name() == "_Arg";
    if (!is_arg && node->op_name() != "_Retval") continue;
    PreparedSignature::Part& part = parts[TaskOf(placed.device_of_node[static_cast<size_t>(node->id())])];
    std::vector<int>& numbers = is_arg ? part.arg_feeds : part.ret_fetches;
    const int global = static_cast<int>(node->attr<int64_t>("index"));
    const auto found = std::find(numbers.begin(), numbers.end(), global);
    const int64_t local = found - numbers.begin();
    if (found == numbers.end()) numbers.push_back(global);
    node->SetAttr("index", local);
  }
  prepared.calls_functions = !placed.graph->functions().empty();

  PartitionedGraph cut = PartitionByDevice(*placed.graph, placed.device_of_node);
  for (const Partition& partition : cut.partitions) prepared.dump.Keep(partition.device, *partition.graph);
  std::vector<std::string> tasks;
  const auto task_index = [&tasks](const std::string& device) {
    const std::string task = TaskOf(device);
    const auto found = std::find(tasks.begin(), tasks.end(), task);
    if (found != tasks.end()) return static_cast<int>(found - tasks.begin());
    tasks.push_back(task);
    return static_cast<int>(tasks.size()) - 1;
  };
  std::vector<int> task_of_partition;
  for (const Partition& partition : cut.partitions) task_of_partition.push_back(task_index(partition.device));
  std::vector<EdgeRoute> routes;
  for (const CrossingEdge& edge : cut.edges) {
    routes.push_back({task_of_partition[static_cast<size_t>(edge.src_partition)],
                      task_of_partition[static_cast<size_t>(edge.dst_partition)], edge.tensor_name});
  }

  const ExecutableKey key{session_id_, next_executable_++};
  const std::string default_task = view_->default_task().ToString();
  for (size_t t = 0; t < tasks.size(); ++t) {
    ExecutableSpec spec;
    spec.key = key;
    spec.tasks = tasks;
    spec.self = static_cast<int>(t);
    spec.edges = routes;
    for (size_t p = 0; p < cut.partitions.size(); ++p) {
      if (task_of_partition[p] == static_cast<int>(t)) {
        spec.partitions.push_back({cut.partitions[p].device, std::move(cut.partitions[p].graph)});
      }
    }
    PreparedSignature::Part part = parts[tasks[t]];
    part.task = TaskFor(DeviceName::Parse(tasks[t]));
    part.key = key;
    spec.num_args = static_cast<int>(part.arg_feeds.size());
    spec.num_rets = static_cast<int>(part.ret_fetches.size());
    part.task->Register(std::move(spec));
    if (tasks[t] == default_task) {
      prepared.parts.push_back(std::move(part));
    } else {
      prepared.parts.insert(prepared.parts.begin(), std::move(part));
    }
  }
  if (prepared.parts.size() != 1) return;
  const PreparedSignature::Part& only = prepared.parts.front();
  bool in_order = only.ret_fetches.size() == prepared.fed_fetch.size();
  for (size_t i = 0; i < only.ret_fetches.size(); ++i)
    in_order = in_order && only.ret_fetches[i] == static_cast<int>(i);
  if (in_order) prepared.inline_part = only.task->FindInline(key);
}

// One step as its caller waits for it. The callbacks of the parts share it, because the last of them may still be on
// its way out when the caller goes on.
struct Master::StepCall {
  const std::vector<PreparedSignature::Part>* parts = nullptr;  // outlives the step's last part
  int64_t step = 0;
  Mutex mu;
  CondVar changed;
  size_t left GUARDED_BY(mu) = 0;
  Status status GUARDED_BY(mu);
  std::vector<bool> ended GUARDED_BY(mu);
  std::vector<Tensor> results GUARDED_BY(mu);

  void CancelAllBut(size_t except, const Status& why) {
    for (size_t i = 0; i < parts->size(); ++i) {
      if (i != except) (*parts)[i].task->CancelStep((*parts)[i].key, step, why);
    }
  }

  // The tasks whose parts have not ended.
  std::string AtWork() const REQUIRES(mu) {
    std::vector<std::string> names;
    for (size_t i = 0; i < parts->size(); ++i) {
      if (!ended[i]) names.push_back((*parts)[i].task->name());
    }
    return StrJoin(names, ", ");
  }

  // Whether the step has failed already; a part that starts now has to be cancelled.
  Status Failure() {
    MutexLock lock(mu);
    return status;
  }

  void PartDone(size_t index, const Status& part_status, std::vector<Tensor> rets) {
    bool first_failure = false;
    if (!part_status.ok()) {
      MutexLock lock(mu);
      first_failure = status.ok();
      if (first_failure) status = part_status;
    }
    if (first_failure) CancelAllBut(index, part_status);
    MutexLock lock(mu);
    const std::vector<int>& fetches = (*parts)[index].ret_fetches;
    for (size_t i = 0; i < rets.size() && i < fetches.size(); ++i) {
      results[static_cast<size_t>(fetches[i])] = std::move(rets[i]);
    }
    ended[index] = true;
    if (--left == 0) changed.NotifyAll();
  }
};

void Master::CheckFeeds(const PreparedSignature& prepared, const FeedValues& feeds) {
  const std::vector<Output>& wanted = prepared.signature.feeds;
  if (feeds.size() != wanted.size()) {
    throw InvalidArgumentError(
        StrCat("[session] ", feeds.size(), " values were fed; the signature has ", wanted.size(), " feeds"));
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (feeds[i].dtype() != wanted[i].dtype()) {
      throw InvalidArgumentError(StrCat("[session] ", wanted[i].name(), " is ", wanted[i].dtype(), "; it was fed ",
                                        feeds[i].dtype(), feeds[i].shape()));
    }
    if (!wanted[i].shape().IsCompatibleWith(feeds[i].shape())) {
      throw InvalidArgumentError(StrCat("[session] cannot feed a value of shape ", feeds[i].shape(), " for ",
                                        wanted[i].name(), ", which has shape ", wanted[i].shape()));
    }
  }
}

std::vector<Tensor> Master::RunStep(const PreparedSignature& prepared, const FeedValues& feeds,
                                    const RunOptions& options) {
  if (closed_.load(std::memory_order_relaxed)) throw FailedPreconditionError("[session] the session is closed");
  CheckFeeds(prepared, feeds);
  const int64_t step = next_step_.fetch_add(1, std::memory_order_relaxed);
  const int64_t timeout = options.timeout_in_ms > 0 ? options.timeout_in_ms : config_.operation_timeout_in_ms;
  try {
    if (timeout <= 0) {
      if (const std::shared_ptr<Executable> here = prepared.inline_part.lock()) {
        const std::vector<int>& arg_feeds = prepared.parts.front().arg_feeds;
        return here->RunInline(step, [&feeds, &arg_feeds](std::vector<Tensor>& args) {
          for (const int feed : arg_feeds) args.push_back(feeds[feed]);
        });
      }
    }
    return RunParts(prepared, feeds, step, timeout);
  } catch (const OutOfRangeError&) {  // the end of an input
    throw;
  } catch (...) {
    prepared.dump.Write(session_id_, step);
    throw;
  }
}

std::vector<Tensor> Master::RunParts(const PreparedSignature& prepared, const FeedValues& feeds, int64_t step,
                                     int64_t timeout) {
  const std::vector<PreparedSignature::Part>& parts = prepared.parts;
  // A part that needs nobody else, or runs a loop, would keep this thread from watching the clock until it has run to
  // its end.
  const bool watch_from_outside = timeout > 0 && (prepared.calls_functions || !prepared.inline_part.expired());
  const Executor::Mode mode = watch_from_outside ? Executor::Mode::kDevice : Executor::Mode::kInline;
  auto call = std::make_shared<StepCall>();
  call->parts = &parts;
  call->step = step;
  {
    MutexLock lock(call->mu);
    call->left = parts.size();
    call->ended.assign(parts.size(), false);
    call->results.resize(prepared.fed_fetch.size());
    for (size_t i = 0; i < prepared.fed_fetch.size(); ++i) {
      if (prepared.fed_fetch[i] >= 0) call->results[i] = feeds[prepared.fed_fetch[i]];
    }
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    std::vector<Tensor> args;
    args.reserve(parts[p].arg_feeds.size());
    for (const int feed : parts[p].arg_feeds) args.push_back(feeds[feed]);
    parts[p].task->StartStep(
        parts[p].key, step, std::move(args), mode,
        [call, p](const Status& status, std::vector<Tensor> rets) { call->PartDone(p, status, std::move(rets)); });
    // A part that failed meanwhile may have cancelled this one before it was started.
    if (p > 0) {
      if (const Status failure = call->Failure(); !failure.ok()) parts[p].task->CancelStep(parts[p].key, step, failure);
    }
  }

  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  constexpr std::chrono::hours kNever{1 << 16};
  const auto deadline = start + (timeout > 0 ? std::chrono::milliseconds(timeout) : kNever);
  auto patience = std::chrono::milliseconds(std::lround(std::min(1000 * config_.late_step_secs, 1e11)));
  auto say = start + (patience.count() > 0 ? patience : kNever);
  {
    MutexLock lock(call->mu);
    bool too_late = false;
    while (call->left > 0) {  // ends: a lost task ends its part, a cancelled one its kernels
      call->changed.WaitUntil(call->mu, too_late ? say : std::min(say, deadline));
      const auto now = Clock::now();
      if (call->left == 0) break;
      if (!too_late && now >= deadline) {
        too_late = true;
        const Status late(Code::kDeadlineExceeded, StrCat("[session] step ", step, " did not end within ", timeout,
                                                          " ms; still at work: ", call->AtWork()));
        if (call->status.ok()) call->status = late;
        call->mu.Unlock();
        call->CancelAllBut(parts.size(), late);
        call->mu.Lock();
      } else if (now >= say) {
        LogWarning("session", "step ", step, " has been under way for ",
                   std::chrono::duration_cast<std::chrono::milliseconds>(now - start).count() / 1000.0,
                   " s; still at work: ", call->AtWork());
        patience *= 2;  // a step may be long
        say = now + patience;
      }
    }
    call->status.ThrowIfError();
    return std::move(call->results);
  }
}

std::vector<DeviceAttributes> Master::ListDevices() {
  std::vector<DeviceAttributes> devices;
  MutexLock lock(build_mu_);
  for (const auto& [name, task] : tasks_) {
    devices.insert(devices.end(), task->devices().begin(), task->devices().end());
  }
  return devices;
}

}  // namespace cohort
