// Ops that call functions, in sessions on each kind of device.
#include "cohort/ops/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/graph_def.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/join.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/state.h"
#include "cohort/ops/tensor_list.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Outputs = std::vector<Output>;

const bool kRegistered = testing::RegisterForDeviceKinds();

Outputs Always(Graph& g, const Outputs&) { return {ops::Const(g, true)}; }
FunctionBody Below(int32_t limit) {
  return [limit](Graph& g, const Outputs& v) { return Outputs{ops::Less(v[0], ops::Const(g, limit))}; };
}
Output Next(Graph& g, const Output& counter) { return counter + ops::Const(g, 1); }

class ControlFlowTest : public testing::DeviceKindTest {
 protected:
  explicit ControlFlowTest() : on_(device()), g_(on_.graph) {}
  std::string MessageOf(Session& session, Output fetch) {
    try {
      session.Run(fetch);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  testing::GraphOnDevice on_;
  Graph& g_;
};
INSTANTIATE_TEST_SUITE_P(Devices, ControlFlowTest, testing::AllDeviceKinds(), testing::DeviceKindName);

TEST_P(ControlFlowTest, OneBranchRuns) {
  const ops::Variable count(g_, Tensor::Scalar(0.0f), {"count"});
  const Output which = ops::Placeholder(g_, DType::kBool, Shape(), "which");
  const auto add = [&](float amount) {
    return [amount](Graph& body, const Outputs& x) {
      const Node* change = ops::AssignAddVariableOp(ops::Identity(x[1]), ops::Const(body, amount));
      const ControlDependencies after(body, {const_cast<Node*>(change)});
      return Outputs{ops::Identity(x[0]) * amount};
    };
  };
  const Output y = ops::If(which, {ops::Const(g_, std::vector<float>{1, 2}), count.handle()}, add(2), add(10))[0];
  EXPECT_EQ(y.node->op_name(), "If");
  EXPECT_EQ(y.shape(), Shape{2});
  Node* init = ops::GlobalVariablesInitializer(g_);
  Session session(g_, "", config());
  session.Run({}, {}, {init});
  EXPECT_THAT(session.Run({{which, Tensor::Scalar(true)}}, {y})[0].ToVector<float>(), ElementsAre(2, 4));
  EXPECT_EQ(session.Run(count.value()).scalar<float>(), 2);
  EXPECT_THAT(session.Run({{which, Tensor::Scalar(false)}}, {y})[0].ToVector<float>(), ElementsAre(10, 20));
  EXPECT_EQ(session.Run(count.value()).scalar<float>(), 12);
}

TEST_P(ControlFlowTest, ALoopChangesVariables) {
  const ops::Variable sum(g_, Tensor::Scalar(0), {"sum"});
  const Outputs last = ops::While({ops::Const(g_, 0)}, Below(10), [&](Graph& g, const Outputs& v) {
    ops::AssignAddVariableOp(sum.handle(), v[0]);
    return Outputs{Next(g, v[0])};
  });
  EXPECT_EQ(last[0].node->op_name(), "While");
  Node* init = ops::GlobalVariablesInitializer(g_);
  Session session(g_, "", config());
  session.Run({}, {}, {init});
  EXPECT_EQ(session.Run(last[0]).scalar<int32_t>(), 10);
  EXPECT_EQ(session.Run(sum.value()).scalar<int32_t>(), 45);
}

TEST_P(ControlFlowTest, ALongLoopNeedsNoStack) {
  const int32_t times = is_cpu() ? 100000 : 50;
  const Output last = ops::While({ops::Const(g_, 0)}, Below(times),
                                 [&](Graph& g, const Outputs& v) { return Outputs{Next(g, v[0])}; })[0];
  Session session(g_, "", config());
  EXPECT_EQ(session.Run(last).scalar<int32_t>(), times);
}

TEST_P(ControlFlowTest, ALoopKeepsWhatItsGradientNeeds) {
  const int32_t times = is_cpu() ? 20000 : 20;
  const Output x = ops::Placeholder(g_, DType::kFloat32, Shape{2}, "x");
  const Output y = ops::While({ops::Const(g_, 0), x}, Below(times), [&](Graph& g, const Outputs& v) {
    return Outputs{Next(g, v[0]), v[1] * v[1] * 0.5f + v[1] * 0.5f};
  })[1];
  const Output slope = Gradients({y}, {x})[0].values;
  Session session(g_, "", config());
  const auto result = session.Run({{x, Tensor::Vector<float>({1, 0})}}, {y, slope});
  EXPECT_THAT(result[0].ToVector<float>(), ElementsAre(1, 0));
  EXPECT_EQ(result[1].data<float>()[1], times > 1000 ? 0.0f : std::pow(0.5f, static_cast<float>(times)));
  EXPECT_GT(result[1].data<float>()[0], times > 1000 ? 1e30f : 1000.0f);
}

TEST_P(ControlFlowTest, TrainsThroughALoop) {
  const ops::Variable w(g_, Tensor::Vector<float>({0.5f, -0.5f}), {"w"});
  ops::WhileOptions three;
  three.maximum_iterations = 3;
  const Output y = ops::While(
      {ops::Const(g_, std::vector<float>{1, 1})}, Always,
      [&](Graph&, const Outputs& v) {
        return Outputs{v[0] * ops::ReadVariableOp(w.handle())};  // w^3 in the end
      },
      three)[0];
  const Output slope = ToDense(Gradients({y}, {w.handle()})[0]);
  Node* init = ops::GlobalVariablesInitializer(g_);
  Session session(g_, "", config());
  session.Run({}, {}, {init});
  EXPECT_THAT(session.Run(slope).ToVector<float>(), ElementsAre(0.75f, 0.75f));
}

TEST_P(ControlFlowTest, AnErrorNamesFunctionsAndNode) {
  const Output x = ops::Placeholder(g_, DType::kInt32, Shape(), "x");
  const Output y = ops::While({ops::Const(g_, 0)}, Below(5), [&](Graph&, const Outputs& v) {
    return ops::If(
        ops::Less(v[0], x), {v[0]}, [](Graph& g, const Outputs& in) { return Outputs{Next(g, in[0])}; },
        [&](Graph& g, const Outputs& in) {
          const Node* check = ops::Assert(ops::Const(g, false), {in[0]}, 3, "check");
          const ControlDependencies after(g, {const_cast<Node*>(check)});
          return Outputs{ops::Identity(in[0])};
        });
  })[0];
  Session session(g_, "", config());
  EXPECT_EQ(session.Run({{x, Tensor::Scalar(100)}}, {y})[0].scalar<int32_t>(), 5);
  try {
    session.Run({{x, Tensor::Scalar(3)}}, {y});
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("assertion failed: [int32[] [3]]"), HasSubstr("Assert node 'check'"),
                                    HasSubstr("in function 'cond_false', called by If node 'cond'"),
                                    HasSubstr("in function 'while_body', called by While node 'while'")));
  }
  EXPECT_EQ(session.Run({{x, Tensor::Scalar(100)}}, {y})[0].scalar<int32_t>(), 5);
}

