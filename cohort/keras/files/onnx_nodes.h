// OnnxTranslation: nodes of a graph as nodes of an ONNX model. Internal to keras/.
//
// Images are NHWC with us and NCHW with ONNX. A value is kept in the layout in which it was made, and turned only where
// a node needs the other one: between a convolution and the pool behind its activation nothing is turned.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/keras/files/onnx_graph.h"

namespace cohort::keras {

// For one thread. Add() is for its user; the rest is for the rules (onnx_rules.h).
class OnnxTranslation {
 public:
  // `variables`: names and values of those that the graph reads, by their VarHandleOp.
  struct NamedTensor {
    std::string name;
    Tensor value;
  };
  OnnxTranslation(OnnxGraph& onnx, std::map<const Node*, NamedTensor> variables)
      : onnx_(onnx), variables_(std::move(variables)) {}

  // Adds everything from which `outputs` follow. Throws UnimplementedError that names an op that has no form in ONNX.
  void Add(const std::vector<Output>& outputs);

  OnnxGraph& onnx() { return onnx_; }
  // Gives a value its name in the ONNX model, in our layout: of a placeholder, or of a node that a rule has added.
  void SetPlain(const Output& output, const std::string& name) { values_[Key(output)].plain = name; }
  void SetPlain(const Node& node, const std::string& name) { SetPlain(node.output(0), name); }
  // The same in ONNX's layout.
  void SetNchw(const Node& node, const std::string& name) { values_[{&node, 0}].nchw = name; }
  // Output 0 of the node is another value, unchanged.
  void SetAlias(const Node& node, const Output& value) { values_[{&node, 0}] = values_.at(Key(value)); }

  // The name of a value that has been added, in our layout and in ONNX's; turns it first if need be.
  std::string Plain(const Output& output);
  std::string Nchw(const Output& output);
  // Whether the value is there in ONNX's layout alone.
  bool OnlyNchw(const Output& output) const;
  // How many of the nodes that are exported take the value.
  int Uses(const Output& output) const;
  // The variable behind a handle, or a null pointer if the model has no such weight.
  const NamedTensor* Variable(const Output& handle) const;
  // The value of a constant or of a weight; a tensor that is not defined for what is computed.
  Tensor Constant(const Output& output) const;
  // The same as integers. Throws UnimplementedError for what is computed.
  std::vector<int64_t> Integers(const Output& output) const;

 private:
  struct Value {
    std::string plain, nchw;  // "": not there (yet)
  };
  using ValueKey = std::pair<const Node*, int>;
  static ValueKey Key(const Output& output) { return {output.node, output.index}; }
  void AddNode(const Node& node);

  OnnxGraph& onnx_;
  const std::map<const Node*, NamedTensor> variables_;
  std::map<ValueKey, Value> values_;
  std::map<ValueKey, int> uses_;
};

}  // namespace cohort::keras
