// Steps with updates of rows: with a bad index none of their updates is applied, launched and recorded.
#include <string>
#include <vector>

#include "cohort/backends/cuda/testing/recording_fixture.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"
#include "cohort/ops/variables.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two tables of three rows, a dense variable with two halves that one node updates, and a counter. The updates run in
// the order of the list.
class Tables {
 public:
  Tables(const SessionConfig& config, bool reversed, const std::string& device) : scope_(g, device) {
    i = ops::Placeholder(g, DType::kInt32, Shape{-1}, "i");
    j = ops::Placeholder(g, DType::kInt64, Shape{-1}, "j");
    for (const char* name : {"a", "slot", "b"}) {
      all.emplace_back(g, Tensor::Zeros(DType::kFloat32, Shape{3}), ops::VariableOptions{.name = name});
    }
    all.emplace_back(g, Tensor::Zeros(DType::kFloat32, Shape{3}), ops::VariableOptions{.name = "c"});
    all.emplace_back(g, Tensor::Zeros(DType::kFloat32, Shape{3}), ops::VariableOptions{.name = "d"});
    const Output ones = ops::Const(g, std::vector<float>{1, 1, 1}), one = ops::Const(g, 1.0f);
    const auto sparse = [&] {
      return ops::ResourceSparseApplyMomentum(all[0].handle(), all[1].handle(), one,
                                              ops::Cast(i, DType::kFloat32) * 0.0f + 1.0f, i, one, false, "sparse");
    };
    const auto scatter = [&] { return ops::ResourceScatterAdd(all[2].handle(), j, one, "scatter"); };
    const auto dense = [&] {
      updates.push_back(ops::ResourceApplyGradientDescent(all[3].handle(), one, ones, "dense_c"));
      updates.push_back(ops::ResourceApplyGradientDescent(all[4].handle(), one, ones, "dense_d"));
    };
    if (reversed) {
      updates.push_back(scatter());
      updates.push_back(sparse());
      dense();
    } else {
      dense();
      updates.push_back(sparse());
      updates.push_back(scatter());
    }
    session = std::make_unique<Session>(g, "", config);
    session->Run(ops::GlobalVariablesInitializer(g));
  }
  void Run(std::vector<int32_t> at_i, std::vector<int64_t> at_j) {
    session->Run({{i, Tensor::Vector<int32_t>(at_i)}, {j, Tensor::Vector<int64_t>(at_j)}}, {}, updates);
  }
  std::vector<float> Values() {
    std::vector<float> values;
    for (const ops::Variable& variable : all) {
      for (const float value : session->Run(variable.Read()).ToVector<float>()) values.push_back(value);
    }
    return values;
  }

  Graph g;
  DeviceScope scope_;
  Output i, j;
  std::vector<ops::Variable> all;
  std::vector<Node*> updates;
  std::unique_ptr<Session> session;
};

using BadIndexTest = RecordingTest;

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST_F(BadIndexTest, NoUpdateOfTheStepIsApplied) {
  for (const bool reversed : {false, true}) {
    Tables of_cpu(Config(), reversed, "/device:CPU:0");
    const std::string cpu_i = MessageOf<InvalidArgumentError>([&] { of_cpu.Run({0, 3}, {1}); });
    const std::string cpu_j = MessageOf<InvalidArgumentError>([&] { of_cpu.Run({0, 2}, {1, 1, -1}); });
    for (const bool recorded : {false, true}) {
      config::EnableStepRecording(recorded);
      Tables t(Config(), reversed, "/device:GPU:0");
      const auto expect_nothing_changes = [&] {
        const std::vector<float> before = t.Values();
        const Asked asked = AskedBy([&] {
          EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                        t.Run({0, 3}, {1});
                      }),
                      AllOf(HasSubstr(FirstLine(cpu_i)), HasSubstr("[[ResourceSparseApplyMomentum node 'sparse' on")));
        });
        EXPECT_EQ(t.Values(), before);
        EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                      t.Run({0, 2}, {1, 1, -1});
                    }),
                    AllOf(HasSubstr(FirstLine(cpu_j)), HasSubstr("[[ResourceScatterAdd node 'scatter' on")));
        EXPECT_EQ(t.Values(), before);
        return asked.graphs;
      };
      EXPECT_EQ(expect_nothing_changes(), 0);  // the first step of these shapes
      EXPECT_THAT(t.Values(), Each(0.0f));
      for (int step = 0; step < 3; ++step) t.Run({0, 2}, {1});
      EXPECT_EQ(expect_nothing_changes(), recorded ? 1 : 0);
      t.Run({}, {1, 1});
      t.Run({}, {});
      EXPECT_THAT(t.Values(), ElementsAre(-6, 0, -6, 3, 0, 3, 0, 5, 0, -5, -5, -5, -5, -5, -5));
    }
  }
}

