#include "cohort/graph/attr_value.h"

#include <cstring>
#include <type_traits>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

template <typename T>
void Print(std::ostream& out, const T& value) {
  if constexpr (std::is_same_v<T, std::monostate>) {
    out << "(none)";
  } else if constexpr (std::is_same_v<T, bool>) {
    out << (value ? "true" : "false");
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, FunctionName>) {
    out << '\'' << value << '\'';
  } else if constexpr (std::is_same_v<T, Tensor>) {
    out << value.ToString();
  } else {
    out << value;
  }
}

template <typename T>
void Print(std::ostream& out, const std::vector<T>& values) {
  out << '[';
  const char* between = "";
  for (const auto& value : values) {
    out << between;
    Print<T>(out, value);
    between = ", ";
  }
  out << ']';
}

bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (!a.defined() || a.num_elements() == 0) return true;
  if (a.dtype() == DType::kString) {
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      if (a.data<std::string>()[i] != b.data<std::string>()[i]) return false;
    }
    return true;
  }
  return std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

}  // namespace

std::string AttrValue::ToString() const {
  std::ostringstream out;
  std::visit([&out](const auto& value) { Print(out, value); }, value_);
  return std::move(out).str();
}

bool operator==(const AttrValue& a, const AttrValue& b) {
  if (a.value_.index() != b.value_.index()) return false;
  return std::visit(
      [&b](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return SameTensor(value, *b.get<Tensor>());
        } else {
          return value == *b.get<T>();
        }
      },
      a.value_);
}

}  // namespace cohort
