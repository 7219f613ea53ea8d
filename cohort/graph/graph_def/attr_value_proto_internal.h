// Between AttrValue and its message. Internal to graph/.
#pragma once

#include "cohort/graph/attr_value.h"
#include "cohort/proto/graph.pb.h"

namespace cohort {

// Clears `out` first. Throws InvalidArgumentError for a tensor that has no message form (see
// proto/tensor_proto.h).
void ToProto(const AttrValue& value, proto::AttrValue* out);
// An empty list comes back as one of int (the message does not say of what). Throws InvalidArgumentError for
// what Cohort does not have: functions, lists of tensors, other dtypes.
AttrValue FromProto(const proto::AttrValue& in);

}  // namespace cohort
