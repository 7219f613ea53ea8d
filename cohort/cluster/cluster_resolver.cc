#include "cohort/cluster/cluster_resolver.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {

std::string ClusterResolver::MasterOf(std::optional<std::string> type, std::optional<int> id,
                                      std::optional<std::string> layer) const {
  const ClusterSpec cluster = cluster_spec();
  if (cluster.empty() || (cluster.jobs().size() == 1 && cluster.total_tasks() == 1)) return "";
  if (!type) type = task_type();
  if (!id) id = task_id();
  if (!layer) layer = rpc_layer();
  if (!type || !id) {
    throw InvalidArgumentError(
        StrCat("[TF_CONFIG] expected task.type and task.index, to know the master's address; got ",
               type ? "no index" : "no type", "; the cluster is ", cluster));
  }
  const std::string& address = cluster.task_address(*type, *id);
  return layer && !layer->empty() ? StrCat(*layer, "://", address) : address;
}

}  // namespace cohort
