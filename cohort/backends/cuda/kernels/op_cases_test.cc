// Runs every case of tests/ops on a GPU, of the fake driver or of a card, and compares with the CPU's kernels: the
// same results, or the same error. Each case runs as it is, and again with its floating-point inputs as other types, as
// far as the CPU's kernels take them. A node without a kernel for GPUs fails its case. Integers, truth values and moved
// elements have to be equal; floating-point numbers may differ by a bit.
#include "tests/ops/op_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <variant>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"
#include "cohort/runtime/session.h"
#include "tests/ops/interpreter.h"

namespace cohort::cuda {
namespace {

using cohort::testing::AllOpCases;
using cohort::testing::AsFloat64;
using cohort::testing::AsType;
using cohort::testing::Interpreter;
using cohort::testing::OpCase;
using ::testing::HasSubstr;

// What a run gave: values, or an error.
using Outcome = std::variant<std::vector<Tensor>, Status>;

// The graph of a case, with its nodes on a device. An empty name leaves them unplaced.
struct PlacedCase {
  PlacedCase(const OpCase& op_case, const std::vector<Tensor>& values, const std::string& device)
      : scope(graph, device) {
    std::vector<Output> inputs;
    for (const Tensor& value : values) {
      inputs.push_back(ops::Placeholder(graph, value.dtype(), value.shape(), "input"));
      feeds.emplace_back(inputs.back(), value);
    }
    outputs = op_case.build(graph, inputs);
  }
  Graph graph;
  DeviceScope scope;
  std::vector<std::pair<Output, Tensor>> feeds;
  std::vector<Output> outputs;
};

Outcome RunOnCpu(const OpCase& op_case, const std::vector<Tensor>& values) {
  const PlacedCase placed(op_case, values, "");
  try {
    return Interpreter().Run(placed.outputs, placed.feeds);
  } catch (const Error& error) {
    return Status(error.code(), error.what());
  }
}

Outcome RunOnGpu(const OpCase& op_case, const std::vector<Tensor>& values) {
  const PlacedCase placed(op_case, values, "/device:GPU:0");
  SessionConfig config;
  config.device_count[kGpu] = 1;
  try {
    Session session(placed.graph, "", config);
    const RunResults results = session.Run(FeedList(placed.feeds.begin(), placed.feeds.end()), placed.outputs);
    return std::vector<Tensor>(results.begin(), results.end());
  } catch (const Error& error) {
    return Status(error.code(), error.what());
  }
}

double ToleranceOf(DType dtype) {
  if (dtype == DType::kFloat64) return 1e-11;
  return dtype == DType::kFloat32 ? 2e-5 : 0.02;
}

void ExpectClose(const Tensor& gpu, const Tensor& cpu) {
  const Tensor got = AsFloat64(gpu), want = AsFloat64(cpu);
  const double tolerance = ToleranceOf(cpu.dtype());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double a = got.data<double>()[i], b = want.data<double>()[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ASSERT_LE(std::abs(a - b), tolerance * std::max(1.0, std::abs(b))) << "element " << i << ": " << a << ", CPU " << b;
  }
}

void ExpectSame(const Tensor& gpu, const Tensor& cpu) {
  ASSERT_EQ(gpu.dtype(), cpu.dtype());
  ASSERT_EQ(gpu.shape(), cpu.shape());
  if (IsFloating(cpu.dtype())) return ExpectClose(gpu, cpu);
  if (cpu.dtype() == DType::kString) {
    for (int64_t i = 0; i < cpu.num_elements(); ++i) {
      ASSERT_EQ(gpu.data<std::string>()[i], cpu.data<std::string>()[i]) << "element " << i;
    }
  } else if (!IsHandle(cpu.dtype())) {
    ASSERT_EQ(gpu.ToString(1000), cpu.ToString(1000));
    ASSERT_EQ(std::memcmp(gpu.raw_data(), cpu.raw_data(), cpu.bytes()), 0);
  }
}

void ExpectSame(const Outcome& gpu, const Outcome& cpu) {
  if (const auto* error = std::get_if<Status>(&cpu)) {
    ASSERT_TRUE(std::holds_alternative<Status>(gpu)) << "the CPU fails: " << error->message();
    const Status& found = std::get<Status>(gpu);
    EXPECT_EQ(found.code(), error->code()) << found.message() << "\nCPU: " << error->message();
    EXPECT_THAT(found.message(), HasSubstr(error->message()));
    return;
  }
  ASSERT_TRUE(std::holds_alternative<std::vector<Tensor>>(gpu)) << std::get<Status>(gpu).message();
  const auto& got = std::get<std::vector<Tensor>>(gpu);
  const auto& want = std::get<std::vector<Tensor>>(cpu);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    SCOPED_TRACE(StrCat("output ", i));
    ExpectSame(got[i], want[i]);
  }
}

// Returns the inputs with float64 turned into `dtype`; for integers the numbers are made larger first, so that few are
// equal.
std::vector<Tensor> InputsAs(const OpCase& op_case, DType dtype) {
  std::vector<Tensor> inputs = op_case.inputs;
  for (Tensor& input : inputs) {
    if (input.dtype() != DType::kFloat64) continue;
    Tensor numbers = input.Clone();
    for (int64_t i = 0; IsInteger(dtype) && i < numbers.num_elements(); ++i) {
      double& number = numbers.data<double>()[i];
      number *= 6;
      if (dtype == DType::kUint8) number = std::abs(number);
    }
    input = AsType(numbers, dtype);
  }
  return inputs;
}

bool HasFloat64(const OpCase& op_case) {
  for (const Tensor& input : op_case.inputs) {
    if (input.dtype() == DType::kFloat64) return true;
  }
  return false;
}

class OpCaseTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpCaseTest() { RegisterGpusForTests(); }
};

TEST_P(OpCaseTest, GivesWhatTheCpuGives) {
  const OpCase& op_case = GetParam();
  ExpectSame(RunOnGpu(op_case, op_case.inputs), RunOnCpu(op_case, op_case.inputs));
}

TEST_P(OpCaseTest, GivesWhatTheCpuGivesForOtherTypes) {
  const OpCase& op_case = GetParam();
  if (!HasFloat64(op_case)) return;
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kInt32, DType::kInt64, DType::kUint8}) {
    SCOPED_TRACE(StrCat("with ", dtype));
    const std::vector<Tensor> inputs = InputsAs(op_case, dtype);
    try {
      const Outcome cpu = RunOnCpu(op_case, inputs);
      const auto* error = std::get_if<Status>(&cpu);
      if (error != nullptr && error->code() != Code::kInvalidArgument) continue;  // the CPU has no such kernel
      ExpectSame(RunOnGpu(op_case, inputs), cpu);
    } catch (const Error&) {
      // The graph of the case cannot be built with this type.
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpCaseTest, ::testing::ValuesIn(AllOpCases()),
                         [](const auto& info) { return cohort::testing::CaseName(info.param); });

}  // namespace
}  // namespace cohort::cuda
