// Computes values that are known while a graph is built. A Folder walks back from a value through the ops that it
// knows, for at most kMaxVisits nodes. It computes int32 and int64 scalars and vectors in which single elements may be
// unknown (PartialInts). The functions of the header turn such a result into a tensor or a shape. The last part finds
// shape and dtype of the variable of a handle.
#include "cohort/graph/constant_value.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr size_t kMaxElements = 1024;
constexpr int kMaxVisits = 256;

// An int32 or int64 scalar or vector. Some of its elements may be unknown.
struct PartialInts {
  bool is_scalar = false;
  std::vector<std::optional<int64_t>> values;
};
using MaybeInts = std::optional<PartialInts>;

bool IsIndexType(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

const Output& SkipIdentities(const Output& value) {
  const Output* at = &value;
  while (at->node->op_name() == "Identity") at = &at->node->input(0);
  return *at;
}

std::optional<int64_t> KnownDim(int64_t dim) { return dim < 0 ? std::nullopt : std::optional<int64_t>(dim); }

bool IsArgument(const Node& node) { return node.op_name() == "Placeholder" || node.op_name() == "_Arg"; }

// Returns nullptr if the node has no such attribute of this type.
template <typename T>
const T* FindAttr(const Node& node, std::string_view name) {
  const auto it = node.attrs().find(name);
  return it == node.attrs().end() ? nullptr : it->second.get<T>();
}

// Computes values. Visits at most kMaxVisits nodes.
class Folder {
 public:
  MaybeInts Eval(const Output& value) {
    if (!IsIndexType(value.dtype()) || ++visits_ > kMaxVisits) return std::nullopt;
    const Node& node = *value.node;
    const std::string& op = node.op_name();
    if (op == "Const") return OfConst(node.attr<Tensor>("value"));
    if (op == "Identity" || op == "Cast") return Eval(node.input(0));
    if (op == "Shape") return OfShape(node.input(0).shape());
    if (op == "Size") return Scalar(KnownDim(node.input(0).shape().num_elements()), node.input(0).shape());
    if (op == "Rank") return Scalar(KnownDim(node.input(0).shape().rank()), node.input(0).shape());
    if (op == "Pack") return OfPack(node);
    if (op == "ConcatV2") return OfConcat(node);
    if (op == "StridedSlice") return OfStridedSlice(node);
    if (op == "Range") return OfRange(node);
    if (op == "Add" || op == "AddV2") {
      return OfBinary(node, [](int64_t a, int64_t b, int64_t* c) { return __builtin_add_overflow(a, b, c); });
    }
    if (op == "Sub") {
      return OfBinary(node, [](int64_t a, int64_t b, int64_t* c) { return __builtin_sub_overflow(a, b, c); });
    }
    if (op == "Mul") {
      return OfBinary(node, [](int64_t a, int64_t b, int64_t* c) { return __builtin_mul_overflow(a, b, c); });
    }
    return std::nullopt;
  }

 private:
  static MaybeInts Scalar(std::optional<int64_t> value, const Shape& known_from) {
    if (!known_from.has_rank()) return std::nullopt;
    return PartialInts{true, {value}};
  }

  static MaybeInts OfConst(const Tensor& tensor) {
    if (tensor.shape().rank() > 1 || static_cast<size_t>(tensor.num_elements()) > kMaxElements) return std::nullopt;
    PartialInts ints{tensor.shape().IsScalar(), {}};
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      ints.values.emplace_back(tensor.dtype() == DType::kInt32 ? tensor.data<int32_t>()[i] : tensor.data<int64_t>()[i]);
    }
    return ints;
  }

  static MaybeInts OfShape(const Shape& shape) {
    if (!shape.has_rank()) return std::nullopt;
    PartialInts ints;
    for (const int64_t dim : shape.dims()) ints.values.push_back(KnownDim(dim));
    return ints;
  }

  MaybeInts OfPack(const Node& node) {
    PartialInts all;
    for (const Output& input : node.inputs()) {
      if (!input.shape().IsScalar()) return std::nullopt;
      const MaybeInts part = Eval(input);
      all.values.push_back(part && part->is_scalar ? part->values[0] : std::nullopt);
    }
    return all;
  }

  MaybeInts OfConcat(const Node& node) {
    PartialInts all;
    for (int i = 0; i + 1 < node.num_inputs(); ++i) {
      const Shape& shape = node.input(i).shape();
      const MaybeInts part = Eval(node.input(i));
      if (part && !part->is_scalar) {
        all.values.insert(all.values.end(), part->values.begin(), part->values.end());
      } else if (shape.rank() == 1 && shape.dim(0) >= 0 && static_cast<size_t>(shape.dim(0)) <= kMaxElements) {
        all.values.resize(all.values.size() + static_cast<size_t>(shape.dim(0)));
      } else {
        return std::nullopt;
      }
      if (all.values.size() > kMaxElements) return std::nullopt;
    }
    return all;
  }

  // Returns the value of a scalar or of a vector of one element, or nullopt if it is not known.
  std::optional<int64_t> EvalOne(const Output& value) {
    const MaybeInts ints = Eval(value);
    return ints && ints->values.size() == 1 ? ints->values[0] : std::nullopt;
  }

  MaybeInts OfStridedSlice(const Node& node) {
    const MaybeInts data = Eval(node.input(0));
    const std::optional<int64_t> begin = EvalOne(node.input(1));
    const std::optional<int64_t> end = EvalOne(node.input(2));
    const std::optional<int64_t> stride = EvalOne(node.input(3));
    if (!data || data->is_scalar || !begin || !end || !stride || *stride == 0) return std::nullopt;
    if (node.attr<int64_t>("ellipsis_mask") != 0 || node.attr<int64_t>("new_axis_mask") != 0) return std::nullopt;
    const int64_t size = static_cast<int64_t>(data->values.size());
    if (node.attr<int64_t>("shrink_axis_mask") & 1) {
      const int64_t at = *begin < 0 ? *begin + size : *begin;
      if (at < 0 || at >= size) return std::nullopt;
      return PartialInts{true, {data->values[static_cast<size_t>(at)]}};
    }
    const int64_t low = *stride > 0 ? 0 : -1;
    const int64_t high = *stride > 0 ? size : size - 1;
    const auto clamp = [&](int64_t i) { return std::clamp(i < 0 ? i + size : i, low, high); };
    int64_t at = node.attr<int64_t>("begin_mask") & 1 ? (*stride > 0 ? low : high) : clamp(*begin);
    const int64_t stop = node.attr<int64_t>("end_mask") & 1 ? (*stride > 0 ? high : low) : clamp(*end);
    PartialInts slice;
    while (*stride > 0 ? at < stop : at > stop) {
      slice.values.push_back(data->values[static_cast<size_t>(at)]);
      if (*stride > size || *stride < -size) break;
      at += *stride;
    }
    return slice;
  }

  MaybeInts OfRange(const Node& node) {
    const std::optional<int64_t> start = EvalOne(node.input(0));
    const std::optional<int64_t> limit = EvalOne(node.input(1));
    const std::optional<int64_t> delta = EvalOne(node.input(2));
    if (!start || !limit || !delta || *delta == 0) return std::nullopt;
    PartialInts range;
    for (int64_t at = *start; *delta > 0 ? at < *limit : at > *limit;) {
      if (range.values.size() == kMaxElements) return std::nullopt;
      range.values.emplace_back(at);
      if (__builtin_add_overflow(at, *delta, &at)) break;
    }
    return range;
  }

  // `overflows` computes its third argument from the first two, and returns whether the result overflows.
  template <typename Function>
  MaybeInts OfBinary(const Node& node, Function overflows) {
    const MaybeInts a = Eval(node.input(0));
    const MaybeInts b = Eval(node.input(1));
    if (!a || !b || (a->values.size() != b->values.size() && !a->is_scalar && !b->is_scalar)) return std::nullopt;
    PartialInts result{a->is_scalar && b->is_scalar, {}};
    const size_t count = a->is_scalar ? b->values.size() : a->values.size();
    for (size_t i = 0; i < count; ++i) {
      const std::optional<int64_t>& x = a->values[a->is_scalar ? 0 : i];
      const std::optional<int64_t>& y = b->values[b->is_scalar ? 0 : i];
      int64_t z = 0;
      const bool known = x && y && !overflows(*x, *y, &z);
      result.values.push_back(known ? std::optional<int64_t>(z) : std::nullopt);
    }
    return result;
  }

  int visits_ = 0;
};

