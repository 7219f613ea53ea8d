#include "cohort/distribute/coordinator/cluster_coordinator.h"

#include <map>
#include <optional>
#include <set>

#include "cohort/cluster/server.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/drawn_seeds.h"
#include "cohort/distribute/coordinator/closure_worker.h"
#include "cohort/distribute/strategies.h"
#include "cohort/graph/device_name.h"
#include "cohort/ops/control.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

// The difference between the seeds of two workers' shuffles.
constexpr uint64_t kBetweenSeeds = 0x9e3779b97f4a7c15;

// The distance between the seeds of two functions' random ops, so that no two ops of a graph have equal ones.
constexpr int64_t kSeedsOfFunction = 1 << 16;

// How many ClosureBody calls this thread is in.
thread_local int bodies_open = 0;

class InBody {
 public:
  InBody() { ++bodies_open; }
  ~InBody() { --bodies_open; }
  InBody(const InBody&) = delete;
  InBody& operator=(const InBody&) = delete;
};

const std::vector<std::string>& WorkersOf(const StrategyPtr& strategy, const CoordinatorOptions& options) {
  if (strategy == nullptr || strategy->closure_workers().empty()) {
    throw InvalidArgumentError(StrCat("[coordinator] expected a ParameterServerStrategy for a ClusterCoordinator; got ",
                                      strategy == nullptr ? "no strategy" : strategy->name()));
  }
  if (options.closures_in_flight < 1) {
    throw InvalidArgumentError(
        StrCat("[coordinator] expected closures_in_flight of at least 1; got ", options.closures_in_flight));
  }
  return strategy->closure_workers();
}

// Throws if two workers' nodes of a function differ.
void CheckAlike(const std::string& name, const ClosureFunction::OfWorker& first, const ClosureFunction::OfWorker& own,
                size_t worker) {
  bool alike = first.arguments.size() == own.arguments.size() && first.fetches.size() == own.fetches.size() &&
               first.sources == own.sources;
  for (size_t i = 0; alike && i < own.arguments.size(); ++i) {
    alike = first.arguments[i].dtype() == own.arguments[i].dtype() &&
            first.arguments[i].shape() == own.arguments[i].shape();
  }
  for (size_t i = 0; alike && i < own.fetches.size(); ++i) {
    alike = first.fetches[i].dtype() == own.fetches[i].dtype();
  }
  if (alike) return;
  throw FailedPreconditionError(StrCat("[coordinator] expected function '", name, "' to have equal arguments and ",
                                       "fetches on all workers; worker 0 has ", first.arguments.size(),
                                       " arguments and ", first.fetches.size(), " fetches, worker ", worker, " has ",
                                       own.arguments.size(), " and ", own.fetches.size(), ", or their dtypes differ"));
}

// Throws if a body has added an op of a queue: a closure that runs again would take or add a further element, and one
// that waits for others may wait for ever. `nodes_before` is the number of nodes before the body.
void CheckNodes(const std::string& name, const Graph& graph, int nodes_before) {
  const std::vector<Node*> nodes = graph.nodes();
  for (size_t i = static_cast<size_t>(nodes_before); i < nodes.size(); ++i) {
    if (nodes[i]->op_name().find("Queue") == std::string::npos) continue;
    throw FailedPreconditionError(StrCat("[coordinator] expected no queues in function '", name,
                                         "', because a closure may run more than once; got ", nodes[i]->Describe()));
  }
}

std::vector<data::Dataset> DatasetsOf(const std::function<data::Dataset(int worker)>& make, int workers) {
  std::vector<data::Dataset> datasets;
  datasets.reserve(static_cast<size_t>(workers));
  for (int w = 0; w < workers; ++w) datasets.push_back(make(w));
  return datasets;
}

PerWorkerSource& SourceOf(const PerWorkerValue& value) {
  if (value.valid()) return *value.source();
  throw InvalidArgumentError("[coordinator] expected a PerWorkerValue; got an empty one");
}

