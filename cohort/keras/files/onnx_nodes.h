// OnnxTranslation: translates nodes of a graph to nodes of an ONNX model. Internal to keras/.
// Cohort's images are [batch, rows, columns, channels] (NHWC); ONNX's are [batch, channels, rows, columns] (NCHW). A
// value stays in the layout in which it was made. It is transposed only if a node needs the other layout. So nothing is
// transposed between a convolution, its activation and the pool after it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/keras/files/onnx_graph.h"

namespace cohort::keras {

// Translates one graph. ExportOnnx owns the object, sets the placeholders and calls Add(). Add() calls a rule for each
// node (onnx_rules.h). The rules call the functions below Add(). Used by one thread.
class OnnxTranslation {
 public:
  // A weight: its name in the ONNX model, and its value.
  struct NamedTensor {
    std::string name;
    Tensor value;
  };
  // `variables` has the weights that the graph reads. The key of a weight is its VarHandleOp.
  OnnxTranslation(OnnxGraph& onnx, std::map<const Node*, NamedTensor> variables)
      : onnx_(onnx), variables_(std::move(variables)) {}

  // Adds all nodes on which `outputs` depend. Throws UnimplementedError that names an op without a form in ONNX.
  void Add(const std::vector<Output>& outputs);

  OnnxGraph& onnx() { return onnx_; }
  // Sets the name that a value in Cohort's layout has in the ONNX model. ExportOnnx calls it for placeholders, and a
  // rule calls it for the results of its node.
  void SetPlain(const Output& output, const std::string& name) { values_[Key(output)].plain = name; }
  void SetPlain(const Node& node, const std::string& name) { SetPlain(node.output(0), name); }
  // Sets the name that output 0 of the node, in ONNX's layout, has in the ONNX model.
  void SetNchw(const Node& node, const std::string& name) { values_[{&node, 0}].nchw = name; }
  // Says that output 0 of the node is the same value as `value`. Requires: a name of `value` was set before.
  void SetAlias(const Node& node, const Output& value) { values_[{&node, 0}] = values_.at(Key(value)); }

  // Return the name of a value in Cohort's layout (Plain) or in ONNX's (Nchw). If the value does not exist in this
  // layout yet, add a transposition. Require: the value was set before.
  std::string Plain(const Output& output);
  std::string Nchw(const Output& output);
  // Returns true if the value exists only in ONNX's layout.
  bool OnlyNchw(const Output& output) const;
  // Returns how many of the exported nodes take the value.
  int Uses(const Output& output) const;
  // Returns the variable of a handle, or null if the model has no such weight.
  const NamedTensor* Variable(const Output& handle) const;
  // Returns the value of a constant or of a weight, also if it has got another shape. Returns an undefined tensor for a
  // computed value.
  Tensor Constant(const Output& output) const;
  // Returns the value of a constant or of a weight as integers. Throws UnimplementedError for a computed value.
  std::vector<int64_t> Integers(const Output& output) const;

 private:
  struct Value {
    std::string plain, nchw;  // "": the value does not exist (yet) in this layout
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
