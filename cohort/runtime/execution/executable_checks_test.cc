#include "cohort/runtime/execution/executable_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/core/testing/throws.h"
#include "cohort/graph/function.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/register.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

constexpr char kSelf[] = "/job:ps/replica:0/task:0";

class ExecutableChecksTest : public ::testing::Test {
 protected:
  // A signature of two tasks, of which this is number 0: one fed value, one result, a value sent and one received.
  ExecutableChecksTest() {
    RegisterOps();
    spec_.key = {11, 3};
    spec_.tasks = {kSelf, "/job:worker/replica:0/task:0"};
    spec_.edges = {{0, 1, "out:0"}, {1, 0, "in:0"}};
    spec_.num_args = 1;
    spec_.num_rets = 1;
    spec_.partitions.push_back({std::string(kSelf) + "/device:CPU:0", std::make_unique<Graph>()});
    arg_ = graph().Op("_Arg").Attr("T", DType::kFloat32).Attr("index", 0).Finish();
    retval_ = graph().Op("_Retval").Input(arg_->output(0)).Attr("index", 0).Finish();
    send_ = Edge(graph().Op("_Send").Input(arg_->output(0)), 0);
    recv_ = Edge(graph().Op("_Recv").Attr("tensor_type", DType::kFloat32).Attr("shape", Shape{}), 1);
  }

  Graph& graph() { return *spec_.partitions[0].graph; }
  static Node* Edge(NodeBuilder builder, int edge) {
    return builder.Attr("tensor_name", "x:0")
        .Attr("edge", edge)
        .Attr("send_device", kSelf)
        .Attr("recv_device", kSelf)
        .Finish();
  }
  std::string Refused() {
    return MessageOf<InvalidArgumentError>([this] { CheckExecutableSpec(spec_); });
  }

  ExecutableSpec spec_;
  Node* arg_;
  Node* retval_;
  Node* send_;
  Node* recv_;
};

TEST_F(ExecutableChecksTest, WhatAMasterMakesIsAccepted) { EXPECT_NO_THROW(CheckExecutableSpec(spec_)); }

TEST_F(ExecutableChecksTest, AnArgumentBeyondTheFedValues) {
  arg_->SetAttr("index", int64_t{1} << 40);
  EXPECT_THAT(Refused(), ::testing::AllOf(HasSubstr("1099511627776"), HasSubstr("_Arg"), HasSubstr("session 11")));
}

TEST_F(ExecutableChecksTest, AResultBeyondTheResults) {
  retval_->SetAttr("index", int64_t{1});
  EXPECT_THAT(Refused(), HasSubstr("_Retval"));
}

TEST_F(ExecutableChecksTest, AResultThatTwoNodesWrite) {
  graph().Op("_Retval").Input(arg_->output(0)).Attr("index", 0).Finish();
  EXPECT_THAT(Refused(), HasSubstr("a second"));
}

TEST_F(ExecutableChecksTest, AResultThatNoNodeWrites) {
  spec_.num_rets = 2;
  EXPECT_THAT(Refused(), HasSubstr("none for result 1"));
}

TEST_F(ExecutableChecksTest, CountsThatTheGraphCannotExplain) {
  spec_.num_rets = 1 << 24;
  EXPECT_THAT(Refused(), HasSubstr("16777216"));
  spec_.num_rets = 1;
  spec_.num_args = 1 << 24;
  EXPECT_THAT(Refused(), HasSubstr("fed values"));
}

TEST_F(ExecutableChecksTest, EdgesThatAreNotThereOrNotOfThisTask) {
  send_->SetAttr("edge", int64_t{2});
  EXPECT_THAT(Refused(), HasSubstr("below 2"));
  send_->SetAttr("edge", int64_t{1});
  EXPECT_THAT(Refused(), HasSubstr("_Send"));
  send_->SetAttr("edge", int64_t{0});
  recv_->SetAttr("edge", int64_t{0});
  EXPECT_THAT(Refused(), HasSubstr("_Recv"));
  recv_->SetAttr("edge", int64_t{1});
  EXPECT_NO_THROW(CheckExecutableSpec(spec_));
  Edge(graph().Op("_Recv").Attr("tensor_type", DType::kFloat32).Attr("shape", Shape{}), 1);
  EXPECT_THAT(Refused(), HasSubstr("a second"));
}

TEST_F(ExecutableChecksTest, RoutesBetweenTasksThatAreNotListed) {
  spec_.edges[0].dst_task = 2;
  EXPECT_THAT(Refused(), HasSubstr("edge 0"));
}

TEST_F(ExecutableChecksTest, AnArgumentWithTheMarkOfAFunction) {
  arg_->SetAttr("_of_function", true);
  EXPECT_THAT(Refused(), HasSubstr("a function's"));
}

TEST_F(ExecutableChecksTest, AFunctionWithAnArgumentNodeOfItsOwn) {
  graph().DefineFunction("reads", {}, [](Graph& body, const std::vector<Output>&) {
    return std::vector<Output>{body.Op("_Arg").Attr("T", DType::kFloat32).Attr("index", 7).Finish1()};
  });
  EXPECT_THAT(Refused(), HasSubstr("'reads'"));
}

}  // namespace
}  // namespace cohort
