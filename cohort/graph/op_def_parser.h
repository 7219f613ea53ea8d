// Parses TensorFlow's notation for inputs, outputs and attributes of ops, and checks attribute values. Internal to
// graph/.
#pragma once

#include <string>
#include <string_view>

#include "cohort/graph/op_def.h"

namespace cohort {

// Parses "x: T", "values: N * T", "shape: int32". Stores T in type_attr, even if T is a list of types;
// OpDef::ResolveArgs corrects this. Throws InvalidArgumentError that names `op` and quotes `spec`.
ArgDef ParseArgSpec(const std::string& op, const std::string& spec);
// Parses "T: {float, double} = DT_FLOAT", "N: int >= 1", "axes: list(int) = []". Ignores types in sets that Cohort does
// not have. Throws InvalidArgumentError that names `op` and quotes `spec`.
AttrDef ParseAttrSpec(const std::string& op, const std::string& spec);

// Returns "int", "list(type)", ...
std::string_view AttrKindName(AttrKind kind);
// Returns "" if `value` fits `def`. Otherwise returns a text that contains the value and says what is allowed. Converts
// two things in place: an int to a float, and an empty list to an empty list of the right type.
std::string CheckAttrValue(const AttrDef& def, AttrValue& value);
// Return the definition in the notation that the functions above parse.
std::string FormatAttrDef(const AttrDef& def);
std::string FormatArgDef(const ArgDef& arg);

}  // namespace cohort
