#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/graph.h"
#include "cohort/graph/testing/test_ops.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Scopes : public ::testing::Test {
 protected:
  Node* Add(const std::string& name = "n") { return TestInput(graph_, DType::kFloat32, Shape{2}, name).node; }
  Node* AddOn(const std::string& device) { return graph_.Op("TestInput").Device(device).Finish(); }

  Graph graph_;
};

TEST_F(Scopes, DevicesMergeInnerFirst) {
  EXPECT_EQ(Add()->device(), "");
  DeviceScope outer(graph_, "/job:worker/task:1/gpu:3");
  EXPECT_EQ(Add()->device(), "/job:worker/task:1/device:GPU:3");
  {
    DeviceScope inner(graph_, "/task:2/cpu:0");
    EXPECT_EQ(Add()->device(), "/job:worker/task:2/device:CPU:0");
    EXPECT_EQ(AddOn("/job:ps")->device(), "/job:ps/task:2/device:CPU:0");
    DeviceScope none(graph_, nullptr);
    EXPECT_EQ(Add()->device(), "");
    DeviceScope after(graph_, "/gpu:0");
    EXPECT_EQ(Add()->device(), "/device:GPU:0");
  }
  EXPECT_EQ(Add()->device(), "/job:worker/task:1/device:GPU:3");
  EXPECT_EQ(graph_.Op("TestInput").IgnoreScopes().Finish()->device(), "");
  EXPECT_THROW(DeviceScope(graph_, "/bad:0"), InvalidArgumentError);
  EXPECT_EQ(Add()->device(), "/job:worker/task:1/device:GPU:3");
}

TEST_F(Scopes, DeviceFunctionsSeeTheDraftAndDecide) {
  std::vector<std::string> seen;
  DeviceScope outer(graph_, "/job:worker/task:0");
  DeviceScope chooser(graph_, [&seen](const NodeDraft& draft) {
    seen.push_back(StrCat(draft.op, " ", draft.name, " '", draft.device, "' ", draft.dtype, draft.shape));
    return draft.op == "VarHandleOp" ? std::string("/job:ps/task:3") : draft.device;
  });
  EXPECT_EQ(Add("x")->device(), "/job:worker/task:0");
  EXPECT_EQ(TestVariable(graph_, Shape{4, 5}).node->device(), "/job:ps/task:3");
  DeviceScope inner(graph_, "/cpu:1");
  EXPECT_EQ(Add("y")->device(), "/job:worker/task:0/device:CPU:1");
  EXPECT_THAT(seen, ElementsAre("TestInput x '' float32[2]", "VarHandleOp v '' float32[4,5]",
                                "TestInput y '/device:CPU:1' float32[2]"));
}

TEST_F(Scopes, NamesNestAndStayUnique) {
  NameScope a(graph_, "a");
  EXPECT_EQ(a.prefix(), "a");
  EXPECT_EQ(Add("n")->name(), "a/n");
  EXPECT_EQ(Add("n")->name(), "a/n_1");
  {
    NameScope b(graph_, "b");
    EXPECT_EQ(b.prefix(), "a/b");
    EXPECT_EQ(Add("n")->name(), "a/b/n");
    EXPECT_EQ(graph_.Op("TestInput").ExactName("plain").Finish()->name(), "plain");
    NameScope root(graph_, "");
    EXPECT_EQ(Add("n")->name(), "n");
    NameScope again(graph_, "a/");
    EXPECT_EQ(Add("n")->name(), "a/n_2");
  }
  NameScope b(graph_, "b");
  EXPECT_EQ(b.prefix(), "a/b_1");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { NameScope bad(graph_, "x y"); }), HasSubstr("'x y'"));
  EXPECT_EQ(Add("n")->name(), "a/b_1/n");
}

