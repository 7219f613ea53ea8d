// Cases of ops that call functions, and of lists of tensors. Results are checked against TensorFlow, which runs the
// same functions. Helpers that build bodies come first. Then come the cases of calls, branches, loops and lists.
#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/join.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/state.h"
#include "cohort/ops/tensor_list.h"
#include "cohort/ops/unary.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

Tensor Truth(bool value) { return Flags({value}, Shape()); }
Tensor Int(int32_t value) { return Tensor::Scalar(value); }

// Returns x * y + sin(x), and x.
Outputs Polynomial(Graph&, const Outputs& in) { return {in[0] * in[1] + ops::Sin(in[0]), in[0]}; }
// Adds a node that is stateful but has no effect on values.
Output Stateful(Output x) { return ops::Print(x, {}, "", 0); }

// Builds the gradient of the first output by input 0, so that the gradient check sees the second derivative.
OpCase::Build SlopeOf(const OpCase::Build& build) {
  return [build](Graph& graph, const Outputs& in) {
    return Outputs{ToDense(Gradients({build(graph, in)[0]}, {in[0]})[0])};
  };
}

void AddCallCases(std::vector<OpCase>& cases) {
  const std::vector<Tensor> matrices = {Scatter({3, 2}), Scatter({3, 2}, -2, 2, 5)};
  const auto call = [](Graph& graph, const Outputs& in) { return ops::Call(graph, in, Polynomial); };
  cases.push_back({"PartitionedCall", "values", matrices, call, {0, 1}});
  cases.push_back({"PartitionedCall", "second_derivative", matrices, SlopeOf(call), {0, 1}});
  cases.push_back({"PartitionedCall", "broadcast", {Scatter({3, 2}), Scatter({2}, 1, 2)}, call, {0, 1}});
  cases.push_back(
      {"PartitionedCall", "integers", {AsType(Ramp({4}, -9, 9), DType::kInt32)}, [](Graph& graph, const Outputs& in) {
         return ops::Call(graph, in, [](Graph&, const Outputs& x) { return Outputs{x[0] * x[0]}; });
       }});
  cases.push_back({"PartitionedCall",
                   "captures",
                   matrices,
                   [](Graph& graph, const Outputs& in) {
                     return ops::Call(graph, {in[0]}, [&](Graph&, const Outputs& x) {
                       return Outputs{in[1] * x[0] + in[1], in[1], x[0] * 2.0f};
                     });
                   },
                   {0, 1}});
  cases.push_back({"PartitionedCall",
                   "twice",
                   matrices,
                   [](Graph& graph, const Outputs& in) {
                     const auto function = std::make_shared<const Function>(
                         "shared", std::vector<FunctionArg>(2, {DType::kFloat64}), Polynomial);
                     const Outputs first = ops::Call(graph, function, in);
                     return ops::Call(graph, function, {first[0], in[1]});
                   },
                   {0, 1}});
  cases.push_back({"PartitionedCall",
                   "nested",
                   matrices,
                   [](Graph& graph, const Outputs& in) {
                     return ops::Call(graph, in, [](Graph& g, const Outputs& x) {
                       const Outputs y = ops::Call(g, x, Polynomial);
                       return Outputs{ops::Exp(y[0]) * x[1]};
                     });
                   },
                   {0, 1}});
  cases.push_back({"StatefulPartitionedCall",
                   "values",
                   matrices,
                   [](Graph& graph, const Outputs& in) {
                     return ops::Call(graph, in, [](Graph& g, const Outputs& x) {
                       return Outputs{Polynomial(g, {Stateful(x[0]), x[1]})[0]};
                     });
                   },
                   {0, 1}});
}