template <typename T>
Tensor ToTensor(const PartialInts& ints) {
  std::vector<T> values;
  for (const auto& value : ints.values) values.push_back(static_cast<T>(*value));
  return Tensor::FromValues(values, ints.is_scalar ? Shape() : Shape{static_cast<int64_t>(values.size())});
}

[[noreturn]] void FailShapeValue(DType dtype, const Shape& shape, const std::string& where) {
  throw InvalidArgumentError(StrCat("[graph] expected a shape as an int32 or int64 vector, got ", dtype, shape, where));
}

}  // namespace

std::optional<Tensor> ConstantValue(const Output& value) {
  const Output& source = SkipIdentities(value);
  if (source.node->op_name() == "Const") return source.node->attr<Tensor>("value");
  const MaybeInts ints = Folder().Eval(source);
  if (!ints) return std::nullopt;
  for (const auto& element : ints->values) {
    if (!element) return std::nullopt;
  }
  return value.dtype() == DType::kInt32 ? ToTensor<int32_t>(*ints) : ToTensor<int64_t>(*ints);
}

Shape ConstantValueAsShape(const Output& value) {
  const Shape& shape = value.shape();
  if (!IsIndexType(value.dtype()) || (shape.has_rank() && shape.rank() != 1)) {
    FailShapeValue(value.dtype(), shape, StrCat(" (", value.name(), ")"));
  }
  const MaybeInts ints = Folder().Eval(value);
  if (!ints || ints->is_scalar) {
    if (!shape.has_rank() || shape.dim(0) < 0) return Shape::UnknownRank();
    if (shape.dim(0) > Shape::kMaxRank) {
      throw InvalidArgumentError(
          StrCat("[graph] ", value.name(), " is a shape of rank ", shape.dim(0), ", above ", Shape::kMaxRank));
    }
    return Shape::UnknownDims(static_cast<int>(shape.dim(0)));
  }
  std::vector<int64_t> dims;
  for (const auto& element : ints->values) dims.push_back(element.value_or(Shape::kUnknownDim));
  return Shape(dims);
}

