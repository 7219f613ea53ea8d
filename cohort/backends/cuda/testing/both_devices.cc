#include "cohort/backends/cuda/testing/both_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cohort/backends/cpu/cpu_backend.h"
#include "cohort/backends/cpu/cpu_variable.h"
#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/step_error.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"
#include "tests/ops/op_cases.h"

namespace cohort::cuda {
namespace {

bool OnGpuDevice(const Device& device) { return !device.allocator().space().is_host(); }

// The part of a message before the lines that say where it happened.
std::string FirstLine(const std::string& message) { return message.substr(0, message.find('\n')); }

std::string Describe(const OpCall& call) {
  std::string text = call.op;
  for (const auto& list : call.inputs) {
    for (const Tensor& value : list) text += StrCat(" ", value.dtype(), value.shape());
  }
  return text;
}

std::shared_ptr<VariableResource> MakeVariable(Device& device, const std::string& name, const Tensor& value) {
  if (OnGpuDevice(device)) {
    auto variable = std::make_shared<VariableResource>(name, value.dtype(), value.shape(), device.allocator());
    variable->Assign(device.CopyFromHost(value));
    return variable;
  }
  auto variable = std::make_shared<CpuVariable>(name, value.dtype(), value.shape());
  variable->Assign(value.Clone());
  return variable;
}

}  // namespace

BothDevices::BothDevices() {
  RegisterGpusForTests();
  const auto task = std::make_shared<TaskResources>();
  DeviceRequest request;
  request.task = DeviceName::Parse("/job:localhost/replica:0/task:0");
  request.count = 1;
  request.resources = task;
  for (auto& device : CpuBackend::Get().MakeDevices(request)) devices_.push_back(std::move(device));
  for (auto& device : CudaBackend::Get().MakeDevices(request)) devices_.push_back(std::move(device));
  cpu_ = devices_[0].get();
  gpu_ = devices_[1].get();
}

BothDevices::~BothDevices() = default;

OpResult BothDevices::Run(Device& device, const OpCall& call) {
  Graph graph;
  std::vector<Tensor> slots;
  std::vector<std::shared_ptr<VariableResource>> variables;
  NodeBuilder builder = graph.Op(call.op);
  for (const Tensor& value : call.variables) {
    const std::string name = StrCat("v", variables.size());
    variables.push_back(MakeVariable(device, name, value));
    slots.push_back(MakeResourceHandle(variables.back()));
    builder.Input(graph.Op("VarHandleOp")
                      .Attr("dtype", value.dtype())
                      .Attr("shape", value.shape())
                      .Attr("shared_name", name)
                      .Finish1());
  }
  for (const std::vector<Tensor>& list : call.inputs) {
    std::vector<Output> outputs;
    for (const Tensor& value : list) {
      outputs.push_back(ops::Placeholder(graph, value.dtype(), Shape::UnknownRank(), "input"));
      slots.push_back(value);
    }
    list.size() == 1 ? builder.Input(outputs[0]) : builder.Inputs(outputs);
  }
  if (call.attrs) call.attrs(builder);
  OpResult result;
  StepError error;
  try {
    const Node& node = *builder.Finish();
    const int inputs = node.num_inputs();
    for (int i = 0; i < inputs; ++i) {
      Tensor& slot = slots[static_cast<size_t>(i)];
      if (!node.input_arg(i).host_memory) slot = device.CopyFromHost(slot);
    }
    slots.resize(static_cast<size_t>(inputs + node.num_outputs()));
    std::vector<int32_t> input_slots, uses(slots.size(), 2);
    for (int i = 0; i < inputs; ++i) input_slots.push_back(i);
    StepInfo step;
    step.step_id = ++last_step_;
    step.error = OnGpuDevice(device) ? &error : nullptr;
    const auto kernel = KernelRegistry::Global().Create({node, device});
    KernelContext ctx(node, device, step, slots.data(), input_slots, slots.data() + inputs, uses.data());
    kernel->Compute(ctx);
    if (OnGpuDevice(device)) static_cast<CudaDevice&>(device).Synchronize();
    error.status().ThrowIfError();
    for (int i = 0; i < node.num_outputs(); ++i) {
      result.outputs.push_back(device.CopyToHost(slots[static_cast<size_t>(inputs + i)]));
    }
  } catch (...) {
    result.status = Status::FromCurrentException();
  }
  for (const auto& variable : variables) result.variables.push_back(device.CopyToHost(variable->Read()));
  return result;
}

void ExpectSameTensor(const Tensor& expected, const Tensor& got, double tolerance, const std::string& where) {
  ASSERT_EQ(got.dtype(), expected.dtype()) << where;
  ASSERT_EQ(got.shape(), expected.shape()) << where;
  if (expected.dtype() == DType::kString) {
    EXPECT_EQ(got.ToVector<std::string>(), expected.ToVector<std::string>()) << where;
    return;
  }
  if (expected.bytes() == 0) return;
  if (!IsFloating(expected.dtype()) || tolerance == 0) {
    EXPECT_EQ(std::memcmp(got.raw_data(), expected.raw_data(), expected.bytes()), 0)
        << where << ": expected " << expected.ToString(40) << "; got " << got.ToString(40);
    return;
  }
  const Tensor a = testing::AsFloat64(expected), b = testing::AsFloat64(got);
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_LE(std::fabs(x - y), tolerance * std::max(1.0, std::fabs(x)))
        << where << ": element " << i << ": expected " << x << "; got " << y;
  }
}

void BothDevices::ExpectSame(const OpCall& call, double tolerance) {
  const OpResult expected = OnCpu(call);
  const OpResult got = OnGpu(call);
  const std::string where = Describe(call);
  ASSERT_TRUE(expected.status.ok()) << where << ": " << expected.status.message();
  ASSERT_TRUE(got.status.ok()) << where << ": " << got.status.message();
  ASSERT_EQ(got.outputs.size(), expected.outputs.size()) << where;
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    ExpectSameTensor(expected.outputs[i], got.outputs[i], tolerance, StrCat(where, ", output ", i));
  }
  for (size_t i = 0; i < expected.variables.size(); ++i) {
    ExpectSameTensor(expected.variables[i], got.variables[i], tolerance, StrCat(where, ", variable ", i));
  }
}

void BothDevices::ExpectSameError(const OpCall& call, const std::string& text) {
  const OpResult expected = OnCpu(call);
  const OpResult got = OnGpu(call);
  const std::string where = Describe(call);
  EXPECT_FALSE(expected.status.ok()) << where;
  EXPECT_EQ(got.status.code(), expected.status.code()) << where;
  EXPECT_EQ(FirstLine(got.status.message()), FirstLine(expected.status.message())) << where;
  EXPECT_NE(got.status.message().find(text), std::string::npos) << where << ": " << got.status.message();
  for (size_t i = 0; i < call.variables.size(); ++i) {
    ExpectSameTensor(call.variables[i], got.variables[i], 0, StrCat(where, ", variable ", i));
  }
}

}  // namespace cohort::cuda
