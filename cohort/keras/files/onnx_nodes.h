// OnnxTranslation: nodes of a graph as nodes of an ONNX model. Internal to keras/.
//
// Images are NHWC with us and NCHW with ONNX. A value is kept in the layout in which it was made, and turned only where
// a node needs the other one: between a convolution and the pool behind its activation nothing is turned.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/keras/files/onnx_graph.h"

namespace cohort::keras {

class OnnxTranslation {
 public:
  // `variables`: names and values of those that the graph reads, by their VarHandleOp.
  struct NamedTensor {
    std::string name;
    Tensor value;
  };
  OnnxTranslation(OnnxGraph& onnx, std::map<const Node*, NamedTensor> variables)
      : onnx_(onnx), variables_(std::move(variables)) {}

  // `output` is `name` in the ONNX model: a placeholder.
  void SetValue(const Output& output, const std::string& name) { values_[Key(output)].plain = name; }
  // Adds all that `outputs` follow from. Throws UnimplementedError that names an op that ONNX has no form for.
  void Add(const std::vector<Output>& outputs);
  // The name of a value that has been added, in our layout.
  std::string Plain(const Output& output);

 private:
  friend struct OnnxRules;
  struct Value {
    std::string plain, nchw;  // "": not there (yet)
  };
  using ValueKey = std::pair<const Node*, int>;
  static ValueKey Key(const Output& output) { return {output.node, output.index}; }

  std::string Nchw(const Output& output);
  bool OnlyNchw(const Output& output) const;
  // A constant or a weight; not defined where it is neither.
  Tensor Constant(const Output& output) const;
  std::vector<int64_t> Integers(const Output& output) const;
  void AddNode(const Node& node);
  void SetPlain(const Node& node, const std::string& name) { values_[{&node, 0}].plain = name; }
  void SetNchw(const Node& node, const std::string& name) { values_[{&node, 0}].nchw = name; }

  OnnxGraph& onnx_;
  const std::map<const Node*, NamedTensor> variables_;
  std::map<ValueKey, Value> values_;
  std::map<ValueKey, int> uses_;
};

}  // namespace cohort::keras