Shape TensorAsShape(const Tensor& value) {
  if (!IsIndexType(value.dtype()) || value.shape().rank() != 1) FailShapeValue(value.dtype(), value.shape(), "");
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    dims.push_back(value.dtype() == DType::kInt32 ? value.data<int32_t>()[i] : value.data<int64_t>()[i]);
  }
  return Shape(dims);
}

const Node& HandleSource(const Output& handle) { return *SkipIdentities(handle).node; }

Shape HandleShape(const Output& handle) {
  const Node& source = HandleSource(handle);
  if (const auto* shapes = FindAttr<std::vector<Shape>>(source, kHandleShapes)) {
    return shapes->size() == 1 ? shapes->front() : Shape::UnknownRank();
  }
  const Shape* shape = IsArgument(source) ? nullptr : FindAttr<Shape>(source, "shape");
  return shape == nullptr ? Shape::UnknownRank() : *shape;
}

DType HandleDType(const Output& handle) {
  const Node& source = HandleSource(handle);
  if (const auto* dtypes = FindAttr<std::vector<DType>>(source, kHandleDTypes)) {
    return dtypes->size() == 1 ? dtypes->front() : DType::kInvalid;
  }
  const DType* dtype = IsArgument(source) ? nullptr : FindAttr<DType>(source, "dtype");
  return dtype == nullptr ? DType::kInvalid : *dtype;
}

}  // namespace cohort
