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

// Stages, the contents of tensors, and the order (a Shuffle without a seed has another one in each process) of data
// that all processes read alike; the stages only where one of them calls a function of this process. Null: each process
// has data of its own, by `policy`.
void AddData(const std::string& what, const data::Dataset* dataset, data::AutoShardPolicy policy, Facts& facts);

}  // namespace cohort::keras
