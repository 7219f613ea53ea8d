// What the processes of a strategy must have alike to train or evaluate one model together, as facts for
// distribute::WorkerMeeting::ExpectAgreement. Internal to keras/.
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

// Each layer's class, options and inputs; of a class of the program's own that does not say its options the class only.
// Names of layers may differ.
void AddLayers(const LayerGraph& layers, Facts& facts);

// Optimizer, losses with their weights, metrics: options where they say them, else names.
void AddCompiled(const CompiledModel& compiled, Facts& facts);

// The callbacks that act on the training (Callback::influence), in their order.
void AddCallbacks(const std::vector<CallbackPtr>& callbacks, Facts& facts);

// Adds the stages of data that all processes read alike, the contents of its tensors and the functions of graphs in it;
// the stages alone if one of them calls a function of this process. Seeds that shuffles have drawn may differ: the
// chief's are shared afterwards. Null: each process has data of its own, by `policy`.
void AddData(const std::string& what, const data::Dataset* dataset, data::AutoShardPolicy policy, Facts& facts);

}  // namespace cohort::keras
