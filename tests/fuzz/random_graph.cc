// For each attribute of the op, Attr chooses a value by the attribute's kind. The inputs follow from the attributes
// that say their number and dtypes. Each input is a Const or a Placeholder of its own.
#include "tests/fuzz/random_graph.h"

#include <array>

#include "cohort/core/str_cat.h"
#include "cohort/proto/graph.pb.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort::fuzz {
namespace {

constexpr std::array kDTypes = {DType::kFloat32, DType::kFloat64, DType::kInt32,    DType::kUint8,   DType::kString,
                                DType::kInt64,   DType::kBool,    DType::kBfloat16, DType::kResource};
// Sizes and indices at which arithmetic goes wrong.
constexpr std::array<int64_t, 20> kNumbers = {0,
                                              1,
                                              2,
                                              3,
                                              4,
                                              7,
                                              16,
                                              -1,
                                              -2,
                                              -3,
                                              100,
                                              1 << 16,
                                              (int64_t{1} << 31) - 1,
                                              int64_t{1} << 31,
                                              int64_t{1} << 40,
                                              int64_t{1} << 56,
                                              int64_t{1} << 62,
                                              INT64_MAX,
                                              INT64_MIN,
                                              -(int64_t{1} << 31)};
constexpr uint64_t kSmallNumbers = 11;  // of kNumbers
// For kernels, which would make tensors of the sizes between.
constexpr std::array<int64_t, 4> kExtremes = {INT64_MIN, INT64_MAX, int64_t{1} << 62, -(int64_t{1} << 31)};
const std::array<const char*, 8> kTexts = {"", "SAME", "VALID", "EXPLICIT", "NHWC", "NCHW", "sum", "a"};

class Maker {
 public:
  Maker(const OpDef& op, const RandomGraphOptions& options, Input& input) : op_(op), options_(options), input_(input) {}

  std::string Make() {
    proto::NodeDef node;
    node.set_name("node");
    node.set_op(op_.name());
    for (const AttrDef& def : op_.attrs()) {
      // Most defaults are good values, so they stay most of the time.
      if (def.default_value && input_.Below(4) != 0) continue;
      proto::AttrValue value;
      Attr(def, &value);
      if (value.value_case() != proto::AttrValue::VALUE_NOT_SET) (*node.mutable_attr())[def.name] = value;
    }
    for (const ArgDef& arg : op_.inputs()) AddInputs(arg, &node);
    if (input_.Below(16) == 0) (*node.mutable_attr())["_class"].mutable_list()->add_s("loc:@input0");
    *graph_.add_node() = std::move(node);
    return graph_.SerializeAsString();
  }

 private:
  int64_t Number() {
    const uint64_t choice = input_.Below(8);
    if (choice == 7 && options_.constant_inputs) return kExtremes[input_.Below(kExtremes.size())];
    if (choice < 6 || options_.constant_inputs) return kNumbers[input_.Below(kSmallNumbers)];
    return choice == 6 ? kNumbers[input_.Below(kNumbers.size())] : static_cast<int64_t>(input_.Word());
  }
  DType AnyDType(const AttrDef* def) {
    if (def != nullptr && !def->allowed_types.empty()) {
      return def->allowed_types[input_.Below(def->allowed_types.size())];
    }
    return kDTypes[input_.Below(kDTypes.size())];
  }
  int64_t Dim() {
    if (options_.constant_inputs) return static_cast<int64_t>(input_.Below(5));
    return Number();
  }
  void AnyShape(proto::TensorShapeProto* out) {
    const uint64_t rank = input_.Below(7);
    if (rank == 6 && !options_.constant_inputs) return out->set_unknown_rank(true);
    for (uint64_t i = 0; i < rank; ++i) out->add_dim()->set_size(std::max<int64_t>(Dim(), -1));
  }
  std::string AnyText(const AttrDef& def) {
    if (!def.allowed_strings.empty()) return def.allowed_strings[input_.Below(def.allowed_strings.size())];
    return kTexts[input_.Below(kTexts.size())];
  }

  // The number of values of a list, of an input or of an output.
  uint64_t Count() { return input_.Below(16) == 0 ? input_.Below(300) : input_.Below(5); }

  void Attr(const AttrDef& def, proto::AttrValue* out) {
    const uint64_t count = def.kind >= AttrKind::kListInt ? Count() : 1;
    switch (def.kind) {
      case AttrKind::kInt: return out->set_i(IsCount(def.name) ? static_cast<int64_t>(Count()) : Number());
      case AttrKind::kFloat: return out->set_f(static_cast<float>(Number()) / 4);
      case AttrKind::kBool: return out->set_b(input_.Bool());
      case AttrKind::kString: return out->set_s(AnyText(def));
      case AttrKind::kType: return out->set_type(static_cast<proto::DataType>(AnyDType(&def)));
      case AttrKind::kShape: return AnyShape(out->mutable_shape());
      case AttrKind::kTensor: return AnyTensor(kDTypes[input_.Below(kDTypes.size() - 1)], out->mutable_tensor());
      case AttrKind::kFunc: return out->mutable_func()->set_name("function");
      default: break;
    }
    auto* list = out->mutable_list();
    for (uint64_t i = 0; i < count; ++i) {
      switch (def.kind) {
        case AttrKind::kListInt: list->add_i(Number()); break;
        case AttrKind::kListFloat: list->add_f(static_cast<float>(Number())); break;
        case AttrKind::kListBool: list->add_b(input_.Bool()); break;
        case AttrKind::kListString: list->add_s(AnyText(def)); break;
        case AttrKind::kListType: list->add_type(static_cast<proto::DataType>(AnyDType(&def))); break;
        default: AnyShape(list->add_shape()); break;
      }
    }
  }