TEST_P(ControlFlowTest, AnEndlessLoopEndsWithItsStep) {
  const Output y =
      ops::While({ops::Const(g_, 0)}, Always, [](Graph& g, const Outputs& v) { return Outputs{Next(g, v[0])}; })[0];
  Session session(g_, "", config());
  RunOptions options;
  options.timeout = std::chrono::milliseconds(100);
  EXPECT_THROW(session.Run({}, {y}, {}, options), DeadlineExceededError);
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    session.Close();
  });
  EXPECT_THROW(session.Run(y), CancelledError);
  closer.join();
}

// A checkpoint closes the gate while loops that change variables run.
TEST_P(ControlFlowTest, LoopsAndTheUpdateGateDoNotWaitForEachOther) {
  const ops::Variable a(g_, Tensor::Scalar(0), {"a"});
  const ops::Variable b(g_, Tensor::Scalar(0), {"b"});
  Node* first = a.AssignAdd(ops::Const(g_, 1));
  const ControlDependencies after(g_, {first});
  const Output last = ops::While({ops::Const(g_, 0)}, Below(5), [&](Graph& g, const Outputs& v) {
    ops::AssignAddVariableOp(b.handle(), ops::Const(g, 1));
    return Outputs{Next(g, v[0])};
  })[0];
  Node* init;
  {
    const ControlDependencies none(g_, nullptr);
    init = ops::GlobalVariablesInitializer(g_);
  }
  const auto device_set = config();
  Session session(g_, "", device_set);
  session.Run({}, {}, {init});
  const int steps = is_cpu() ? 200 : 10;
  std::thread other([&] {
    for (int i = 0; i < steps; ++i) session.Run(last);
  });
  for (int i = 0; i < steps; ++i) session.Run({}, {}, {first});
  other.join();
  EXPECT_EQ(session.Run(a.value()).scalar<int32_t>(), 2 * steps);
  EXPECT_EQ(session.Run(b.value()).scalar<int32_t>(), 5 * steps);
}