// The update is added before the value that the step fetches, so it would be the first to run.
TEST_F(BadIndexTest, NoUpdateIsAppliedIfAValueThatIsOnlyFetchedIsBad) {
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Graph g;
    const DeviceScope scope(g, "/device:GPU:0");
    const ops::Variable w(g, Tensor::Zeros(DType::kFloat32, Shape{3}), {.name = "w"});
    const Output indices = ops::Placeholder(g, DType::kInt32, Shape{-1}, "i");
    Node* const add = w.AssignAdd(ops::Const(g, std::vector<float>{1, 2, 3}));
    const Output rows = ops::Gather(ops::Const(g, std::vector<float>{5, 6, 7}), indices);
    Session session(g, "", Config());
    session.Run(w.initializer());
    float steps = 0;
    for (const int32_t index : {3, 2, 1, 0, -1, 0}) {
      const auto run = [&] { session.Run({{indices, Tensor::Vector<int32_t>({index})}}, {rows}, {add}); };
      if (index >= 0 && index < 3) {
        run();
        ++steps;
      } else {
        EXPECT_THAT(MessageOf<InvalidArgumentError>(run), HasSubstr("is not in [0, 3)"));
      }
      EXPECT_THAT(session.Run(w.value()).ToVector<float>(), ElementsAre(steps, 2 * steps, 3 * steps));
    }
  }
}

// The variable has no value when the check runs. The update says what is wrong.
TEST_F(BadIndexTest, AVariableWithoutAValueIsNamed) {
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const Output handle = ops::VarHandleOp(g, DType::kFloat32, Shape{3}, "v", "", "v");
  const ops::Variable w(g, Tensor::Zeros(DType::kFloat32, Shape{3}), {.name = "w"});
  const Output indices = ops::Placeholder(g, DType::kInt32, Shape{-1}, "i");
  Node* const scatter = ops::ResourceScatterAdd(handle, indices, ops::Const(g, 1.0f), "scatter");
  Node* const add = w.AssignAdd(ops::Const(g, std::vector<float>{1, 1, 1}));
  Session session(g, "", Config());
  session.Run(w.initializer());
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                session.Run({{indices, Tensor::Vector<int32_t>({7})}}, {}, {scatter, add});
              }),
              AllOf(HasSubstr("uninitialized"), HasSubstr("node 'scatter'")));
}

// The step gives the variable its rows, so only the update itself knows how many there are.
TEST_F(BadIndexTest, RowsOfTheStepItselfAreGood) {
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const Output handle = ops::VarHandleOp(g, DType::kFloat32, Shape{-1}, "v", "", "v");
  const Output value = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "value");
  const Output indices = ops::Placeholder(g, DType::kInt32, Shape{-1}, "i");
  Node* const assign = ops::AssignVariableOp(handle, value, "assign");
  Node* scatter;
  Output read;
  {
    const ControlDependencies after(g, {assign});
    scatter = ops::ResourceScatterAdd(handle, indices, ops::Const(g, 1.0f), "scatter");
    const ControlDependencies last(g, {scatter});
    read = ops::ReadVariableOp(handle);
  }
  Session session(g, "", Config());
  for (const std::vector<float>& rows : {std::vector<float>{1}, {1, 2, 3}, {4, 5, 6, 7, 8}}) {
    const auto last = static_cast<int32_t>(rows.size() - 1);
    const std::vector<float> now =
        session.Run({{value, Tensor::Vector<float>(rows)}, {indices, Tensor::Vector<int32_t>({last})}}, {read})[0]
            .ToVector<float>();
    EXPECT_EQ(now.back(), rows.back() + 1);
  }
}

}  // namespace
}  // namespace cohort::cuda
