#include "cohort/distribute/coordinator/per_worker.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/graph_iterator.h"

namespace cohort::distribute {
namespace {

class StoredValue final : public PerWorkerSource {
 public:
  explicit StoredValue(std::vector<std::vector<ops::Variable>> variables) : variables_(std::move(variables)) {}

  int64_t version() const override { return 1; }
  WorkerInitialization Initialization(int worker, int64_t /*has*/) const override {
    WorkerInitialization all;
    for (const ops::Variable& variable : variables_[static_cast<size_t>(worker)]) {
      all.nodes.push_back(variable.initializer());
    }
    return all;
  }
  std::vector<Output> Get(int worker) const override {
    std::vector<Output> values;
    for (const ops::Variable& variable : variables_[static_cast<size_t>(worker)]) values.push_back(variable.value());
    return values;
  }
  int elements() const override { return 0; }

 private:
  const std::vector<std::vector<ops::Variable>> variables_;  // by worker
};

class IteratorsOfWorkers final : public PerWorkerSource {
 public:
  explicit IteratorsOfWorkers(std::vector<data::GraphIterator> iterators) : iterators_(std::move(iterators)) {}

  int64_t version() const override {
    MutexLock lock(mu_);
    return version_;
  }
  WorkerInitialization Initialization(int worker, int64_t has) const override {
    MutexLock lock(mu_);
    if (initializers_.empty()) return {};
    if (has >= version_of_data_) return {{}, {restarts_[static_cast<size_t>(worker)]}};
    const data::GraphIteratorInitializer& own = initializers_[static_cast<size_t>(worker)];
    return {own.feeds, {own.node}};
  }
  std::vector<Output> Get(int worker) const override { return iterators_[static_cast<size_t>(worker)].GetNext(); }
  std::vector<Output> GetAt(int worker, Output index) const override {
    return iterators_[static_cast<size_t>(worker)].GetAt(index);
  }
  int elements() const override { return 1; }
  void SetDatasets(const std::vector<data::Dataset>& datasets) override {
    CheckAlike(datasets);
    MutexLock lock(mu_);
    std::vector<data::GraphIteratorInitializer> made;
    bool other_data = initializers_.empty();
    for (size_t w = 0; w < iterators_.size(); ++w) {
      const bool has_one = w < initializers_.size();
      made.push_back(
          iterators_[w].MakeInitializer(datasets[w], has_one ? initializers_[w] : data::GraphIteratorInitializer()));
      other_data = other_data || made[w].description != initializers_[w].description;
    }
    if (!other_data) return BeginAgain();
    initializers_ = std::move(made);
    version_of_data_ = ++version_;
  }
  void Restart() override {
    MutexLock lock(mu_);
    if (version_ > 0) BeginAgain();
  }

 private:
  // Makes the workers begin at the start of the data that they have.
  void BeginAgain() COHORT_REQUIRES(mu_) {
    if (restarts_.empty()) {
      for (const data::GraphIterator& iterator : iterators_) restarts_.push_back(iterator.MakeRestart());
    }
    ++version_;
  }
  static void CheckAlike(const std::vector<data::Dataset>& datasets) {
    for (size_t w = 1; w < datasets.size(); ++w) {
      const data::ElementSpec& first = datasets[0].element_spec();
      const data::ElementSpec& other = datasets[w].element_spec();
      bool equal = first.size() == other.size();
      for (size_t i = 0; equal && i < first.size(); ++i) {
        equal = first[i].dtype == other[i].dtype && first[i].shape == other[i].shape;
      }
      if (equal) continue;
      throw InvalidArgumentError(
          StrCat("[coordinator] expected datasets of equal elements for all workers; worker 0 has ",
                 datasets[0].ToString(), ", worker ", w, " has ", datasets[w].ToString()));
    }
  }

  const std::vector<data::GraphIterator> iterators_;  // by worker
  mutable Mutex mu_;
  int64_t version_ COHORT_GUARDED_BY(mu_) = 0;
  int64_t version_of_data_ COHORT_GUARDED_BY(mu_) = 0;  // the version since which the data are the same
  std::vector<Node*> restarts_ COHORT_GUARDED_BY(mu_);  // by worker; empty until the first BeginAgain
  std::vector<data::GraphIteratorInitializer> initializers_ COHORT_GUARDED_BY(mu_);  // by worker
};

[[noreturn]] void FailOfNoIterator() {
  throw InvalidArgumentError(
      "[coordinator] expected a value of CreatePerWorkerDataset or CreatePerWorkerIterator; got one of "
      "CreatePerWorkerValue, which has no data");
}

}  // namespace

std::vector<Output> PerWorkerSource::GetAt(int /*worker*/, Output /*index*/) const { FailOfNoIterator(); }
void PerWorkerSource::SetDatasets(const std::vector<data::Dataset>& /*datasets*/) { FailOfNoIterator(); }
void PerWorkerSource::Restart() { FailOfNoIterator(); }

std::shared_ptr<PerWorkerSource> MakeStoredValue(
    Graph& graph, const WorkersOfCoordinator& workers,
    const std::function<std::vector<Output>(Graph& graph, int worker)>& make) {
  std::vector<std::vector<ops::Variable>> variables;
  for (size_t w = 0; w < workers.devices.size(); ++w) {
    const ColocateWith nowhere(graph, nullptr);
    const DeviceScope device(graph, workers.devices[w]);
    std::vector<ops::Variable>& own = variables.emplace_back();
    for (const Output& value : make(graph, static_cast<int>(w))) {
      own.emplace_back(graph, value,
                       ops::VariableOptions{.name = StrCat(workers.prefix, "/value_of_worker_", w), .local = true});
    }
    if (own.size() == variables[0].size()) continue;
    throw InvalidArgumentError(StrCat("[coordinator] expected equally many values for each worker; worker 0 has ",
                                      variables[0].size(), ", worker ", w, " has ", own.size()));
  }
  return std::make_shared<StoredValue>(std::move(variables));
}

std::shared_ptr<PerWorkerSource> MakeIteratorsOfWorkers(Graph& graph, const WorkersOfCoordinator& workers,
                                                        const data::ElementSpec& spec) {
  std::vector<data::GraphIterator> iterators;
  for (size_t w = 0; w < workers.devices.size(); ++w) {
    const ColocateWith nowhere(graph, nullptr);
    const DeviceScope device(graph, workers.devices[w]);
    iterators.push_back(
        data::MakeGraphIterator(graph, spec, {.name = StrCat(workers.prefix, "/iterator_of_worker_", w)}));
  }
  return std::make_shared<IteratorsOfWorkers>(std::move(iterators));
}

}  // namespace cohort::distribute
