#include "cohort/distribute/replica_inputs.h"

#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"

namespace cohort::distribute {

ReplicaInputs::ReplicaInputs(Graph& graph, const DistributedDataset& dataset) {
  for (const std::string& place : dataset.strategy()->devices()) {
    std::optional<DeviceScope> device;
    if (!place.empty()) device.emplace(graph, place);
    std::vector<Output> own;
    for (const data::TensorSpec& component : dataset.element_spec()) {
      Shape shape = component.shape;
      if (shape.rank() > 0) shape.set_dim(0, Shape::kUnknownDim);
      own.push_back(ops::Placeholder(graph, component.dtype, shape, "input"));
    }
    placeholders_.push_back(std::move(own));
  }
}

const std::vector<Output>& ReplicaInputs::Of(const ReplicaContext& replica) const {
  return placeholders_.at(static_cast<size_t>(replica.local_replica()));
}

ReplicaStep ReplicaInputs::MakeStep(Session& session, const std::vector<Output>& fetches,
                                    const std::vector<Node*>& targets) const {
  std::vector<Output> feeds;
  for (const std::vector<Output>& own : placeholders_) feeds.insert(feeds.end(), own.begin(), own.end());
  return ReplicaStep(session.MakeCallable(feeds, fetches, targets), placeholders_.size(), placeholders_[0].size());
}

RunResults ReplicaStep::operator()(const PerReplica<std::vector<Tensor>>& parts) const {
  std::vector<Tensor> feeds;
  for (const std::vector<Tensor>& part : parts) feeds.insert(feeds.end(), part.begin(), part.end());
  if (parts.size() == replicas_ && feeds.size() == replicas_ * components_) return step_(feeds);
  throw InvalidArgumentError(StrCat("[distribute] expected ", components_, " tensors for each of the ", replicas_,
                                    " replicas of this process; got ", feeds.size(), " tensors for ", parts.size(),
                                    " replicas"));
}

}  // namespace cohort::distribute
