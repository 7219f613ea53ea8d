#include "cohort/train/session/written_graph.h"

#include "cohort/checkpoint/saved_model/saved_model.h"
#include "cohort/graph/graph_def.h"

namespace cohort::train {

std::string TextForTensorFlow(const Graph& graph) {
  return GraphDefText(graph, {.has_op = saved_model::HasTensorFlowForm});
}

std::string BytesForTensorBoard(const Graph& graph) {
  return SerializeGraphDef(graph, {.has_op = [](std::string_view op) { return !op.starts_with('_'); }});
}

}  // namespace cohort::train