TEST_P(ControlFlowTest, ValuesOfTheGraphAroundAreCaptured) {
  const Output x = ops::Placeholder(g_, DType::kFloat32, Shape{2}, "x");
  const Output outer = x * 10.0f;
  const Output y = ops::Call(g_, {x}, [&](Graph& body, const Outputs& in) {
    const Outputs inner = ops::Call(body, {in[0]}, [&](Graph&, const Outputs& deep) {
      return Outputs{outer + deep[0], outer};
    });
    return Outputs{inner[0] - outer * 0.5f};
  })[0];
  Session session(g_, "", config());
  EXPECT_THAT(session.Run({{x, Tensor::Vector<float>({1, 2})}}, {y})[0].ToVector<float>(), ElementsAre(6, 12));
}

TEST_P(ControlFlowTest, ListsStayOnTheDevice) {
  const Output x = ops::Placeholder(g_, DType::kFloat32, Shape{2}, "x");
  Output list = ops::EmptyTensorList(g_, DType::kFloat32, Shape{2});
  for (int i = 0; i < 3; ++i) list = ops::TensorListPushBack(list, x * static_cast<float>(i));
  const auto popped = ops::TensorListPopBack(list, DType::kFloat32, Shape{2});
  const auto empty = ops::TensorListPopBack(ops::EmptyTensorList(g_, DType::kFloat32, Shape{2}), DType::kFloat32);
  Session session(g_, "", config());
  EXPECT_THAT(session.Run({{x, Tensor::Vector<float>({1, 2})}}, {popped.tensor})[0].ToVector<float>(),
              ElementsAre(2, 4));
  EXPECT_THAT(MessageOf(session, empty.tensor), HasSubstr("the list is empty"));
  EXPECT_THAT(MessageOf(session, list), HasSubstr("cannot be fetched"));
}

