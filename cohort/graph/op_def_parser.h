// The notation in which ops are declared (TensorFlow's), read into ArgDef and AttrDef, and the check of a
// value against an AttrDef. Internal to graph/.
#pragma once

#include <string>
#include <string_view>

#include "cohort/graph/op_def.h"

namespace cohort {

// "x: T", "values: N * T", "shape: int32". Whether T is a list of types is not yet known: it lands in
// type_attr. Throws InvalidArgumentError that names `op` and quotes `spec`.
ArgDef ParseArgSpec(const std::string& op, const std::string& spec);
// "T: {float, double} = DT_FLOAT", "N: int >= 1", "axes: list(int) = []". Types that Cohort does not have are
// left out of sets. Throws InvalidArgumentError that names `op` and quotes `spec`.
AttrDef ParseAttrSpec(const std::string& op, const std::string& spec);

// "int", "list(type)", ...
std::string_view AttrKindName(AttrKind kind);
// What is wrong with `value` as the value of `def`, with the value and what is allowed; "" where it fits. An
// int for a float and an empty list of another type are converted.
std::string CheckAttrValue(const AttrDef& def, AttrValue& value);
// The definition in the notation that ParseAttrSpec reads.
std::string FormatAttrDef(const AttrDef& def);
std::string FormatArgDef(const ArgDef& arg);

}  // namespace cohort