// Throws if the nodes of a function use a variable that is on no parameter server. Local variables of the worker itself
// (CreatePerWorkerValue) are excepted.
void CheckVariables(const std::string& name, const Graph& graph, const ClosureNodes& nodes) {
  std::map<const Node*, const VariableInfo*> variables;
  for (const VariableInfo* variable : graph.variables()) {
    if (variable->handle.valid()) variables[variable->handle.node] = variable;
  }
  std::vector<const Node*> stack(nodes.targets.begin(), nodes.targets.end());
  for (const Output& fetch : nodes.fetches) stack.push_back(fetch.node);
  std::set<const Node*> seen;
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Output& input : node->inputs()) stack.push_back(input.node);
    for (const Node* control : node->control_inputs()) stack.push_back(control);
    const auto found = variables.find(node);
    if (found == variables.end() || !node->colocate_with().empty()) continue;
    const std::optional<std::string> job = DeviceName::Parse(node->device()).job;
    if (job == "ps" || (job == "worker" && found->second->local)) continue;
    throw FailedPreconditionError(StrCat("[coordinator] expected the variables of function '", name,
                                         "' on parameter servers; variable '", found->second->name, "' is ",
                                         node->device().empty() ? "on no chosen device" : "on " + node->device(),
                                         ": make it in strategy->Scope(graph), before MakeFunction"));
  }
}

}  // namespace

ClusterCoordinator::ClusterCoordinator(StrategyPtr strategy, Graph& graph, const CoordinatorOptions& options)
    : strategy_(std::move(strategy)), graph_(graph) {
  const std::vector<std::string>& devices = WorkersOf(strategy_, options);
  shared_ = std::make_unique<ClosureWorkers>(*strategy_, graph_, options, devices.size());
  const ControlDependencies none(graph_, nullptr);
  const ColocateWith nowhere(graph_, nullptr);
  std::vector<Node*> ready;
  for (const std::string& device : devices) {
    const DeviceScope scope(graph_, device);
    ready.push_back(ops::NoOp(graph_, "worker_is_ready"));
  }
  for (const auto& [device, bytes] : BytesByDevice(graph_)) {
    LogInfo("coordinator", "variables on ", device, ": ", bytes, " bytes");
  }
  try {
    for (size_t w = 0; w < devices.size(); ++w) {
      workers_.push_back(std::make_unique<ClosureWorker>(*shared_, static_cast<int>(w), devices[w], ready[w]));
    }
  } catch (...) {  // there is no thread for a worker
    shared_->queue.Stop();
    throw;
  }
}

ClusterCoordinator::~ClusterCoordinator() {
  shared_->queue.Stop();
  workers_.clear();
}

void ClusterCoordinator::CheckOutside(const char* call) {
  if (bodies_open == 0) return;
  throw FailedPreconditionError(StrCat("[coordinator] expected ", call, " outside of a closure; it was called by a ",
                                       "function that MakeFunction makes: a closure cannot wait for other closures"));
}

ClosureFunctionPtr ClusterCoordinator::MakeFunction(const ClosureBody& body, const std::string& name) {
  CheckOutside("MakeFunction");
  std::vector<ClosureFunction::OfWorker> made;
  const int64_t first_seed = (functions_.fetch_add(1) + 1) * kSeedsOfFunction;
  for (int w = 0; w < num_workers(); ++w) {
    const ops::SeedScope seeds(static_cast<int64_t>(shared_->run >> 1), first_seed);  // equal for all workers
    const std::string& device = strategy_->closure_workers()[static_cast<size_t>(w)];
    const NameScope names(graph_, name);
    const ColocateWith nowhere(graph_, nullptr);
    const DeviceScope scope(graph_, device);
    ClosureContext context(graph_, w, device);
    const InBody inside;
    const int nodes_before = graph_.num_nodes();
    ClosureNodes nodes = body(context);
    CheckNodes(name, graph_, nodes_before);
    CheckVariables(name, graph_, nodes);
    made.push_back({context.arguments(), context.sources(), context.elements(), std::move(nodes.fetches),
                    std::move(nodes.targets)});
    CheckAlike(name, made.front(), made.back(), static_cast<size_t>(w));
  }
  return std::make_shared<const ClosureFunction>(name, std::move(made));
}

