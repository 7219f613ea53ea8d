// Copies each node into the partition of its device. If an input is in another partition, a pair of _Send and _Recv
// takes its place (RecvOf). Data edges are found first, so that control edges can use them.
#include "cohort/runtime/placement/partitioner.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/topological_order.h"

namespace cohort {
namespace {

class Partitioner {
 public:
  Partitioner(const Graph& graph, const std::vector<std::string>& device_of_node)
      : graph_(graph), order_(TopologicalOrder(graph)), device_of_node_(device_of_node), copies_(order_.size()) {}

  PartitionedGraph Run() {
    FindDataCrossings();
    for (const Node* node : order_) {
      // A constant is copied with its first consumer. So there is no partition that has only constants.
      if (!IsFreeConst(*node) || !has_consumer_.count(node)) CopyTo(*node, PartitionOf(*node));
    }
    for (Partition& partition : result_.partitions) TakeFunctions(graph_, *partition.graph);
    return std::move(result_);
  }

 private:
  static bool IsFreeConst(const Node& node) { return node.op_name() == "Const" && node.control_inputs().empty(); }

  const std::string& DeviceOf(const Node& node) const { return device_of_node_[static_cast<size_t>(node.id())]; }

  void FindDataCrossings() {
    for (const Node* node : order_) {
      for (const Output& input : node->inputs()) {
        has_consumer_.insert(input.node);
        if (IsFreeConst(*input.node) || DeviceOf(*input.node) == DeviceOf(*node)) continue;
        if (IsHandle(input.dtype())) {
          throw InvalidArgumentError(StrCat("[partitioner] a ", input.dtype(), " handle cannot leave its device: '",
                                            input.name(), "' is on ", DeviceOf(*input.node), " and ", node->Describe(),
                                            " on ", DeviceOf(*node), "; place the two together"));
        }
        crossing_.emplace(std::make_pair(input.node, DeviceOf(*node)), input.index);
      }
      for (const Node* control : node->control_inputs()) has_consumer_.insert(control);
    }
  }

  int PartitionOf(const Node& node) {
    const std::string& device = DeviceOf(node);
    const auto [it, added] = partition_of_device_.emplace(device, static_cast<int>(result_.partitions.size()));
    if (added) result_.partitions.push_back({device, std::make_unique<Graph>()});
    return it->second;
  }

  Graph& GraphOf(int partition) { return *result_.partitions[static_cast<size_t>(partition)].graph; }

  void CopyTo(const Node& node, int partition) {
    std::vector<Output> inputs;
    std::vector<Node*> controls;
    for (const Output& input : node.inputs()) inputs.push_back(ValueIn(input, partition));
    for (Node* control : node.control_inputs()) {
      // A constant needs no control edge, because it exists before anything runs.
      if (!IsFreeConst(*control)) controls.push_back(ControlIn(*control, partition));
    }
    copies_[static_cast<size_t>(node.id())][partition] = CopyNode(GraphOf(partition), node, inputs, controls);
  }

  // Returns the copy of `node` in `partition`, or nullptr if there is none.
  Node* FindCopy(const Node& node, int partition) {
    const auto& copies = copies_[static_cast<size_t>(node.id())];
    const auto it = copies.find(partition);
    return it == copies.end() ? nullptr : it->second;
  }

  Output ValueIn(const Output& value, int partition) {
    if (IsFreeConst(*value.node) && FindCopy(*value.node, partition) == nullptr) CopyTo(*value.node, partition);
    if (Node* copy = FindCopy(*value.node, partition)) return {copy, value.index};
    return {RecvOf(*value.node, value.index, partition), 0};
  }

  Node* ControlIn(const Node& node, int partition) {
    if (Node* copy = FindCopy(node, partition)) return copy;
    const std::string& device = result_.partitions[static_cast<size_t>(partition)].device;
    const auto data = crossing_.find(std::make_pair(&node, device));
    return RecvOf(node, data == crossing_.end() ? kControl : data->second, partition);
  }

  // Returns the _Recv of output `index` (or kControl) of `node` in `partition`. Makes it, with its _Send, if there is
  // none.
  Node* RecvOf(const Node& node, int index, int partition) {
    Node*& recv = recvs_[{&node, index, partition}];
    if (recv != nullptr) return recv;
    CrossingEdge edge;
    edge.id = static_cast<EdgeId>(result_.edges.size());
    edge.src_partition = PartitionOf(node);
    edge.dst_partition = partition;
    edge.control = index == kControl;
    Node* source = FindCopy(node, edge.src_partition);
    Output value;
    if (edge.control) {
      edge.tensor_name = "^" + node.name();
      value = GraphOf(edge.src_partition)
                  .Op("Const")
                  .Name(StrCat("_done_", edge.id))
                  .Attr("dtype", DType::kBool)
                  .Attr("value", Tensor::Scalar(true))
                  .Control(source)
                  .IgnoreScopes()
                  .Finish1();
    } else {
      value = {source, index};
      edge.tensor_name = value.name();
    }
    edge.dtype = value.dtype();
    recv = AddPair(edge, value);
    result_.edges.push_back(std::move(edge));
    return recv;
  }

  Node* AddPair(const CrossingEdge& edge, const Output& value) {
    const std::string& send_device = result_.partitions[static_cast<size_t>(edge.src_partition)].device;
    const std::string& recv_device = result_.partitions[static_cast<size_t>(edge.dst_partition)].device;
    const AttrMap attrs = {{"tensor_name", edge.tensor_name},
                           {"edge", static_cast<int64_t>(edge.id)},
                           {"send_device", send_device},
                           {"recv_device", recv_device}};
    GraphOf(edge.src_partition)
        .Op("_Send")
        .Name(StrCat("_send_", edge.id))
        .Input(value)
        .Attrs(attrs)
        .Device(send_device)
        .IgnoreScopes()
        .Finish();
    return GraphOf(edge.dst_partition)
        .Op("_Recv")
        .Name(StrCat("_recv_", edge.id))
        .Attr("tensor_type", edge.dtype)
        .Attr("shape", value.shape())
        .Attrs(attrs)
        .Device(recv_device)
        .IgnoreScopes()
        .Finish();
  }

  static constexpr int kControl = -1;

  const Graph& graph_;
  const std::vector<Node*> order_;
  const std::vector<std::string>& device_of_node_;
  PartitionedGraph result_;
  std::map<std::string, int> partition_of_device_;
  std::vector<std::map<int, Node*>> copies_;  // by node id, then by partition
  std::set<const Node*> has_consumer_;
  // For each (source node, destination device): an output that is sent there.
  std::map<std::pair<const Node*, std::string>, int> crossing_;
  std::map<std::tuple<const Node*, int, int>, Node*> recvs_;
};

}  // namespace

PartitionedGraph PartitionByDevice(const Graph& graph, const std::vector<std::string>& device_of_node) {
  if (device_of_node.size() != static_cast<size_t>(graph.num_nodes())) {
    throw InternalError(
        StrCat("[partitioner] expected the devices of ", graph.num_nodes(), " nodes; got ", device_of_node.size()));
  }
  return Partitioner(graph, device_of_node).Run();
}

}  // namespace cohort
