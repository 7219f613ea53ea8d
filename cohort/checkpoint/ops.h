// Nodes that save and restore: TensorFlow's SaveV2 and RestoreV2, and the snapshots that Saver streams
// checkpoints from.
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

class KernelRegistry;
class OpRegistry;

// SaveV2, RestoreV2 and, for Saver alone:
//   _SnapshotTake    references of the values of variables, one cut between the update sets of a task, kept
//   there _SnapshotRead    bytes of one value of a snapshot; _SnapshotReadStrings a string value as a whole
//   _SnapshotWrite   all values of a snapshot as a checkpoint written by the task itself
//   _SnapshotDrop    frees a snapshot
//   _CheckpointProbe fails unless the task sees a file that another one has written
void RegisterCheckpointOps(OpRegistry& registry);
void RegisterCheckpointKernels(KernelRegistry& registry);

namespace ops {

// Writes `tensors` as the checkpoint `prefix` (string scalar), on the device where the node stands.
// `tensor_names` and `shape_and_slices`: string [n]; a slice is "" for a whole tensor or "10 3 5,5:0,3" (full
// shape, then start,length of each dimension) for a part of one.
Node* SaveV2(Output prefix, Output tensor_names, Output shape_and_slices, const std::vector<Output>& tensors,
             const NodeName& name = "SaveV2");
// The reverse. The step fails with NotFoundError "Key X not found in checkpoint", InvalidArgumentError where
// the stored dtype is another, DataLossError for files that are damaged.
std::vector<Output> RestoreV2(Output prefix, Output tensor_names, Output shape_and_slices,
                              const std::vector<DType>& dtypes, const NodeName& name = "RestoreV2");

}  // namespace ops
}  // namespace cohort
