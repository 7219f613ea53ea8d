// Cases of collectives in a group with one member. collective/collective_ops_test.cc tests groups with several members.
#include "cohort/ops/array.h"
#include "cohort/ops/collective.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

// TensorFlow runs them only if the session has a collective leader.
OpCase Alone(std::string op, std::string label, Tensor input, OpCase::Build build) {
  OpCase made = {std::move(op), std::move(label), {std::move(input)}, std::move(build)};
  made.compare_values = false;
  return made;
}

}  // namespace

void AddCollectiveCases(std::vector<OpCase>& cases) {
  for (const char* final_op : {"Id", "Div"}) {
    cases.push_back(Alone("CollectiveReduce", final_op, Ramp({3, 2}), [final_op](Graph&, const Outputs& in) {
      return Outputs{ops::CollectiveReduce(in[0], {}, "Add", final_op)};
    }));
    cases.back().differentiable = {0};
  }
  for (const DType dtype : {DType::kBfloat16, DType::kFloat32, DType::kInt32, DType::kInt64, DType::kUint8}) {
    cases.push_back(Alone("CollectiveReduce", std::string("max_") + std::string(DTypeName(dtype)),
                          AsType(Ramp({5}, 0, 9), dtype),
                          [](Graph&, const Outputs& in) { return Outputs{ops::CollectiveReduce(in[0], {}, "Max")}; }));
  }
  const auto gather = [](Graph&, const Outputs& in) { return Outputs{ops::CollectiveGather(in[0], {})}; };
  cases.push_back(Alone("CollectiveGather", "rows", Ramp({3, 2}), gather));
  cases.push_back(Alone("CollectiveGather", "scalar", Tensor::Scalar(2.5), gather));
  cases.push_back(Alone("CollectiveReduceScatter", "rows", Ramp({3, 2}),
                        [](Graph&, const Outputs& in) { return Outputs{ops::CollectiveReduceScatter(in[0], {})}; }));
  cases.push_back(Alone("CollectiveBcastSend", "bool", Flags({true, false}),
                        [](Graph&, const Outputs& in) { return Outputs{ops::CollectiveBcastSend(in[0], {})}; }));
  // The node is in the graph but does not run, because it has no member to receive from.
  cases.push_back(Alone("CollectiveBcastRecv", "beside", Ramp({2}), [](Graph& graph, const Outputs& in) {
    ops::CollectiveBcastRecv(graph, DType::kFloat32, {2, 3}, {});
    return Outputs{ops::Identity(in[0])};
  }));
  cases.push_back(Alone("CollectiveBarrier", "order", Ramp({2}), [](Graph& graph, const Outputs& in) {
    const ControlDependencies after(graph, {ops::CollectiveBarrier(graph, {})});
    return Outputs{ops::Identity(in[0])};
  }));
}

}  // namespace cohort::testing
