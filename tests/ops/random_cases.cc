// Cases of random ops. With seeds they give TensorFlow's numbers. Each case has a new session, so that stateful ops
// begin anew.
#include <string>

#include "cohort/ops/constant.h"
#include "cohort/ops/random.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

Tensor Dims() { return Tensor::Vector(std::vector<int32_t>{3, 7}); }

void AddFloats(std::vector<OpCase>& cases, const std::string& op, bool stateless) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    const OpCase::Build build = [op, stateless, dtype](Graph& graph, const Outputs& in) {
      NodeBuilder builder = graph.Op(op);
      builder.Input(in[0]).Attr("dtype", dtype);
      if (stateless) {
        builder.Input(in[1]);
      } else {
        builder.Attr("seed", 13).Attr("seed2", 17);
      }
      return Outputs{builder.Finish1()};
    };
    std::vector<Tensor> inputs = {Dims()};
    if (stateless) inputs.push_back(Tensor::Vector(std::vector<int64_t>{int64_t{1} << 40, -3}));
    cases.push_back({op, std::string(DTypeName(dtype)), inputs, build});
  }
}

void AddInts(std::vector<OpCase>& cases) {
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    const std::string label(DTypeName(dtype));
    const Tensor low = ops::NumberTensor(dtype, -5);
    const Tensor high = ops::NumberTensor(dtype, 1000);
    const Tensor seed = Tensor::Vector(std::vector<int32_t>{-1, 2});
    cases.push_back({"StatelessRandomUniformInt", label, {Dims(), seed, low, high}, [](Graph&, const Outputs& in) {
                       return Outputs{ops::StatelessRandomUniformInt(in[0], in[1], in[2], in[3])};
                     }});
    cases.push_back({"StatelessRandomUniformFullInt", label, {Dims(), seed}, [dtype](Graph&, const Outputs& in) {
                       return Outputs{ops::StatelessRandomUniformFullInt(in[0], in[1], dtype)};
                     }});
    cases.push_back({"RandomUniformInt", label, {Dims(), low, high}, [](Graph&, const Outputs& in) {
                       return Outputs{ops::RandomUniformInt(in[0], in[1], in[2], 5)};
                     }});
  }
}

}  // namespace

void AddRandomCases(std::vector<OpCase>& cases) {
  for (const char* op : {"StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"}) {
    AddFloats(cases, op, true);
  }
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) AddFloats(cases, op, false);
  AddInts(cases);
  const OpCase::Build shuffle = [](Graph&, const Outputs& in) { return Outputs{ops::RandomShuffle(in[0], 3)}; };
  cases.push_back({"RandomShuffle", "vector", {Ramp({11})}, shuffle});
  cases.push_back({"RandomShuffle", "rows", {AsType(Ramp({9, 2}, 0, 17), DType::kInt32)}, shuffle});
  cases.push_back({"RandomShuffle", "one", {Ramp({1, 3})}, shuffle});
  cases.push_back({"RandomShuffle", "scalar", {Tensor::Scalar(4.0)}, shuffle});
}

}  // namespace cohort::testing
