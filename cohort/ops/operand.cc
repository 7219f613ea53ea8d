#include "cohort/ops/operand.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::ops {
namespace {

template <typename To>
std::optional<Tensor> InRange(std::integral auto value) {
  if (!std::in_range<To>(value)) return std::nullopt;
  return Tensor::Scalar(static_cast<To>(value));
}

template <typename To, typename From>
std::optional<Tensor> AsInteger(From value) {
  if constexpr (std::same_as<From, double>) {
    constexpr double kLimit = 9223372036854775808.0;  // 2^63
    if (!(value >= -kLimit && value < kLimit) || value != std::trunc(value)) return std::nullopt;
    return InRange<To>(static_cast<int64_t>(value));
  } else {
    return InRange<To>(value);
  }
}

template <typename To, typename From>
std::optional<Tensor> AsFloating(From value) {
  if constexpr (std::same_as<To, bfloat16>) {
    const bfloat16 rounded(static_cast<float>(value));
    if (std::isinf(static_cast<float>(rounded)) && std::isfinite(static_cast<double>(value))) return std::nullopt;
    return Tensor::Scalar(rounded);
  } else {
    const To rounded = static_cast<To>(value);
    if (std::isinf(rounded) && std::isfinite(static_cast<double>(value))) return std::nullopt;
    return Tensor::Scalar(rounded);
  }
}

[[noreturn]] void FailNumber(const Number& number, DType dtype, const std::string& whose) {
  throw InvalidArgumentError(StrCat("[ops] expected a number that ", dtype, " can hold, the dtype of ", whose, "; got ",
                                    number.ToString(), " (", number.dtype(),
                                    "); cast the tensor (ops::Cast) or give another number"));
}

const ArgDef* ArgOf(const OpDef& def, size_t i) { return i < def.inputs().size() ? &def.inputs()[i] : nullptr; }

std::string InputName(const OpDef& def, size_t i) {
  const ArgDef* arg = ArgOf(def, i);
  return arg == nullptr ? StrCat("input ", i, " of ", def.name()) : StrCat("input '", arg->name, "' of ", def.name());
}

std::string Described(const Output& value) {
  return StrCat("'", value.name(), "' (", value.dtype(), value.shape(), ")");
}

// The graph of the node: of values inside and outside of a function's body the body.
Graph& GraphOf(const OpDef& def, const std::vector<Operand>& args) {
  Graph* graph = nullptr;
  std::string numbers;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_number()) {
      numbers += (numbers.empty() ? "" : ", ") + args[i].number().ToString();
      continue;
    }
    const Output& value = args[i].output();
    if (!value.valid()) {
      throw InvalidArgumentError(StrCat("[ops] expected a value for ", InputName(def, i),
                                        "; got an empty Output, as Output() and the values of a gradient that does not "
                                        "exist (Gradient::exists) are"));
    }
    if (graph == nullptr || value.graph().IsInside(*graph)) graph = &value.graph();
  }
  if (graph != nullptr) return *graph;
  throw InvalidArgumentError(StrCat("[ops] expected a value of a graph among the inputs of ", def.name(), "; got ",
                                    numbers.empty() ? "none" : "the numbers " + numbers,
                                    "; make one of them a constant with ops::Const"));
}

struct WantedDType {
  DType dtype;
  std::string whose;
};

// The dtype that input `i`, a number, gets.
WantedDType DTypeFor(const OpDef& def, const std::vector<Operand>& args, size_t i) {
  const ArgDef* arg = ArgOf(def, i);
  if (arg != nullptr && arg->dtype != DType::kInvalid) return {arg->dtype, InputName(def, i)};
  // Of numbers alone the first of a floating type decides, else the first.
  DType own = DType::kInvalid;
  for (size_t k = 0; k < args.size(); ++k) {
    const ArgDef* other = ArgOf(def, k);
    const bool shared =
        arg != nullptr && other != nullptr && !arg->type_attr.empty() && other->type_attr == arg->type_attr;
    if (!shared && k != i) continue;
    if (!args[k].is_number()) {
      return {args[k].dtype(), StrCat(Described(args[k].output()), ", ", InputName(def, k))};
    }
    const DType dtype = args[k].number().dtype();
    if (own == DType::kInvalid || (IsFloating(dtype) && !IsFloating(own))) own = dtype;
  }
  return {own, InputName(def, i)};
}

}  // namespace

std::optional<Tensor> Number::As(DType dtype) const {
  if (dtype == DType::kBool || dtype_ == DType::kBool) {
    if (dtype != dtype_) return std::nullopt;
    return Tensor::Scalar(std::get<bool>(value_));
  }
  return std::visit(
      [dtype](auto value) -> std::optional<Tensor> {
        if constexpr (!std::same_as<decltype(value), bool>) {
          switch (dtype) {
            case DType::kFloat32: return AsFloating<float>(value);
            case DType::kFloat64: return AsFloating<double>(value);
            case DType::kBfloat16: return AsFloating<bfloat16>(value);
            case DType::kInt32: return AsInteger<int32_t>(value);
            case DType::kInt64: return AsInteger<int64_t>(value);
            case DType::kUint8: return AsInteger<uint8_t>(value);
            default: break;
          }
        }
        return std::nullopt;
      },
      value_);
}

std::string Number::ToString() const {
  if (const bool* truth = std::get_if<bool>(&value_)) return *truth ? "true" : "false";
  std::array<char, 40> text;
  const auto write = [&text](auto value) {
    return std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
  };
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return write(*value);
  if (const uint64_t* value = std::get_if<uint64_t>(&value_)) return write(*value);
  const double value = std::get<double>(value_);
  return dtype_ == DType::kFloat32 ? write(static_cast<float>(value)) : write(value);
}

Output Operand::In(Graph& graph, DType dtype, const std::string& whose) const {
  if (!is_number()) return output();
  const std::optional<Tensor> tensor = number().As(dtype);
  if (!tensor) FailNumber(number(), dtype, whose);
  return graph.Op("Const").At(site_).Attr("value", *tensor).Attr("dtype", dtype).Finish1();
}

NodeBuilder Op(const std::string& op, const std::vector<Operand>& args, const NodeName& name) {
  const OpDef& def = OpRegistry::Global().Get(op);
  Graph& graph = GraphOf(def, args);
  NodeBuilder builder(graph, op);
  builder.Name(name);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_number()) {
      builder.Input(args[i].output());
      continue;
    }
    const WantedDType wanted = DTypeFor(def, args, i);
    builder.Input(args[i].In(graph, wanted.dtype, wanted.whose));
  }
  return builder;
}

}  // namespace cohort::ops
