// Converts an AttrValue to its protobuf message and back. Internal to graph/.
#pragma once

#include "cohort/graph/attr_value.h"
#include "cohort/proto/graph.pb.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort {

// Replaces the contents of `out`. Throws InvalidArgumentError if a tensor has no message form (see
// proto/tensor_proto.h).
void ToProto(const AttrValue& value, proto::AttrValue* out);
// Returns the value of a message. `budget` is that of the whole graph, and must be the same for all its attributes. An
// empty list becomes an empty list of int, because the message does not say its
// type. Throws InvalidArgumentError if the value is of a type that Cohort lacks: a function with attributes, a list of
// tensors, or an unknown dtype. Throws it also for a tensor that does not fit into the budget.
AttrValue FromProto(const proto::AttrValue& in, TensorBudget& budget);

}  // namespace cohort