TEST_P(ControlFlowTest, WhatCannotBeCompiledIsNamed) {
  g_.DefineFunction("f", {{DType::kFloat32, Shape(), "x"}}, [](Graph& body, const Outputs& x) {
    Node* again = body.Op("PartitionedCall")
                      .Inputs(x)
                      .Attr("f", FunctionName{"f"})
                      .Attr("Tout", std::vector<DType>{DType::kFloat32})
                      .Finish();
    return Outputs{again->output(0)};
  });
  const Outputs recursive = ops::Call(g_, g_.FindFunction("f"), {ops::Const(g_, 1.0f)});
  Node* missing = g_.Op("PartitionedCall")
                      .Inputs({ops::Const(g_, 1.0f)})
                      .Attr("f", FunctionName{"nowhere"})
                      .Attr("Tout", std::vector<DType>{DType::kFloat32})
                      .Finish();
  const Outputs elsewhere = ops::Call(g_, {ops::Const(g_, 1.0f)}, [](Graph& body, const Outputs& x) {
    const DeviceScope other(body, "/device:GPU:7");
    return Outputs{ops::Square(x[0])};
  });
  Session session(g_, "", config());
  EXPECT_THAT(MessageOf(session, recursive[0]), HasSubstr("'f' calls itself"));
  EXPECT_THAT(MessageOf(session, missing->output(0)), HasSubstr("calls the function 'nowhere'"));
  EXPECT_THAT(MessageOf(session, elsewhere[0]), AllOf(HasSubstr("asks for /device:GPU:7"), HasSubstr("Square")));
}

