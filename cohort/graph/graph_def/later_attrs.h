// Attributes that later versions of TensorFlow have added to ops, and that Cohort's ops do not have.
#pragma once

#include "cohort/graph/attr_value.h"
#include "cohort/graph/op_def.h"

namespace cohort {

// Removes from `attrs` each attribute that `op` does not have, and without which a node computes the same: one whose
// value is the usual default of a later addition (false, 0, "" or an empty list), or that only says where the node
// comes from (VarHandleOp's "debug_name", "grad_a" of MatMul). Other attributes that the op does not have stay, and
// NodeBuilder rejects them.
void DropLaterAttrs(const OpDef& op, AttrMap* attrs);

}  // namespace cohort
