#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def/attr_value_proto_internal.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort {
namespace {

proto::DataType ToProto(DType dtype) { return static_cast<proto::DataType>(static_cast<int>(dtype)); }

DType DTypeFromProto(int dtype) {
  if (!IsKnownDType(dtype)) {
    const std::string& name = proto::DataType_Name(dtype);
    throw InvalidArgumentError(
        StrCat("dtype number ", dtype, name.empty() ? "" : " (" + name + ")", " is none that Cohort has"));
  }
  return static_cast<DType>(dtype);
}

// Writes an AttrValue to the message. There is one overload for each type of value.
struct Writer {
  proto::AttrValue* out;

  void operator()(std::monostate) const {}
  void operator()(int64_t value) const { out->set_i(value); }
  void operator()(float value) const { out->set_f(value); }
  void operator()(bool value) const { out->set_b(value); }
  void operator()(const std::string& value) const { out->set_s(value); }
  void operator()(DType value) const { out->set_type(ToProto(value)); }
  void operator()(const Shape& value) const { cohort::ToProto(value, out->mutable_shape()); }
  void operator()(const Tensor& value) const { cohort::ToProto(value, out->mutable_tensor()); }
  void operator()(const FunctionName& value) const { out->mutable_func()->set_name(value.name); }
  void operator()(const std::vector<int64_t>& values) const {
    auto* list = out->mutable_list();
    for (const int64_t value : values) list->add_i(value);
  }
  void operator()(const std::vector<float>& values) const {
    auto* list = out->mutable_list();
    for (const float value : values) list->add_f(value);
  }
  void operator()(const std::vector<bool>& values) const {
    auto* list = out->mutable_list();
    for (const bool value : values) list->add_b(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    auto* list = out->mutable_list();
    for (const std::string& value : values) list->add_s(value);
  }
  void operator()(const std::vector<DType>& values) const {
    auto* list = out->mutable_list();
    for (const DType value : values) list->add_type(ToProto(value));
  }
  void operator()(const std::vector<Shape>& values) const {
    auto* list = out->mutable_list();
    for (const Shape& value : values) cohort::ToProto(value, list->add_shape());
  }
};

template <typename T, typename List>
std::vector<T> Copy(const List& list) {
  return std::vector<T>(list.begin(), list.end());
}

AttrValue FromList(const proto::AttrValue::ListValue& list) {
  const int kinds = (list.s_size() > 0) + (list.i_size() > 0) + (list.f_size() > 0) + (list.b_size() > 0) +
                    (list.type_size() > 0) + (list.shape_size() > 0) + (list.tensor_size() > 0) +
                    (list.func_size() > 0);
  if (kinds > 1) throw InvalidArgumentError(StrCat("a list holds values of ", kinds, " types, expected one"));
  if (list.s_size() > 0) return Copy<std::string>(list.s());
  if (list.f_size() > 0) return Copy<float>(list.f());
  if (list.b_size() > 0) return Copy<bool>(list.b());
  if (list.type_size() > 0) {
    std::vector<DType> dtypes;
    for (const int dtype : list.type()) dtypes.push_back(DTypeFromProto(dtype));
    return dtypes;
  }
  if (list.shape_size() > 0) {
    std::vector<Shape> shapes;
    for (const auto& shape : list.shape()) shapes.push_back(FromProto(shape));
    return shapes;
  }
  if (list.tensor_size() > 0) throw InvalidArgumentError("lists of tensors are none of Cohort's values");
  if (list.func_size() > 0) throw InvalidArgumentError("lists of functions are none of Cohort's values");
  return Copy<int64_t>(list.i());
}

}  // namespace

void ToProto(const AttrValue& value, proto::AttrValue* out) {
  out->Clear();
  std::visit(Writer{out}, value.value());
}

AttrValue FromProto(const proto::AttrValue& in, TensorBudget& budget) {
  switch (in.value_case()) {
    case proto::AttrValue::kS: return in.s();
    case proto::AttrValue::kI: return static_cast<int64_t>(in.i());
    case proto::AttrValue::kF: return in.f();
    case proto::AttrValue::kB: return in.b();
    case proto::AttrValue::kType: return DTypeFromProto(static_cast<int>(in.type()));
    case proto::AttrValue::kShape: return FromProto(in.shape());
    case proto::AttrValue::kTensor: return FromProto(in.tensor(), budget);
    case proto::AttrValue::kList: return FromList(in.list());
    case proto::AttrValue::kFunc:
      for (const auto& [name, value] : in.func().attr()) {
        if (!name.empty() && name[0] == '_') continue;
        throw InvalidArgumentError(StrCat("the function '", in.func().name(), "' is called with an attribute '", name,
                                          "', which Cohort's functions do not have"));
      }
      return FunctionName{in.func().name()};
    case proto::AttrValue::kPlaceholder:
      throw InvalidArgumentError(StrCat("the placeholder '", in.placeholder(), "' was never filled in"));
    case proto::AttrValue::VALUE_NOT_SET: break;
  }
  return AttrValue();
}

}  // namespace cohort
