// BothDevices: runs an op on a CPU and on a GPU of the fake driver, for tests that compare the kernels of the two.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/device/device.h"
#include "cohort/device/variable_resource.h"
#include "cohort/graph/graph.h"

namespace cohort::cuda {

// One way to call an op. The names of attributes that are not dtypes of inputs are set by `attrs`.
struct OpCall {
  std::string op;
  // The inputs, or the lists of inputs, in the op's order. Variables come first: their values are `variables`.
  std::vector<std::vector<Tensor>> inputs;
  std::function<void(NodeBuilder&)> attrs = {};
  // The first inputs of the op are handles of variables with these values. For ops whose handles are all in front.
  std::vector<Tensor> variables = {};
};

// What a run gave.
struct OpResult {
  Status status;                  // what the kernel threw, or the step's error
  std::vector<Tensor> outputs;    // in host memory
  std::vector<Tensor> variables;  // the values after the run
};

// Runs ops, each with kernels and variables of its own. A test owns it. Not thread-safe.
class BothDevices {
 public:
  BothDevices();
  ~BothDevices();

  OpResult OnCpu(const OpCall& call) { return Run(*cpu_, call); }
  OpResult OnGpu(const OpCall& call) { return Run(*gpu_, call); }
  // Runs the call on both, and expects that it succeeds and gives the same: shapes and dtypes, integers and truth
  // values bit for bit, floating-point numbers up to `tolerance`, relative to max(1, |value|).
  void ExpectSame(const OpCall& call, double tolerance = 0);
  // Runs the call on both, and expects that it fails with the same message, up to the lines that say where, and that
  // variables keep their values. The message contains `text`.
  void ExpectSameError(const OpCall& call, const std::string& text);

 private:
  OpResult Run(Device& device, const OpCall& call);

  std::vector<std::unique_ptr<Device>> devices_;
  Device* cpu_;
  Device* gpu_;
  int64_t last_step_ = 0;
};

// Inputs: a vector, a scalar.
inline Tensor Ints(const std::vector<int32_t>& values) { return Tensor::Vector<int32_t>(values); }
inline Tensor Int(int32_t value) { return Tensor::Scalar<int32_t>(value); }
// Returns how far results of a few operations may be from each other: 0 for integers.
inline double ToleranceOf(DType dtype) {
  return dtype == DType::kFloat32 ? 1e-5 : dtype == DType::kFloat64 ? 1e-13 : dtype == DType::kBfloat16 ? 2e-2 : 0;
}
// Expects that two tensors are the same, as BothDevices::ExpectSame does.
void ExpectSameTensor(const Tensor& expected, const Tensor& got, double tolerance, const std::string& where);

}  // namespace cohort::cuda
