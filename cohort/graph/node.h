// Node: one operation of a graph. Output: a value in a graph.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/attr_value.h"
#include "cohort/graph/node_name.h"
#include "cohort/graph/op_def.h"

namespace cohort {

class Graph;
class Node;

// A string attribute of a node: a sentence that helps to understand errors of the node's kernel. They end with it.
inline constexpr char kErrorNote[] = "_error_note";

// The value at output `index` of a node. Cheap to copy. Valid as long as the graph of the node. The methods dtype(),
// shape(), graph() and name() throw InvalidArgumentError if the Output is empty (valid() is false).
struct COHORT_EXPORT Output {
  Node* node = nullptr;
  int index = 0;

  bool valid() const { return node != nullptr; }
  DType dtype() const;
  const Shape& shape() const;  // the shape as far as it is known while the graph is built
  Graph& graph() const;
  std::string name() const;  // "node:0"
  friend bool operator==(const Output&, const Output&) = default;
};

// One operation of a graph: an op with its name, inputs, attributes and device. NodeBuilder makes nodes. The graph owns
// its nodes, and they live as long as the graph. The methods that change a node are not thread-safe: no other thread
// may use the node meanwhile.
class COHORT_EXPORT Node {
 public:
  int id() const { return id_; }  // the position in Graph::nodes(), from 0
  const std::string& name() const { return name_; }
  const OpDef& op() const { return *op_; }
  const std::string& op_name() const { return op_->name(); }
  Graph& graph() const { return *graph_; }
  const std::vector<Output>& inputs() const { return inputs_; }
  const Output& input(int i) const { return inputs_.at(static_cast<size_t>(i)); }
  const std::vector<Node*>& control_inputs() const { return control_inputs_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(output_dtypes_.size()); }
  Output output(int i) const { return {const_cast<Node*>(this), i}; }
  DType output_dtype(int i) const { return output_dtypes_.at(static_cast<size_t>(i)); }
  const Shape& output_shape(int i) const { return output_shapes_.at(static_cast<size_t>(i)); }
  // Return the ArgDef of the op to which the i-th input or output belongs. Several inputs or outputs may belong to one
  // ArgDef, if it is a list.
  const ArgDef& input_arg(int i) const { return op_->inputs().at(input_args_.at(static_cast<size_t>(i))); }
  const ArgDef& output_arg(int i) const { return op_->outputs().at(output_args_.at(static_cast<size_t>(i))); }
  const AttrMap& attrs() const { return attrs_; }
  bool has_attr(std::string_view name) const { return attrs_.find(name) != attrs_.end(); }
  // Throws InvalidArgumentError if the attribute is missing or of another type.
  template <typename T>
  const T& attr(std::string_view name) const {
    const auto it = attrs_.find(name);
    const T* value = it == attrs_.end() ? nullptr : it->second.get<T>();
    if (value == nullptr) FailAttr(name);
    return *value;
  }
  // Returns the requested device; "" means any device.
  const std::string& device() const { return device_; }
  void set_device(std::string device) { device_ = std::move(device); }
  // Returns the names of nodes on whose device this node must be.
  const std::vector<std::string>& colocate_with() const { return colocate_with_; }

  // Makes this node run after `node`. Throws InvalidArgumentError if `node` is null, is this node, or is of another
  // graph.
  void AddControlInput(Node* node);
  // The following three methods are for passes, which change a graph of their own, and for gradients. They do not
  // compute the dtypes and shapes of the outputs again. ReplaceInput throws InvalidArgumentError if there is no input
  // i, or if `value` has another dtype or is of another graph.
  void ReplaceInput(int i, Output value);
  void SetAttr(std::string_view name, AttrValue value) { attrs_.insert_or_assign(std::string(name), std::move(value)); }
  void ReplaceControlInputs(std::vector<Node*> nodes) { control_inputs_ = std::move(nodes); }
  // Returns the line of the program that added the node, if that is known. A gradient's nodes have the line of the node
  // whose gradient they compute. The line is not part of a GraphDef.
  const CallSite& site() const { return site_; }
  // Returns, for example, "MatMul node 'dense/MatMul' (inputs: float32[?,4], float32[3,2]), made at src/train.cc:57".
  std::string Describe() const;

 private:
  friend class Graph;
  friend class NodeBuilder;
  [[noreturn]] void FailAttr(std::string_view name) const;

  Graph* graph_ = nullptr;
  int id_ = 0;
  std::string name_;
  CallSite site_;
  const OpDef* op_ = nullptr;
  AttrMap attrs_;
  std::vector<Output> inputs_;
  std::vector<Node*> control_inputs_;
  std::vector<size_t> input_args_;
  std::vector<size_t> output_args_;
  std::vector<DType> output_dtypes_;
  std::vector<Shape> output_shapes_;
  std::string device_;
  std::vector<std::string> colocate_with_;
};

}  // namespace cohort
