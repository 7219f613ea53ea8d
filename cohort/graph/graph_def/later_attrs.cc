#include "cohort/graph/graph_def/later_attrs.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace cohort {
namespace {

// Attributes that only say where a node comes from: which variable it is, which input is a gradient.
constexpr std::string_view kOrigins[][2] = {{"VarHandleOp", "debug_name"},
                                            {"MatMul", "grad_a"},
                                            {"MatMul", "grad_b"},
                                            {"BatchMatMulV2", "grad_x"},
                                            {"BatchMatMulV2", "grad_y"}};

bool IsOrigin(const std::string& op, const std::string& attr) {
  return std::any_of(std::begin(kOrigins), std::end(kOrigins),
                     [&](const auto& origin) { return origin[0] == op && origin[1] == attr; });
}

// Returns whether the attribute has the value that TensorFlow gives to a new attribute, so that graphs of earlier
// versions keep their meaning.
bool IsUsualDefault(const AttrValue& value) {
  if (const auto* flag = value.get<bool>()) return !*flag;
  if (const auto* number = value.get<int64_t>()) return *number == 0;
  if (const auto* number = value.get<float>()) return *number == 0;
  if (const auto* text = value.get<std::string>()) return text->empty();
  const auto* list = value.get<std::vector<int64_t>>();  // an empty list of any kind is read as this
  return list != nullptr && list->empty();
}

}  // namespace

void DropLaterAttrs(const OpDef& op, AttrMap* attrs) {
  for (auto it = attrs->begin(); it != attrs->end();) {
    const auto& [name, value] = *it;
    const bool unknown = name[0] != '_' && op.FindAttr(name) == nullptr;
    const bool drop = unknown && (IsUsualDefault(value) || IsOrigin(op.name(), name));
    it = drop ? attrs->erase(it) : std::next(it);
  }
}

}  // namespace cohort