TEST_P(ControlFlowTest, ConcurrentStepsShareABody) {
  const Output x = ops::Placeholder(g_, DType::kInt32, Shape(), "x");
  const Output y = ops::While({ops::Const(g_, 0), x}, Below(20), [](Graph& g, const Outputs& v) {
    return Outputs{Next(g, v[0]), v[1] + v[1] / ops::Const(g, 2)};
  })[1];
  Session session(g_, "", config());
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      int expected = t + 2;
      for (int i = 0; i < 20; ++i) expected += expected / 2;
      for (int i = 0; i < (is_cpu() ? 50 : 2); ++i) {
        if (session.Run({{x, Tensor::Scalar(t + 2)}}, {y})[0].scalar<int32_t>() != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ControlFlowGraphTest, MistakesAreToldWhereTheyAreMade) {
  Graph g;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{2}, "x");
  const Output flag = ops::Const(g, true);
  const auto message = [](const std::function<void()>& build) -> std::string {
    try {
      build();
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto same = [](Graph&, const Outputs& v) { return v; };
  const auto two = [](Graph&, const Outputs& v) { return Outputs{v[0], v[0]}; };
  const auto as_int = [](Graph&, const Outputs& v) { return Outputs{ops::Cast(v[0], DType::kInt32)}; };
  EXPECT_THAT(message([&] { ops::If(flag, {x}, same, two); }), HasSubstr("the same dtypes from both branches"));
  EXPECT_THAT(message([&] { ops::If(flag, {x}, same, as_int); }), HasSubstr("[float32] and [int32]"));
  EXPECT_THAT(message([&] { ops::While({x}, same, same); }), HasSubstr("expected one bool scalar of the condition"));
  EXPECT_THAT(message([&] { ops::While({x}, Always, two); }), HasSubstr("has 2 results for 1 loop variables"));
  EXPECT_THAT(message([&] { ops::While({x}, Always, as_int); }), HasSubstr("is float32; the body makes int32"));
  EXPECT_THAT(message([&] {
                ops::While({x}, Always, [](Graph&, const Outputs& v) { return Outputs{ops::Concat({v[0], v[0]}, 0)}; });
              }),
              AllOf(HasSubstr("enters with shape [2], but has shape [4]"), HasSubstr("shape_invariants")));
  EXPECT_THAT(message([&] {
                ops::WhileOptions options;
                options.shape_invariants = {Shape{3}};
                ops::While({x}, Always, same, options);
              }),
              HasSubstr("does not hold for loop variable 0"));
  Output leaked;
  ops::Call(g, {x}, [&](Graph&, const Outputs& v) {
    leaked = ops::Square(v[0]);
    return Outputs{leaked};
  });
  EXPECT_THAT(message([&] { ops::Add(x, leaked); }), HasSubstr("is of another graph"));
}

TEST(ControlFlowGraphTest, SecondDerivativesOfLoopsAreRefused) {
  Graph g;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{}, "x");
  ops::WhileOptions three;
  three.maximum_iterations = 3;
  const Output y = ops::While(
      {x}, Always, [](Graph&, const Outputs& v) { return Outputs{v[0] * v[0]}; }, three)[0];
  const Output slope = Gradients({y}, {x})[0].values;
  EXPECT_THROW(Gradients({slope}, {x}), UnimplementedError);
}

TEST(ControlFlowGraphTest, TwoGradientsOfOneLoop) {
  Graph g;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{}, "x");
  ops::WhileOptions three;
  three.maximum_iterations = 3;
  const Outputs y = ops::While(
      {x, x}, Always,
      [](Graph&, const Outputs& v) {
        return Outputs{v[0] * v[0], v[1] * 2.0f + v[0]};
      },
      three);
  const Output first = Gradients({y[0]}, {x})[0].values;
  const Output second = Gradients({y[1]}, {x})[0].values;
  Session session(g);
  const auto result = session.Run({{x, Tensor::Scalar(1.0f)}}, {first, second});
  EXPECT_EQ(result[0].scalar<float>(), 8);   // x^8
  EXPECT_EQ(result[1].scalar<float>(), 20);  // 12 x + 2 x^2 + x^4
}

TEST(ControlFlowGraphTest, AFunctionOfItsOwnBringsWhatItCalls) {
  const auto function = std::make_shared<const Function>(
      "absolute", std::vector<FunctionArg>{{DType::kFloat32, Shape{}, "x"}}, [](Graph& body, const Outputs& x) {
        return ops::If(
            ops::Less(x[0], ops::Const(body, 0.0f)), x,
            [](Graph&, const Outputs& z) { return Outputs{ops::Neg(z[0])}; },
            [](Graph&, const Outputs& z) { return z; });
      });
  EXPECT_THROW(SerializeFunction(*function), UnimplementedError);
  for (int i = 0; i < 2; ++i) {  // the gradient that it keeps serves another graph
    Graph g;
    const Output x = ops::Placeholder(g, DType::kFloat32, Shape{}, "x");
    const Output y = ops::Call(g, function, {x})[0];
    const Output slope = Gradients({y}, {x})[0].values;
    Session session(g);
    EXPECT_EQ(session.Run({{x, Tensor::Scalar(-3.0f)}}, {y})[0].scalar<float>(), 3);
    EXPECT_EQ(session.Run({{x, Tensor::Scalar(-3.0f)}}, {slope})[0].scalar<float>(), -1);
  }
}

TEST(ControlFlowGraphTest, TheLibraryTravelsWithTheGraph) {
  Graph g;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{}, "x");
  const Output y = ops::While(
      {x}, [](Graph& b, const Outputs& v) { return Outputs{ops::Less(v[0], ops::Const(b, 100.0f))}; },
      [&](Graph&, const Outputs& v) {
        return ops::If(
            ops::Less(v[0], x), {v[0]}, [](Graph&, const Outputs& z) { return Outputs{z[0] * 2.0f}; },
            [](Graph&, const Outputs& z) { return Outputs{z[0] * 3.0f}; });
      })[0];
  const Output slope = Gradients({y}, {x})[0].values;
  const std::string bytes = SerializeGraphDef(g);
  const std::unique_ptr<Graph> copy = ParseGraphDef(bytes);
  EXPECT_EQ(copy->functions().size(), g.functions().size());
  const std::string again = SerializeGraphDef(*copy);  // in the order of inputs first
  EXPECT_TRUE(SerializeGraphDef(*ParseGraphDef(again)) == again);
  Session session(*copy);
  const auto result = session.Run({{copy->FindOutput("x:0"), Tensor::Scalar(5.0f)}},
                                  {copy->FindOutput(y.name()), copy->FindOutput(slope.name())});
  EXPECT_EQ(result[0].scalar<float>(), 135);
  EXPECT_EQ(result[1].scalar<float>(), 27);
}

}  // namespace
}  // namespace cohort