RemoteValue ClusterCoordinator::Schedule(const ClosureFunctionPtr& function, std::vector<Tensor> arguments) {
  CheckOutside("Schedule");
  if (function == nullptr) {
    throw InvalidArgumentError("[coordinator] expected a function of MakeFunction to schedule; got null");
  }
  function->CheckArguments(arguments);
  auto closure = std::make_shared<Closure>();
  closure->function = function;
  closure->arguments = std::move(arguments);
  closure->result = std::make_shared<RemoteResult>();
  shared_->queue.Put(closure);
  return RemoteValue(closure->result);
}

void ClusterCoordinator::Join() {
  CheckOutside("Join");
  shared_->queue.AwaitIdle();
}

bool ClusterCoordinator::Done() { return shared_->queue.idle(); }

std::vector<RunResults> ClusterCoordinator::Fetch(const std::vector<RemoteValue>& values) {
  std::vector<RunResults> fetched;
  fetched.reserve(values.size());
  for (const RemoteValue& value : values) fetched.push_back(value.Fetch());
  return fetched;
}

PerWorkerValue ClusterCoordinator::CreatePerWorkerValue(
    const std::function<std::vector<Output>(Graph& graph, int worker)>& make) {
  CheckOutside("CreatePerWorkerValue");
  const auto source = MakeStoredValue(graph_, shared_->Workers(), make);
  shared_->AddSource(source);
  return PerWorkerValue(source);
}

data::Dataset ClusterCoordinator::DatasetOfWorker(const data::Dataset& dataset, int worker) {
  std::vector<uint64_t> seeds = data::DrawnSeeds(dataset);
  for (uint64_t& seed : seeds) seed += static_cast<uint64_t>(worker) * kBetweenSeeds;
  return data::WithDrawnSeeds(dataset, seeds);
}

PerWorkerValue ClusterCoordinator::CreatePerWorkerDataset(const data::Dataset& dataset) {
  return CreatePerWorkerDataset([&](int worker) { return DatasetOfWorker(dataset, worker); });
}

PerWorkerValue ClusterCoordinator::CreatePerWorkerDataset(const std::function<data::Dataset(int worker)>& make) {
  CheckOutside("CreatePerWorkerDataset");
  const std::vector<data::Dataset> datasets = DatasetsOf(make, num_workers());
  const auto source = MakeIteratorsOfWorkers(graph_, shared_->Workers(), datasets[0].element_spec());
  source->SetDatasets(datasets);
  shared_->AddSource(source);
  return PerWorkerValue(source);
}

PerWorkerValue ClusterCoordinator::CreatePerWorkerIterator(const data::ElementSpec& spec) {
  CheckOutside("CreatePerWorkerIterator");
  const auto source = MakeIteratorsOfWorkers(graph_, shared_->Workers(), spec);
  shared_->AddSource(source);
  return PerWorkerValue(source);
}

void ClusterCoordinator::CheckIdle(const char* call) {
  CheckOutside(call);
  shared_->queue.ExpectAlive();
  if (Done()) return;
  throw FailedPreconditionError(
      StrCat("[coordinator] expected ", call, " after Join; closures are queued or run, or one has failed"));
}

void ClusterCoordinator::SetPerWorkerDataset(const PerWorkerValue& value,
                                             const std::function<data::Dataset(int worker)>& make) {
  CheckIdle("SetPerWorkerDataset");
  SourceOf(value).SetDatasets(DatasetsOf(make, num_workers()));
}

void ClusterCoordinator::RestartPerWorkerDataset(const PerWorkerValue& value) {
  CheckIdle("RestartPerWorkerDataset");
  SourceOf(value).Restart();
}

int64_t ClusterCoordinator::lost_elements() const { return shared_->lost_elements; }
int64_t ClusterCoordinator::repeated_closures() const { return shared_->repeated_closures; }

void ClusterCoordinator::AnnounceDone() {
  if (strategy_->server() == nullptr) {
    throw FailedPreconditionError(
        "[coordinator] expected a cluster with the job \"chief\" to announce the end of training; got none: end its "
        "workers and parameter servers by a signal");
  }
  strategy_->server()->AnnounceDone();
}

}  // namespace cohort::distribute