void AddIfCases(std::vector<OpCase>& cases) {
  const auto branch = [](Graph&, const Outputs& in) {
    return ops::If(in[0], {in[1], in[2]}, Polynomial, [](Graph&, const Outputs& x) {
      return Outputs{ops::Tanh(x[0]) - x[1] * x[1], x[1]};
    });
  };
  for (const bool which : {true, false}) {
    const std::string label = which ? "true" : "false";
    const std::vector<Tensor> inputs = {Truth(which), Scatter({2, 3}), Scatter({2, 3}, -2, 2, 5)};
    cases.push_back({"StatelessIf", label, inputs, branch, {1, 2}});
    cases.push_back({"StatelessIf",
                     "second_derivative_" + label,
                     inputs,
                     [branch](Graph& graph, const Outputs& in) {
                       return Outputs{ToDense(Gradients({branch(graph, in)[0]}, {in[1]})[0])};
                     },
                     {1, 2}});
    cases.push_back({"StatelessIf",
                     "one_sided_" + label,
                     inputs,
                     [](Graph&, const Outputs& in) {
                       return ops::If(
                           in[0], {}, [&](Graph&, const Outputs&) { return Outputs{in[1] * 3.0f}; },
                           [&](Graph& g, const Outputs&) {
                             return Outputs{ops::If(
                                 ops::Greater(ops::Sum(in[2]), ops::Const(g, -0.5)), {in[2]},
                                 [](Graph&, const Outputs& x) { return Outputs{ops::Exp(x[0])}; },
                                 [](Graph&, const Outputs& x) { return Outputs{x[0] * x[0] * x[0]}; })};
                           });
                     },
                     {1, 2}});
    cases.push_back({"If",
                     label,
                     inputs,
                     [](Graph&, const Outputs& in) {
                       return ops::If(in[0], {in[1], in[2]}, Polynomial, [](Graph&, const Outputs& x) {
                         return Outputs{ops::Exp(Stateful(x[0])), x[1] * x[0]};
                       });
                     },
                     {1, 2}});
  }
  const auto sign = [](Graph&, const Outputs& in) {
    return ops::If(
        in[0], {in[1]}, [](Graph&, const Outputs& x) { return x; },
        [](Graph&, const Outputs& x) { return Outputs{ops::Neg(x[0])}; });
  };
  cases.push_back({"StatelessIf", "number", {Int(3), Ramp({2})}, sign});
  cases.push_back({"StatelessIf", "zero", {Int(0), Ramp({2})}, sign});
  cases.push_back({"StatelessIf", "elements", {Flags({false, false}), Ramp({2})}, sign});
  cases.push_back({"StatelessIf", "no_elements", {Flags({}), Ramp({2})}, sign});
}

// Iterates x <- sin(x) * y while i < in[0].
Outputs Iterate(const Outputs& in, bool stateful = false) {
  const Outputs last = ops::While(
      {ops::ZerosLike(in[0]), in[1]}, [&](Graph&, const Outputs& v) { return Outputs{ops::Less(v[0], in[0])}; },
      [&](Graph& g, const Outputs& v) {
        const Output x = stateful ? Stateful(v[1]) : v[1];
        return Outputs{v[0] + ops::Const(g, 1), ops::Sin(x) * in[2]};
      });
  return {last[1]};
}

void AddLoopCases(std::vector<OpCase>& cases) {
  const auto inputs = [](int32_t times) {
    return std::vector<Tensor>{Int(times), Scatter({2, 3}), Scatter({2, 3}, 0.5, 2, 5)};
  };
  for (const int32_t times : {0, 1, 4}) {
    cases.push_back({"StatelessWhile",
                     "times_" + std::to_string(times),
                     inputs(times),
                     [](Graph&, const Outputs& in) { return Iterate(in); },
                     {1, 2}});
  }
  cases.push_back(
      {"While", "stateful", inputs(3), [](Graph&, const Outputs& in) { return Iterate(in, true); }, {1, 2}});
  cases.push_back({"StatelessWhile", "gradient", inputs(3), [](Graph&, const Outputs& in) {
                     return Outputs{ToDense(Gradients({Iterate(in)[0]}, {in[1]})[0])};
                   }});
  // The number of iterations depends on the values.
  cases.push_back(
      {"StatelessWhile",
       "until",
       {Ramp({2, 2}, 0.5, 1)},
       [](Graph&, const Outputs& in) {
         return ops::While(
             {in[0]},
             [](Graph& g, const Outputs& v) { return Outputs{ops::Less(ops::Sum(v[0]), ops::Const(g, 40.0))}; },
             [](Graph&, const Outputs& v) { return Outputs{v[0] * v[0] + v[0]}; });
       },
       {0}});
  cases.push_back({"StatelessWhile",
                   "limited",
                   {Ramp({3}, 0.5, 1)},
                   [](Graph&, const Outputs& in) {
                     ops::WhileOptions options;
                     options.maximum_iterations = 3;
                     return ops::While(
                         {in[0]}, [](Graph& g, const Outputs&) { return Outputs{ops::Const(g, true)}; },
                         [](Graph&, const Outputs& v) { return Outputs{v[0] * v[0]}; }, options);
                   },
                   {0}});
}

