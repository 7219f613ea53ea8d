#include "cohort/runtime/call_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/random.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string At(int line) { return StrCat(", made at runtime/call_sites_test.cc:", line); }

class CallSitesTest : public ::testing::Test {
 protected:
  CallSitesTest() { testing::RegisterForDeviceKinds(); }
  // The message of the error that a step ends with.
  std::string Failure(const FeedList& feeds, Output fetch) {
    Session session(graph_);
    try {
      session.Run(feeds, {fetch});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  Graph graph_;
};

TEST_F(CallSitesTest, MessagesWithoutNodesStayAsTheyAre) {
  for (const std::string message :
       {"", "plain", "[[", "[[x]]", "[[Op node 'no", "[[Op node 'none' on cpu, inputs: ]]"}) {
    EXPECT_EQ(WithCallSites(graph_, message), message);
  }
}

TEST_F(CallSitesTest, EachDescriptionGetsTheLineOfItsNode) {
  ops::Placeholder(graph_, DType::kFloat32, Shape{2}, "x");
  const int line = __LINE__ - 1;
  EXPECT_EQ(
      WithCallSites(graph_, "a [[P node 'x' on d, inputs: float32[2,3]]] b [[P node 'x' on d, inputs: ]]"),
      StrCat("a [[P node 'x' on d, inputs: float32[2,3]]]", At(line), " b [[P node 'x' on d, inputs: ]]", At(line)));
}

TEST_F(CallSitesTest, AFailingStepNamesTheLineOfTheNode) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{2, 2});
  const Output i = ops::Placeholder(graph_, DType::kInt32, Shape{1});
  const Output row = ops::Gather(x, i);
  const int line = __LINE__ - 1;
  const FeedList feeds = {{x, Tensor::Zeros(DType::kFloat32, Shape{2, 2})}, {i, Tensor::Vector<int32_t>({7})}};
  EXPECT_THAT(Failure(feeds, row), HasSubstr("]]" + At(line)));
  // A limit makes the step run on the device's thread.
  Session session(graph_);
  try {
    session.Run(feeds, {row}, {}, {.timeout = std::chrono::minutes(1)});
    ADD_FAILURE();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("]]" + At(line)));
  }
  // As do asynchronous runs.
  std::promise<std::string> told;
  session.RunAsync({feeds, {row}, {}, {}},
                   [&](const Status& status, const RunResults&) { told.set_value(status.message()); });
  EXPECT_THAT(told.get_future().get(), HasSubstr("]]" + At(line)));
}

TEST_F(CallSitesTest, OperatorsAndVariablesHaveLines) {
  const Output x = ops::Placeholder(graph_, DType::kInt32, Shape{1});
  const Output quotient = 1 / x;
  EXPECT_THAT(Failure({{x, Tensor::Vector<int32_t>({0})}}, quotient), HasSubstr(At(__LINE__ - 1)));
  const ops::Variable w(graph_, Tensor::Scalar(1.0f), {.name = "w"});
  EXPECT_THAT(Failure({}, w), HasSubstr(At(__LINE__ - 1)));  // it has no value yet
  const Output sum = -(x + x) - x;
  EXPECT_EQ(sum.node->site().line, __LINE__ - 1);
  EXPECT_EQ(sum.node->input(0).node->site().line, __LINE__ - 2);
}

TEST_F(CallSitesTest, GradientsHaveTheLineOfTheNodeThatTheyAreOf) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{2});
  const Output y = ops::Square(x);
  const int line = __LINE__ - 1;
  const auto gradients = Gradients({ops::Sum(y)}, {x});
  EXPECT_EQ(ToDense(gradients[0]).node->site().line, line);
}

TEST_F(CallSitesTest, PartsOfACompositeHaveTheLineOfItsCall) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{2});
  const int before = graph_.num_nodes();
  ops::ClipByNorm(x, 1.0f);
  const int line = __LINE__ - 1;
  const std::vector<Node*> nodes = graph_.nodes();
  ASSERT_GT(graph_.num_nodes(), before + 3);
  for (size_t i = static_cast<size_t>(before); i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i]->site().line, line) << nodes[i]->Describe();
  }
}

TEST_F(CallSitesTest, NodesOfFunctionsAndTheirCallersHaveLines) {
  const Output x = ops::Placeholder(graph_, DType::kInt32, Shape{1});
  int body_line = 0;
  const auto body = [&body_line](Graph&, const std::vector<Output>& args) {
    body_line = __LINE__ + 1;
    return std::vector<Output>{ops::FloorDiv(1, args[0])};
  };
  const std::vector<Output> results = ops::Call(graph_, {x}, body);
  const int line = __LINE__ - 1;
  EXPECT_THAT(Failure({{x, Tensor::Vector<int32_t>({0})}}, results[0]),
              AllOf(HasSubstr("]]" + At(body_line)), HasSubstr("called by"), HasSubstr(At(line))));
}

}  // namespace
}  // namespace cohort
