#include <algorithm>
#include <array>
#include <type_traits>

#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def_parser.h"

namespace cohort {
namespace {

// In the order of AttrKind. AttrValue::Value has the same order after its first alternative.
constexpr std::array<std::string_view, 14> kKindNames = {
    "int",  "float",     "bool",        "string",     "type",         "shape",      "tensor",
    "func", "list(int)", "list(float)", "list(bool)", "list(string)", "list(type)", "list(shape)"};

template <AttrKind kKind, typename T>
constexpr bool kMatches =
    std::is_same_v<std::variant_alternative_t<static_cast<size_t>(kKind) + 1, AttrValue::Value>, T>;
static_assert(kMatches<AttrKind::kInt, int64_t> && kMatches<AttrKind::kFloat, float> &&
              kMatches<AttrKind::kBool, bool> && kMatches<AttrKind::kString, std::string> &&
              kMatches<AttrKind::kType, DType> && kMatches<AttrKind::kShape, Shape> &&
              kMatches<AttrKind::kTensor, Tensor> && kMatches<AttrKind::kFunc, FunctionName> &&
              kMatches<AttrKind::kListInt, std::vector<int64_t>> &&
              kMatches<AttrKind::kListFloat, std::vector<float>> && kMatches<AttrKind::kListBool, std::vector<bool>> &&
              kMatches<AttrKind::kListString, std::vector<std::string>> &&
              kMatches<AttrKind::kListType, std::vector<DType>> && kMatches<AttrKind::kListShape, std::vector<Shape>>);

bool IsList(AttrKind kind) { return kind >= AttrKind::kListInt; }

template <typename T>
int64_t LengthOf(const T&) {
  return -1;
}
template <typename T>
int64_t LengthOf(const std::vector<T>& list) {
  return static_cast<int64_t>(list.size());
}

// Returns the length of a list, or -1 if the value is not a list.
int64_t ListLength(const AttrValue& value) {
  return std::visit([](const auto& v) { return LengthOf(v); }, value.value());
}

AttrValue EmptyList(AttrKind kind) {
  switch (kind) {
    case AttrKind::kListFloat: return std::vector<float>();
    case AttrKind::kListBool: return std::vector<bool>();
    case AttrKind::kListString: return std::vector<std::string>();
    case AttrKind::kListType: return std::vector<DType>();
    case AttrKind::kListShape: return std::vector<Shape>();
    default: return std::vector<int64_t>();
  }
}

bool IsAllowed(const AttrDef& def, DType dtype) {
  return def.allowed_types.empty() ||
         std::find(def.allowed_types.begin(), def.allowed_types.end(), dtype) != def.allowed_types.end();
}

bool IsAllowed(const AttrDef& def, const std::string& text) {
  return def.allowed_strings.empty() ||
         std::find(def.allowed_strings.begin(), def.allowed_strings.end(), text) != def.allowed_strings.end();
}

bool HasAllowedElements(const AttrDef& def, const AttrValue& value) {
  const auto allowed = [&def](const auto& element) { return IsAllowed(def, element); };
  if (const auto* dtype = value.get<DType>()) return allowed(*dtype);
  if (const auto* text = value.get<std::string>()) return allowed(*text);
  if (const auto* dtypes = value.get<std::vector<DType>>()) return std::all_of(dtypes->begin(), dtypes->end(), allowed);
  if (const auto* texts = value.get<std::vector<std::string>>()) {
    return std::all_of(texts->begin(), texts->end(), allowed);
  }
  return true;
}

std::string FormatSet(const AttrDef& def) {
  if (!def.allowed_types.empty()) return StrCat("{", StrJoin(def.allowed_types, ", "), "}");
  return StrCat("{'", StrJoin(def.allowed_strings, "', '"), "'}");
}

}  // namespace

std::string_view AttrKindName(AttrKind kind) { return kKindNames.at(static_cast<size_t>(kind)); }

std::string CheckAttrValue(const AttrDef& def, AttrValue& value) {
  if (def.kind == AttrKind::kFloat && value.get<int64_t>() != nullptr) {
    value = static_cast<float>(*value.get<int64_t>());
  }
  if (IsList(def.kind) && ListLength(value) == 0) value = EmptyList(def.kind);
  if (value.value().index() != static_cast<size_t>(def.kind) + 1) {
    const std::string_view got =
        value.empty() ? "nothing" : AttrKindName(static_cast<AttrKind>(value.value().index() - 1));
    return StrCat("attribute '", def.name, "' must be of type ", AttrKindName(def.kind), ", got ", value.ToString(),
                  " (", got, ")");
  }
  if (!HasAllowedElements(def, value)) {
    return StrCat("attribute '", def.name, "' is ", value.ToString(), ", which is not among the allowed ",
                  FormatSet(def));
  }
  if (def.minimum) {
    const bool list = IsList(def.kind);
    const int64_t number = list ? ListLength(value) : *value.get<int64_t>();
    if (number < *def.minimum) {
      return StrCat("attribute '", def.name, "' must ", list ? "have a length of" : "be", " at least ", *def.minimum,
                    ", got ", value.ToString());
    }
  }
  return "";
}

std::string FormatAttrDef(const AttrDef& def) {
  const bool has_set = !def.allowed_types.empty() || !def.allowed_strings.empty();
  std::string text = def.name + ": ";
  if (!has_set) {
    text += AttrKindName(def.kind);
  } else {
    text += IsList(def.kind) ? StrCat("list(", FormatSet(def), ")") : FormatSet(def);
  }
  if (def.minimum) text += " >= " + std::to_string(*def.minimum);
  if (def.default_value) text += " = " + def.default_value->ToString();
  return text;
}

std::string FormatArgDef(const ArgDef& arg) {
  std::string text = arg.name + ": ";
  if (!arg.number_attr.empty()) text += arg.number_attr + " * ";
  if (!arg.type_list_attr.empty()) {
    text += arg.type_list_attr;
  } else if (!arg.type_attr.empty()) {
    text += arg.type_attr;
  } else {
    text += DTypeName(arg.dtype);
  }
  return arg.host_memory ? text + " (host)" : text;
}

}  // namespace cohort