void AddRecurrentLoopCases(std::vector<OpCase>& cases) {
  // There are two variables. The first does not reach the result. The body has matrix products.
  cases.push_back({"StatelessWhile",
                   "recurrent",
                   {Scatter({2, 3}), Scatter({3, 3}, -1, 1, 9)},
                   [](Graph& graph, const Outputs& in) {
                     ops::WhileOptions options;
                     options.maximum_iterations = 3;
                     const Outputs last = ops::While(
                         {ops::Const(graph, 1.0), in[0]},
                         [](Graph& g, const Outputs&) { return Outputs{ops::Const(g, true)}; },
                         [&](Graph&, const Outputs& v) {
                           return Outputs{v[0] * 2.0f, ops::Tanh(ops::MatMul(v[1], in[1]))};
                         },
                         options);
                     return Outputs{last[1]};
                   },
                   {0, 1}});
}

void AddNestedLoopCases(std::vector<OpCase>& cases) {
  cases.push_back(
      {"StatelessWhile",
       "nested",
       {Ramp({2}, 0.2, 0.9), Ramp({2}, 0.5, 1.5)},
       [](Graph&, const Outputs& in) {
         ops::WhileOptions twice;
         twice.maximum_iterations = 2;
         const auto always = [](Graph& g, const Outputs&) { return Outputs{ops::Const(g, true)}; };
         return ops::While(
             {in[0]}, always,
             [&](Graph&, const Outputs& outer) {
               const Outputs inner = ops::While(
                   {outer[0]},
                   [](Graph& g, const Outputs& v) { return Outputs{ops::Less(ops::Sum(v[0]), ops::Const(g, 3.0))}; },
                   [&](Graph&, const Outputs& v) { return Outputs{ops::Exp(v[0]) * in[1]}; });
               return Outputs{ops::Sin(inner[0])};
             },
             twice);
       },
       {0, 1}});
  cases.push_back({"StatelessWhile",
                   "branches",
                   {Ramp({2}, 0.2, 0.9)},
                   [](Graph& graph, const Outputs& in) {
                     const Outputs last = ops::While(
                         {ops::Const(graph, 0), in[0]},
                         [](Graph& g, const Outputs& v) { return Outputs{ops::Less(v[0], ops::Const(g, 4))}; },
                         [](Graph& g, const Outputs& v) {
                           const Output odd = ops::Equal(ops::FloorMod(v[0], ops::Const(g, 2)), ops::Const(g, 1));
                           return Outputs{
                               v[0] + ops::Const(g, 1),
                               ops::If(
                                   odd, {v[1]}, [](Graph&, const Outputs& x) { return Outputs{x[0] * x[0]}; },
                                   [](Graph&, const Outputs& x) { return Outputs{ops::Exp(x[0])}; })[0]};
                         });
                     return Outputs{last[1]};
                   },
                   {0}});
  // The value grows by one row in each iteration.
  cases.push_back({"StatelessWhile",
                   "growing",
                   {Ramp({1, 2}, 0.2, 0.9)},
                   [](Graph&, const Outputs& in) {
                     ops::WhileOptions options;
                     options.maximum_iterations = 3;
                     options.shape_invariants = {Shape{-1, 2}};
                     return ops::While(
                         {in[0]}, [](Graph& g, const Outputs&) { return Outputs{ops::Const(g, true)}; },
                         [&](Graph&, const Outputs& v) {
                           return Outputs{ops::Concat({v[0] * v[0], in[0]}, 0)};
                         },
                         options);
                   },
                   {0}});
  cases.back().known_shapes_only = true;
}

void AddListCases(std::vector<OpCase>& cases) {
  const auto last_first = [](Graph& graph, const Outputs& in) {
    Output list = ops::EmptyTensorList(graph, in[0].dtype(), in[0].shape());
    for (const Output& value : in) list = ops::TensorListPushBack(list, value * value);
    const ops::PoppedTensor last = ops::TensorListPopBack(list, in[1].dtype(), in[1].shape());
    const ops::PoppedTensor first = ops::TensorListPopBack(last.list, in[0].dtype(), in[0].shape());
    return Outputs{first.tensor * last.tensor, first.tensor};
  };
  for (const char* op : {"EmptyTensorList", "TensorListPushBack", "TensorListPopBack"}) {
    cases.push_back({op, "two", {Scatter({2, 2}), Scatter({2, 2}, 1, 2, 3)}, last_first, {0, 1}});
  }
  cases.push_back({"TensorListPopBack",
                   "unused",
                   {Scatter({2, 2}), Scatter({2, 2}, 1, 2, 3)},
                   [last_first](Graph& graph, const Outputs& in) { return Outputs{last_first(graph, in)[1]}; },
                   {0}});
}

}  // namespace

void AddControlFlowCases(std::vector<OpCase>& cases) {
  AddCallCases(cases);
  AddIfCases(cases);
  AddLoopCases(cases);
  AddRecurrentLoopCases(cases);
  AddNestedLoopCases(cases);
  AddListCases(cases);
}

}  // namespace cohort::testing