  // Whether the attribute says how many inputs the op has.
  bool IsCount(const std::string& attr) const {
    for (const ArgDef& arg : op_.inputs()) {
      if (arg.number_attr == attr) return true;
    }
    return false;
  }

  void AnyTensor(DType dtype, proto::TensorProto* out) {
    Shape shape;
    const uint64_t rank = input_.Below(5);
    for (uint64_t i = 0; i < rank; ++i) shape.AddDim(static_cast<int64_t>(input_.Below(5)));
    Tensor tensor(dtype, shape);
    const bool numbers = dtype == DType::kInt32 || dtype == DType::kInt64;
    if (dtype == DType::kString) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data<std::string>()[i] = kTexts[input_.Below(8)];
    } else if (numbers) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        const int64_t number = Number();
        if (dtype == DType::kInt32) tensor.data<int32_t>()[i] = static_cast<int32_t>(number);
        if (dtype == DType::kInt64) tensor.data<int64_t>()[i] = number;
      }
    } else {
      auto* bytes = static_cast<uint8_t*>(tensor.raw_data());
      for (size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = dtype == DType::kBool ? input_.Byte() & 1 : input_.Byte();
    }
    ToProto(tensor, out);
  }

  std::vector<DType> DTypesOf(const ArgDef& arg, const proto::NodeDef& node) {
    const auto attr = [&](const std::string& name) -> AttrValueOrDefault { return {op_.FindAttr(name), node, name}; };
    if (!arg.type_list_attr.empty()) return attr(arg.type_list_attr).types();
    const int64_t count = arg.number_attr.empty() ? 1 : attr(arg.number_attr).number();
    const DType dtype = arg.type_attr.empty() ? arg.dtype : attr(arg.type_attr).type();
    return std::vector<DType>(static_cast<size_t>(std::clamp<int64_t>(count, 0, 300)), dtype);
  }

  // An attribute as the importer will see it.
  struct AttrValueOrDefault {
    const AttrDef* def;
    const proto::NodeDef& node;
    const std::string& name;

    const proto::AttrValue* Given() const {
      const auto found = node.attr().find(name);
      return found == node.attr().end() ? nullptr : &found->second;
    }
    int64_t number() const {
      if (const auto* given = Given()) return given->i();
      const int64_t* value = def->default_value ? def->default_value->get<int64_t>() : nullptr;
      return value == nullptr ? 0 : *value;
    }
    DType type() const {
      if (const auto* given = Given()) return static_cast<DType>(given->type());
      const DType* value = def->default_value ? def->default_value->get<DType>() : nullptr;
      return value == nullptr ? DType::kFloat32 : *value;
    }
    std::vector<DType> types() const {
      std::vector<DType> types;
      if (const auto* given = Given()) {
        for (const int type : given->list().type()) types.push_back(static_cast<DType>(type));
      }
      return types;
    }
  };

  void AddInputs(const ArgDef& arg, proto::NodeDef* node) {
    for (const DType dtype : DTypesOf(arg, *node)) {
      proto::NodeDef* made = graph_.add_node();
      made->set_name(StrCat("input", inputs_++));
      node->add_input(made->name());
      (*made->mutable_attr())["dtype"].set_type(static_cast<proto::DataType>(dtype));
      const bool is_handle = IsHandle(dtype);
      if (!is_handle && (options_.constant_inputs || input_.Bool())) {
        made->set_op("Const");
        AnyTensor(dtype, (*made->mutable_attr())["value"].mutable_tensor());
        continue;
      }
      made->set_op("Placeholder");
      AnyShape((*made->mutable_attr())["shape"].mutable_shape());
      if (is_handle && input_.Bool()) {
        (*made->mutable_attr())["_handle_dtypes"].mutable_list()->add_type(
            static_cast<proto::DataType>(AnyDType(nullptr)));
        AnyShape((*made->mutable_attr())["_handle_shapes"].mutable_list()->add_shape());
      }
    }
  }

  const OpDef& op_;
  const RandomGraphOptions options_;
  Input& input_;
  proto::GraphDef graph_;
  int inputs_ = 0;
};

}  // namespace

std::string RandomGraph(const OpDef& op, const RandomGraphOptions& options, Input& input) {
  return Maker(op, options, input).Make();
}

}  // namespace cohort::fuzz