TEST_F(Scopes, ControlDependenciesAddUp) {
  Node* first = Add();
  Node* second = Add();
  Graph other;
  ControlDependencies outer(graph_, {first});
  EXPECT_THAT(Add()->control_inputs(), ElementsAre(first));
  {
    ControlDependencies inner(graph_, {second, first});
    EXPECT_THAT(Add()->control_inputs(), ElementsAre(second, first));
    ControlDependencies none(graph_, nullptr);
    EXPECT_THAT(Add()->control_inputs(), IsEmpty());
  }
  EXPECT_THAT(graph_.Op("TestInput").Control(second).Finish()->control_inputs(), ElementsAre(second, first));
  EXPECT_THAT(graph_.Op("TestInput").Control(second).IgnoreScopes().Finish()->control_inputs(), ElementsAre(second));
  EXPECT_THROW(ControlDependencies(other, {first}), InvalidArgumentError);
  EXPECT_THROW(ControlDependencies(graph_, {static_cast<Node*>(nullptr)}), InvalidArgumentError);
}

TEST_F(Scopes, ColocationTakesTheDeviceAndIgnoresDeviceScopes) {
  Node* target = AddOn("/job:ps/task:1");
  DeviceScope device(graph_, "/job:worker/gpu:0");
  {
    ColocateWith colocate(graph_, *target);
    Node* beside = Add("beside");
    EXPECT_EQ(beside->device(), "/job:ps/task:1");
    EXPECT_THAT(beside->colocate_with(), ElementsAre(target->name()));
    DeviceScope inner(graph_, "/cpu:0");
    EXPECT_EQ(Add()->device(), "/job:ps/task:1");
    // Beside what stands beside the target: the target is what counts.
    ColocateWith chain(graph_, *beside);
    EXPECT_THAT(Add()->colocate_with(), ElementsAre(target->name()));
    ColocateWith none(graph_, nullptr);
    EXPECT_THAT(Add()->colocate_with(), IsEmpty());
    EXPECT_EQ(Add()->device(), "/job:worker/device:CPU:0");
  }
  EXPECT_EQ(Add()->device(), "/job:worker/device:GPU:0");
  Node* by_name = graph_.Op("TestInput").Colocate(target->name()).Finish();
  EXPECT_EQ(by_name->device(), "/job:ps/task:1");
  EXPECT_THAT(by_name->colocate_with(), ElementsAre(target->name()));
  const std::vector<std::string> classes = {"loc:@" + target->name()};
  Node* by_attr = graph_.Op("TestInput").Attr("_class", classes).Finish();
  EXPECT_THAT(by_attr->colocate_with(), ElementsAre(target->name()));
  EXPECT_FALSE(by_attr->has_attr("_class"));
}

TEST_F(Scopes, VariableCreatorsWrapFromInnerToOuter) {
  std::vector<std::string> calls;
  const VariableMaker maker = [&](const VariableRequest& request) {
    calls.push_back("maker " + request.name);
    VariableInfo info;
    info.name = request.name;
    return graph_.AddVariable(info);
  };
  const auto creator = [&calls](const std::string& tag) {
    return [&calls, tag](const VariableMaker& next, const VariableRequest& request) {
      calls.push_back(tag);
      VariableRequest changed = request;
      changed.name += "/" + tag;
      return next(changed);
    };
  };
  {
    VariableCreatorScope outer(graph_, creator("outer"));
    VariableCreatorScope inner(graph_, creator("inner"));
    VariableRequest request;
    request.name = "v";
    EXPECT_EQ(graph_.CreateVariable(maker, request)->name, "v/inner/outer");
  }
  EXPECT_THAT(calls, ElementsAre("inner", "outer", "maker v/inner/outer"));
  VariableRequest request;
  request.name = "w";
  VariableInfo* w = graph_.CreateVariable(maker, request);
  EXPECT_EQ(graph_.variables().size(), 2u);
  EXPECT_EQ(graph_.variables()[1], w);
}

}  // namespace
}  // namespace cohort
