#include "cohort/keras/files/onnx_graph.h"

#include <onnx/onnx_pb.h>

#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {
namespace {

constexpr int64_t kIrVersion = 8;
constexpr int64_t kOpset = 17;

void SetType(onnx::ValueInfoProto& value, const std::string& name, DType dtype, const Shape& shape) {
  value.set_name(name);
  onnx::TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(OnnxGraph::TypeNumber(dtype));
  for (int i = 0; i < shape.rank(); ++i) {
    onnx::TensorShapeProto::Dimension& dim = *type.mutable_shape()->add_dim();
    if (shape.dim(i) >= 0) {
      dim.set_dim_value(shape.dim(i));
    } else {
      dim.set_dim_param(i == 0 ? "batch" : StrCat(name, "_", i));
    }
  }
}

void SetAttribute(onnx::AttributeProto& attribute, const char* name, const OnnxAttribute& value) {
  attribute.set_name(name);
  if (const auto* number = std::get_if<int64_t>(&value)) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(*number);
  } else if (const auto* real = std::get_if<float>(&value)) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(*text);
  } else {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int64_t item : std::get<std::vector<int64_t>>(value)) attribute.add_ints(item);
  }
}

}  // namespace

OnnxGraph::OnnxGraph(const std::string& name) : model_(std::make_unique<onnx::ModelProto>()) {
  model_->set_ir_version(kIrVersion);
  model_->set_producer_name("cohort");
  onnx::OperatorSetIdProto& opset = *model_->add_opset_import();
  opset.set_domain("");
  opset.set_version(kOpset);
  model_->mutable_graph()->set_name(name);
}

OnnxGraph::~OnnxGraph() = default;

int OnnxGraph::TypeNumber(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return onnx::TensorProto::FLOAT;
    case DType::kFloat64: return onnx::TensorProto::DOUBLE;
    case DType::kInt32: return onnx::TensorProto::INT32;
    case DType::kInt64: return onnx::TensorProto::INT64;
    case DType::kUint8: return onnx::TensorProto::UINT8;
    case DType::kBool: return onnx::TensorProto::BOOL;
    default: throw UnimplementedError(StrCat("[keras/onnx] expected numbers; got ", dtype));
  }
}

std::string OnnxGraph::Unique(const std::string& name) {
  const int uses = taken_[name]++;
  return uses == 0 ? name : Unique(StrCat(name, "_", uses));
}

std::string OnnxGraph::AddInput(const std::string& name, DType dtype, const Shape& shape) {
  std::string unique = Unique(name);
  SetType(*model_->mutable_graph()->add_input(), unique, dtype, shape);
  return unique;
}

void OnnxGraph::AddOutput(const std::string& name, DType dtype, const Shape& shape) {
  SetType(*model_->mutable_graph()->add_output(), name, dtype, shape);
}

std::string OnnxGraph::AddConstant(const std::string& name, const Tensor& value) {
  TypeNumber(value.dtype());  // throws for what no initializer can hold
  std::string unique = Unique(name);
  unused_[unique] = value;
  return unique;
}

std::string OnnxGraph::AddConstant(const std::string& name, const std::vector<int64_t>& values) {
  return AddConstant(name, Tensor::Vector(values));
}

void OnnxGraph::AddInputTo(onnx::NodeProto& node, const std::string& name) {
  node.add_input(name);
  const auto found = unused_.find(name);
  if (found == unused_.end()) return;
  const Tensor& value = found->second;
  onnx::TensorProto& tensor = *model_->mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(TypeNumber(value.dtype()));
  for (const int64_t dim : value.shape().dims()) tensor.add_dims(dim);
  tensor.set_raw_data(value.raw_data(), value.bytes());
  unused_.erase(found);
}

std::vector<std::string> OnnxGraph::AddWithOutputs(int count, const char* op, const std::string& name,
                                                   const std::vector<std::string>& inputs,
                                                   const OnnxAttributes& attributes) {
  onnx::NodeProto& node = *model_->mutable_graph()->add_node();
  node.set_op_type(op);
  std::vector<std::string> outputs;
  for (int i = 0; i < count; ++i) {
    outputs.push_back(Unique(i == 0 ? name : StrCat(name, ":", i)));
    node.add_output(outputs.back());
    by_output_[outputs.back()] = &node;
  }
  node.set_name(outputs.front());
  for (const std::string& input : inputs) AddInputTo(node, input);
  for (const auto& [key, value] : attributes) SetAttribute(*node.add_attribute(), key, value);
  return outputs;
}

void OnnxGraph::AppendInput(const std::string& output, const std::string& input) {
  AddInputTo(*by_output_.at(output), input);
}

int OnnxGraph::num_nodes() const { return model_->graph().node_size(); }

std::string OnnxGraph::Serialize() const {
  const size_t bytes = model_->ByteSizeLong();
  if (bytes > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw ResourceExhaustedError(StrCat("[keras/onnx] expected a model of less than 2 GB; got ", bytes, " bytes"));
  }
  return model_->SerializeAsString();
}

}  // namespace cohort::keras
