// Variables that are cut into parts along their rows, as tf.compat.v1.get_variable(partitioner=...) makes them, and
// look-ups in them. Each part is a variable of its own, which the open device scopes place: with ReplicaDeviceSetter,
// the parts go to the parameter servers in turn. Savers write and read the whole, also with another number of parts
// (but then an id of a table that is looked up by kMod has another row).
//
//   const ops::Variable table = ops::GetVariable(
//       graph, "embeddings", Shape{vocabulary, 128}, {.partitioner = distribute::FixedSizePartitioner(num_ps)});
//   const Output rows = ops::EmbeddingLookup(table, ids);
//
// cohort/distribute/partitioners.h has TensorFlow's partitioners.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/graph/scopes.h"
#include "cohort/ops/variables.h"

namespace cohort::ops {

// Returns the number of parts along each axis of a variable; 1 means that the axis is not cut. Only axis 0 may be cut.
using Partitioner = std::function<std::vector<int64_t>(const Shape& shape, DType dtype)>;

struct COHORT_EXPORT GetVariableOptions {
  DType dtype = DType::kFloat32;
  Initializer initializer;  // null: glorot_uniform for floating dtypes, else zeros
  bool trainable = true;
  Partitioner partitioner;  // null: that of the open PartitionerScope, or one part
};
// Makes a variable called exactly `name` under the current name scope. If the partitioner wants parts, they are called
// "name/part_0", "name/part_1", ..., and the result represents all of them (Variable::parts()). Each part begins with
// its rows of the initial value. Throws AlreadyExistsError if the name is taken, and InvalidArgumentError if the
// partitioner cuts another axis than 0, or wants more parts than there are rows.
COHORT_EXPORT Variable GetVariable(Graph& graph, const std::string& name, const Shape& shape,
                                   const GetVariableOptions& options, CallSite site = CallSite::Here());

// While it lives, variables that this thread makes are cut by `partitioner`, as in
// tf.compat.v1.variable_scope("", partitioner=...). Variables without rows and local variables stay whole.
class COHORT_EXPORT PartitionerScope {
 public:
  PartitionerScope(Graph& graph, Partitioner partitioner);

 private:
  const VariableCreatorScope scope_;
};

// How the rows of a table lie in its parts. kDiv: in order, so that each part has the rows after those of the part
// before it. kMod: row i is row i / n of part i % n, for n parts.
enum class PartitionStrategy { kMod, kDiv };

// Returns the rows `ids` (int32 or int64 of any shape) of a table: ids.shape + the shape of a row. The table is a
// variable, with parts or without, or a list of variables that are its parts, or a value. Rows of a variable are read
// on its device, and its gradient is sparse. tf.nn.embedding_lookup has kDiv, and no other. tf.compat.v1's function has
// kMod by default: give that to read the checkpoint of a program that did not say "div". An id that is not a row fails
// the step with InvalidArgumentError. The function throws InvalidArgumentError for an empty list.
COHORT_EXPORT Output EmbeddingLookup(const Variable& params, const Operand& ids,
                                     PartitionStrategy partition_strategy = PartitionStrategy::kDiv,
                                     const NodeName& name = "embedding_lookup");
COHORT_EXPORT Output EmbeddingLookup(const std::vector<Variable>& params, const Operand& ids,
                                     PartitionStrategy partition_strategy = PartitionStrategy::kDiv,
                                     const NodeName& name = "embedding_lookup");
COHORT_EXPORT Output EmbeddingLookup(Output params, const Operand& ids, const NodeName& name = "embedding_lookup");

// A number of rows of a variable, and their device. "": the open device scopes decide.
struct COHORT_EXPORT VariablePart {
  int64_t rows = 0;
  std::string device;
};
// For variable creators. Makes `request` in parts, which are called "name/part_0", "name/part_1", ... Returns a
// variable that represents all parts. Each part begins with its rows of the initial value, which is computed once, on
// the first part's device. Throws InvalidArgumentError unless the rows of the parts add up to axis 0 of the requested
// shape.
COHORT_EXPORT VariableInfo* CreateInParts(Graph& graph, const VariableMaker& next, const VariableRequest& request,
                                          const std::vector<VariablePart>& parts);
// Returns the number of parts that the partitioner wants; 1 for a variable without rows, for a part, and for a null
// partitioner.
// Throws InvalidArgumentError if the answer does not fit, as GetVariable does.
COHORT_EXPORT int64_t NumberOfParts(const Partitioner& partitioner, const VariableRequest& request);

}  // namespace cohort::ops
