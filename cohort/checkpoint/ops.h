// Ops that save and restore: TensorFlow's SaveV2 and RestoreV2, and the internal ops with which Saver takes snapshots
// of variables and writes checkpoints.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort {

class KernelRegistry;
class OpRegistry;

// Register SaveV2, RestoreV2 and the ops that only Saver uses:
//   _SnapshotTake         keeps the values of a device's variables. Returns the number of this snapshot, and `shapes`:
//                         rank and dimensions of each value, one after another. The values are taken together, between
//                         two update sets of the task.
//   _SnapshotRead         returns some bytes of one value of a snapshot
//   _SnapshotReadStrings  returns a whole value of strings
//   _SnapshotWrite        writes all values of a snapshot as a checkpoint, on the task that holds them
//   _SnapshotDrop         frees a snapshot
//   _CheckpointProbe      fails if the task cannot read a file that another task has written, or if the file does not
//                         have the expected contents
COHORT_EXPORT void RegisterCheckpointOps(OpRegistry& registry);
COHORT_EXPORT void RegisterCheckpointKernels(KernelRegistry& registry);

namespace ops {

// Writes `tensors` as the checkpoint `prefix` (a string scalar), on the task where the node is placed. `tensor_names`
// and `shape_and_slices` are strings [n]. A slice is "" for a whole tensor. For a part of a tensor it is, for example,
// "10 3 5,5:0,3": the full shape, then "start,length" of each dimension.
COHORT_EXPORT Node* SaveV2(Output prefix, Output tensor_names, Output shape_and_slices,
                           const std::vector<Output>& tensors, const NodeName& name = "SaveV2");
// Reads tensors, or parts of them, from the checkpoint `prefix`. The inputs are as in SaveV2. Returns one output for
// each of `dtypes`. The step fails with
// - NotFoundError if the checkpoint is missing or lacks a tensor ("Key X not found in checkpoint");
// - InvalidArgumentError if a tensor has another dtype than its output, or another full shape than its slice says;
// - InvalidArgumentError if stored parts do not cover the tensor, or if the number of names, slices or outputs differs;
// - UnimplementedError if Cohort lacks the dtype, or for strings that a big-endian machine has written;
// - DataLossError if a file is damaged.
COHORT_EXPORT std::vector<Output> RestoreV2(Output prefix, Output tensor_names, Output shape_and_slices,
                                            const std::vector<DType>& dtypes, const NodeName& name = "RestoreV2");

}  // namespace ops
}  // namespace cohort
