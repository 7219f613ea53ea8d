// OnnxGraph: an ONNX model while it is put together, opset 17. Values are names. Internal to keras/.
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

class OnnxGraph {
 public:
  explicit OnnxGraph(const std::string& name);
  ~OnnxGraph();

  // Of a dtype that ONNX runtimes compute with; throws UnimplementedError for another. Unknown dimensions get names,
  // the first one "batch".
  std::string AddInput(const std::string& name, DType dtype, const Shape& shape);
  void AddOutput(const std::string& name, DType dtype, const Shape& shape);
  // Returns the name of a constant, which is made unique as all names are. The model holds the constant once a node
  // takes it as an input.
  std::string AddConstant(const std::string& name, const Tensor& value);
  std::string AddConstant(const std::string& name, const std::vector<int64_t>& values);
  // Adds a node with one output and returns the output's name: `name` if that is free.
  std::string Add(const char* op, const std::string& name, const std::vector<std::string>& inputs,
                  const OnnxAttributes& attributes = {}) {
    return AddWithOutputs(1, op, name, inputs, attributes).front();
  }
  // Adds a node with `count` outputs.
  std::vector<std::string> AddWithOutputs(int count, const char* op, const std::string& name,
                                          const std::vector<std::string>& inputs,
                                          const OnnxAttributes& attributes = {});
  // One input more for the node that makes `output`.
  void AppendInput(const std::string& output, const std::string& input);
  // The number of ONNX's type. Throws UnimplementedError.
  static int TypeNumber(DType dtype);
  int num_nodes() const;

  // Throws ResourceExhaustedError for a model that one message cannot hold (2 GB).
  std::string Serialize() const;

 private:
  std::string Unique(const std::string& name);
  // Adds an input to a node; writes the constant of this name, if it is one that no node has taken yet.
  void AddInputTo(onnx::NodeProto& node, const std::string& name);

  std::unique_ptr<onnx::ModelProto> model_;
  std::map<std::string, onnx::NodeProto*> by_output_;
  std::map<std::string, int> taken_;
  std::map<std::string, Tensor> unused_;  // constants that no node takes yet
};

}  // namespace cohort::keras
