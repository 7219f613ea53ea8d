#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/function.h"
#include "cohort/graph/graph_def.h"
#include "cohort/graph/graph_def/attr_value_proto_internal.h"
#include "cohort/graph/graph_def/graph_def_internal.h"
#include "cohort/graph/graph_def/left_out_nodes_internal.h"

namespace cohort {

void ToProto(const Node& node, const GraphDefOptions& options, proto::NodeDef* out) {
  out->set_name(node.name());
  out->set_op(node.op_name());
  out->set_device(node.device());
  for (const Output& input : node.inputs()) {
    out->add_input(input.index == 0 ? input.node->name() : input.name());
  }
  for (const Node* control : node.control_inputs()) out->add_input("^" + control->name());
  auto& attrs = *out->mutable_attr();
  for (const auto& [name, value] : node.attrs()) ToProto(value, &attrs[name]);
  if (!node.colocate_with().empty()) {
    auto* classes = attrs["_class"].mutable_list();
    for (const std::string& name : node.colocate_with()) classes->add_s("loc:@" + name);
  }
  if (options.output_shapes) {
    std::vector<Shape> shapes;
    for (int i = 0; i < node.num_outputs(); ++i) shapes.push_back(node.output_shape(i));
    ToProto(AttrValue(std::move(shapes)), &attrs["_output_shapes"]);
  }
}

namespace {

proto::GraphDef ToGraphDef(const Graph& graph, const GraphDefOptions& options) {
  proto::GraphDef def;
  for (const Node* node : graph.nodes()) ToProto(*node, options, def.add_node());
  for (const auto& function : graph.functions()) ToProto(*function, def.mutable_library()->add_function());
  if (options.has_op != nullptr) LeaveOutNodes(options.has_op, &def);
  def.mutable_versions()->set_producer(kGraphDefVersion);
  return def;
}

}  // namespace

std::string SerializeGraphDef(const Graph& graph, const GraphDefOptions& options) {
  const proto::GraphDef def = ToGraphDef(graph, options);
  const size_t size = def.ByteSizeLong();
  if (size > static_cast<size_t>(std::numeric_limits<int>::max())) {
    throw InvalidArgumentError(StrCat("[graph] a GraphDef can have ", std::numeric_limits<int>::max(),
                                      " bytes, this graph needs ", size, "; keep large constants out of it"));
  }
  std::string bytes;
  bytes.reserve(size);
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    def.SerializeToCodedStream(&coded);
  }
  return bytes;
}

std::string GraphDefText(const Graph& graph, const GraphDefOptions& options) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(ToGraphDef(graph, options), &text);
  return text;
}

}  // namespace cohort
