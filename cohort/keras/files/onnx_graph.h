// OnnxGraph: builds an ONNX model (opset 17). Internal to keras/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/tensor.h"

namespace onnx {
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace cohort::keras {

using OnnxAttribute = std::variant<int64_t, float, std::string, std::vector<int64_t>>;
using OnnxAttributes = std::vector<std::pair<const char*, OnnxAttribute>>;

// Collects the nodes of one model. A value is represented by its name. ExportOnnx owns the object. Used by one thread.
class OnnxGraph {
 public:
  explicit OnnxGraph(const std::string& name);
  ~OnnxGraph();

  // Adds an input of the model. Throws UnimplementedError if ONNX runtimes cannot compute with the dtype. Unknown
  // dimensions get names; an unknown dimension 0 is called "batch". Returns the input's name.
  std::string AddInput(const std::string& name, DType dtype, const Shape& shape);
  // Declares that the value called `name` is an output of the model. The value is an input, or the output of a node.
  // Throws as AddInput does.
  void AddOutput(const std::string& name, DType dtype, const Shape& shape);
  // Returns the name of a constant. Names are made unique. The constant is written into the model when a node first
  // takes it as an input.
  std::string AddConstant(const std::string& name, const Tensor& value);
  std::string AddConstant(const std::string& name, const std::vector<int64_t>& values);
  // Adds a node with one output. Returns the output's name: `name`, or `name` with a number if `name` is taken.
  std::string Add(const char* op, const std::string& name, const std::vector<std::string>& inputs,
                  const OnnxAttributes& attributes = {}) {
    return AddWithOutputs(1, op, name, inputs, attributes).front();
  }
  // Adds a node with `count` outputs. Returns their names.
  std::vector<std::string> AddWithOutputs(int count, const char* op, const std::string& name,
                                          const std::vector<std::string>& inputs,
                                          const OnnxAttributes& attributes = {});
  // Adds another input to the node that makes `output`.
  void AppendInput(const std::string& output, const std::string& input);
  // Returns ONNX's number of the dtype. Throws UnimplementedError if ONNX does not have this dtype.
  static int TypeNumber(DType dtype);
  int num_nodes() const;

  // Returns the model's bytes. Throws ResourceExhaustedError if the model is too large for one message (2 GB).
  std::string Serialize() const;

 private:
  std::string Unique(const std::string& name);
  // Adds an input to a node. If it is a constant that no node has taken yet, writes the constant.
  void AddInputTo(onnx::NodeProto& node, const std::string& name);

  std::unique_ptr<onnx::ModelProto> model_;
  std::map<std::string, onnx::NodeProto*> by_output_;
  std::map<std::string, int> taken_;
  std::map<std::string, Tensor> unused_;  // constants that no node has taken yet
};

}  // namespace cohort::keras
