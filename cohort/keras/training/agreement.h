// Collects the facts that must be equal in all processes of a strategy that train or evaluate a model together.
// distribute::WorkerMeeting::ExpectAgreement compares them. Internal to keras/.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/keras/callbacks/callback.h"
#include "cohort/keras/layers/layer_graph.h"
#include "cohort/keras/training/step_parts.h"

namespace cohort::keras {

using Facts = std::vector<std::pair<std::string, std::string>>;

// Adds each layer's class, options and inputs. For a layer of the program's own without Config(), adds only the class.
// Names of layers may differ.
void AddLayers(const LayerGraph& layers, Facts& facts);

// Adds optimizer, losses with their weights, and metrics: their options, or only their names if they have no form in
// files.
void AddCompiled(const CompiledModel& compiled, Facts& facts);

// Adds the callbacks that change the training (Callback::influence), in order.
void AddCallbacks(const std::vector<CallbackPtr>& callbacks, Facts& facts);

// Adds the stages of data that all processes read, the contents of its tensors and its functions of graphs. If a stage
// calls a function of this process, adds only the stages. The drawn seeds of shuffles may differ, because all processes
// take the chief's later. If `dataset` is null, each process has data of its own, which `policy` divides.
void AddData(const std::string& what, const data::Dataset* dataset, data::AutoShardPolicy policy, Facts& facts);

}  // namespace cohort::keras
