// Converts an AttrValue to its protobuf message and back. Internal to graph/.
#pragma once

#include "cohort/graph/attr_value.h"
#include "cohort/proto/graph.pb.h"

namespace cohort {

// Replaces the contents of `out`. Throws InvalidArgumentError if a tensor has no message form (see
// proto/tensor_proto.h).
void ToProto(const AttrValue& value, proto::AttrValue* out);
// Returns the value of a message. An empty list becomes an empty list of int, because the message does not say its
// type. Throws InvalidArgumentError if the value is of a type that Cohort lacks: a function with attributes, a list of
// tensors, or an unknown dtype.
AttrValue FromProto(const proto::AttrValue& in);

}  // namespace cohort
