#include "cohort/distribute/coordinator/per_worker.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/graph_iterator.h"

namespace cohort::distribute {
namespace {

class StoredValue final : public PerWorkerSource {
 public:
  explicit StoredValue(std::vector<std::vector<ops::Variable>> variables) : variables_(std::move(variables)) {}

  std::vector<Node*> Initializers(int worker) const override {
    std::vector<Node*> nodes;
    for (const ops::Variable& variable : variables_[static_cast<size_t>(worker)]) {
      nodes.push_back(variable.initializer());
    }
    return nodes;
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

class DatasetOfWorkers final : public PerWorkerSource {
 public:
  explicit DatasetOfWorkers(std::vector<data::GraphIterator> iterators) : iterators_(std::move(iterators)) {}

  std::vector<Node*> Initializers(int worker) const override {
    return {iterators_[static_cast<size_t>(worker)].initializer()};
  }
  std::vector<Output> Get(int worker) const override { return iterators_[static_cast<size_t>(worker)].GetNext(); }
  int elements() const override { return 1; }

 private:
  const std::vector<data::GraphIterator> iterators_;  // by worker
};

}  // namespace

std::shared_ptr<const PerWorkerSource> MakeStoredValue(
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

std::shared_ptr<const PerWorkerSource> MakeDatasetOfWorkers(Graph& graph, const WorkersOfCoordinator& workers,
                                                            const std::vector<data::Dataset>& datasets) {
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
  std::vector<data::GraphIterator> iterators;
  for (size_t w = 0; w < workers.devices.size(); ++w) {
    const ColocateWith nowhere(graph, nullptr);
    const DeviceScope device(graph, workers.devices[w]);
    iterators.push_back(
        data::MakeGraphIterator(graph, datasets[w], {.name = StrCat(workers.prefix, "/iterator_of_worker_", w)}));
  }
  return std::make_shared<DatasetOfWorkers>(std::move(iterators));
}

}  // namespace cohort::distribute
