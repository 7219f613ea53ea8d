// Sessions on GPUs whose optimizers make all their updates in one launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/training.cu.h"
#include "cohort/backends/cuda/testing/session_fixture.h"
#include "cohort/core/str_cat.h"
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

// The options that rules have, each with one of them at most.
constexpr const char* kFlags[] = {"use_nesterov", "update_slots", "multiply_linear_by_lr"};

bool HasFlag(const std::string& op) {
  const OpDef& def = OpRegistry::Global().Get(op);
  return std::any_of(std::begin(kFlags), std::end(kFlags), [&](const char* name) { return def.FindAttr(name); });
}

// A graph that updates variables by one rule. If the updates are to stay apart, each has scalars of its own, or runs in
// a step of its own if the rule has no scalars.
class Updates {
 public:
  Updates(const std::string& op, bool flag, bool apart, const std::vector<std::pair<DType, Shape>>& variables)
      : op_(op), flag_(flag), apart_(apart) {
    const DeviceScope scope(graph_, "/device:GPU:0");
    for (const auto& [dtype, shape] : variables) Add(dtype, shape);
  }

  // Runs two steps. Returns the bytes of all variables, and sets `launches` to those of the second step.
  std::string Run(const DriverCounts& counts, int64_t* launches, const SessionConfig& config) {
    Session session(graph_, "", config);
    std::vector<Node*> initializers;
    for (const ops::Variable& variable : variables_) initializers.push_back(variable.initializer());
    session.Run({}, {}, initializers);
    for (int step = 0; step < 2; ++step) {
      const int64_t before = counts.launches();
      if (apart_ && scalars_.empty()) {
        for (Node* update : updates_) session.Run(update);
      } else {
        session.Run({}, {}, updates_);
      }
      *launches = counts.launches() - before;
    }
    std::vector<Output> reads;
    for (const ops::Variable& variable : variables_) reads.push_back(variable.value());
    std::string bytes;
    for (const Tensor& value : session.Run({}, reads)) {
      bytes.append(static_cast<const char*>(value.raw_data()), value.bytes());
    }
    return bytes;
  }

 private:
  static constexpr int32_t kIndices = 9;

  Output Value(DType dtype, const Shape& shape, float lowest) {
    Tensor values(DType::kFloat32, shape);
    ++seed_;
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      values.data<float>()[i] = lowest + 0.001f * static_cast<float>((i * 37 + seed_ * 101) % 997);
    }
    const Output made = ops::Const(graph_, values);
    return dtype == DType::kFloat32 ? made : ops::Cast(made, dtype);
  }

  Output Scalar(DType dtype, const std::string& name) {
    static const std::map<std::string, double> numbers = {
        {"lr", 0.1},    {"alpha", 0.1},     {"momentum", 0.9},     {"beta1_power", 0.5}, {"beta2_power", 0.25},
        {"beta1", 0.9}, {"beta2", .99},     {"epsilon", 4.0},      {"rho", 0.9},         {"l1", 0.01},
        {"l2", 0.02},   {"lr_power", -0.5}, {"l2_shrinkage", 0.03}};
    Output& known = scalars_[{dtype, name}];
    if (!known.valid()) known = ops::Const(graph_, ops::NumberTensor(dtype, numbers.at(name)));
    return apart_ ? ops::Identity(known) : known;
  }

  // An update of rows has kIndices of them, of which some are there more than once.
  static Shape RowsOf(const Shape& shape) { return Shape{kIndices}.Concat(shape.Sub(1, shape.rank())); }
  Output Indices(const Shape& shape) {
    Tensor indices(DType::kInt32, Shape{kIndices});
    for (int32_t i = 0; i < kIndices; ++i) {
      indices.data<int32_t>()[i] = (i * i + seed_) % static_cast<int32_t>(shape.dim(0));
    }
    return ops::Const(graph_, indices);
  }

  void Add(DType dtype, const Shape& shape) {
    const OpDef& op = OpRegistry::Global().Get(op_);
    NodeBuilder builder = graph_.Op(op_);
    const auto& args = op.inputs();
    const bool of_rows = std::any_of(args.begin(), args.end(), [](const ArgDef& arg) { return arg.name == "indices"; });
    for (const ArgDef& arg : args) {
      if (arg.dtype == DType::kResource) {
        variables_.emplace_back(graph_, Value(dtype, shape, arg.name == "var" ? -0.5f : 0.1f));
        builder.Input(variables_.back().handle());
      } else if (arg.name == "grad" || arg.name == "delta" || arg.name == "updates") {
        builder.Input(Value(dtype, of_rows ? RowsOf(shape) : shape, -0.5f));
      } else if (arg.name == "indices") {
        builder.Input(Indices(shape));
      } else {
        builder.Input(Scalar(dtype, arg.name));
      }
    }
    for (const char* name : kFlags) {
      if (op.FindAttr(name) != nullptr) builder.Attr(name, flag_);
    }
    updates_.push_back(builder.Finish());
  }

  const std::string op_;
  const bool flag_;
  const bool apart_;
  Graph graph_;
  int seed_ = 0;
  std::map<std::pair<DType, std::string>, Output> scalars_;
  std::vector<ops::Variable> variables_;
  std::vector<Node*> updates_;
};

class JoinedUpdatesTest : public CardsTest {
 protected:
  // Expects that joined updates give the bits of single ones. Returns how many launches fewer they take.
  int64_t LaunchesSaved(const std::string& op, bool flag, const std::vector<std::pair<DType, Shape>>& variables) {
    int64_t of_joined = 0, of_single = 0;
    const std::string joined = Updates(op, flag, false, variables).Run(*counts_, &of_joined, Config());
    const std::string single = Updates(op, flag, true, variables).Run(*counts_, &of_single, Config());
    EXPECT_EQ(joined.size(), single.size());
    EXPECT_TRUE(joined == single) << op << " for " << variables.size() << " variables";
    return of_single - of_joined;
  }
};

TEST_F(JoinedUpdatesTest, GiveTheBitsOfSingleUpdatesInFewerLaunches) {
  std::vector<std::pair<DType, Shape>> variables;
  for (const Shape& shape : {Shape{33, 37}, Shape{5}, Shape{0, 3}, Shape(), Shape{1024}, Shape{1025}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) variables.emplace_back(dtype, shape);
  }
  for (const char* rule : {"GradientDescent", "WeightDecay", "Momentum", "KerasMomentum", "Adagrad", "AdagradV2",
                           "KerasAdagrad", "Adam", "AdamWithAmsgrad", "RMSProp", "CenteredRMSProp", "Ftrl", "FtrlV2"}) {
    for (const bool flag : {false, true}) {
      const std::string op = StrCat("ResourceApply", rule);
      if (flag && !HasFlag(op)) continue;
      const int64_t fewer = LaunchesSaved(op, flag, variables);
      // One launch for each dtype; single updates of empty variables launch nothing.
      EXPECT_EQ(fewer, 15 - 3) << op;
    }
  }
}

TEST_F(JoinedUpdatesTest, OfRowsGiveTheBitsOfSingleUpdatesInFewerLaunches) {
  std::vector<std::pair<DType, Shape>> variables;
  for (const Shape& shape : {Shape{33, 37}, Shape{5}, Shape{7, 0}, Shape{3, 2, 2}, Shape{1, 300}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) variables.emplace_back(dtype, shape);
  }
  for (const char* rule :
       {"SparseApplyMomentum", "SparseApplyKerasMomentum", "SparseApplyAdagrad", "SparseApplyAdagradV2",
        "SparseApplyKerasAdagrad", "SparseApplyAdam", "SparseApplyRMSProp", "SparseApplyCenteredRMSProp",
        "SparseApplyFtrl", "SparseApplyFtrlV2", "ScatterAdd", "ScatterSub", "ScatterUpdate"}) {
    for (const bool flag : {false, true}) {
      const std::string op = StrCat("Resource", rule);
      if (flag && !HasFlag(op)) continue;
      const int64_t fewer = LaunchesSaved(op, flag, variables);
      if (op.starts_with("ResourceScatter")) continue;  // the single updates took several steps
      // One launch for each dtype; single updates of rows without elements launch nothing.
      EXPECT_EQ(fewer, 12 - 3) << op;
    }
  }
}

// Numbers of variables, up to and above what one launch takes, and what their updates launch.
TEST_F(JoinedUpdatesTest, TakeAnotherLaunchOnlyAboveItsLimit) {
  const std::pair<int, int> cases[] = {{43, 1}, {kMostUpdates + 1, 2}};
  for (const auto& [count, launches] : cases) {
    const std::vector<std::pair<DType, Shape>> variables(static_cast<size_t>(count), {DType::kFloat32, Shape{7}});
    const int64_t fewer = LaunchesSaved("ResourceApplyMomentum", false, variables);
    EXPECT_EQ(fewer, count - launches) << count;
  }
}

TEST_F(JoinedUpdatesTest, OfRowsTakeAnotherLaunchOnlyAboveTheirLimit) {
  for (const auto& [count, launches] : {std::pair{kMostRowUpdates, 1}, std::pair{kMostRowUpdates + 1, 2}}) {
    const std::vector<std::pair<DType, Shape>> variables(static_cast<size_t>(count), {DType::kFloat32, Shape{7, 3}});
    const int64_t fewer = LaunchesSaved("ResourceSparseApplyAdagrad", false, variables);
    // If there is only one node that updates, it checks the indices itself, and no other node does so before it.
    EXPECT_EQ(fewer, count - launches + count) << count;
  }
}

// Three variables of three elements, which start as 1, 1, 1. `gradients` are Placeholders.
struct ThreeVariables {
  Graph g;
  std::vector<ops::Variable> variables;
  std::vector<Output> gradients;

  explicit ThreeVariables(const std::function<Output(Graph&, int)>& gradient) {
    const DeviceScope scope(g, "/device:GPU:0");
    const Output rate = ops::Const(g, 1.0f);
    for (int i = 0; i < 3; ++i) {
      variables.emplace_back(g, Tensor::Vector<float>({1, 1, 1}), ops::VariableOptions{.name = StrCat("v", i)});
      gradients.push_back(gradient(g, i));
    }
    for (size_t i = 0; i < 3; ++i) {
      targets.push_back(ops::ResourceApplyGradientDescent(variables[i].handle(), rate, gradients[i]));
    }
  }
  void Initialize(Session& session) {
    for (const ops::Variable& variable : variables) session.Run(variable.initializer());
  }
  std::vector<float> Values(Session& session) {
    std::vector<float> all;
    for (const ops::Variable& variable : variables) {
      for (const float value : session.Run(variable.Read()).ToVector<float>()) all.push_back(value);
    }
    return all;
  }

  std::vector<Node*> targets;
};

TEST_F(JoinedUpdatesTest, AStepWithABadIndexAppliesNone) {
  Output indices;
  ThreeVariables three([&](Graph& g, int i) {
    if (i == 0) indices = ops::Placeholder(g, DType::kInt32, Shape{3}, "indices");
    const Output table = ops::Identity(ops::Const(g, std::vector<float>{10, 20, 30}));
    return i == 1 ? ops::Gather(table, indices) : table * 1.0f;
  });
  Session session(three.g, "", Config());
  three.Initialize(session);
  const auto run = [&](const std::vector<int32_t>& at) {
    session.Run({{indices, Tensor::Vector<int32_t>(at)}}, {}, three.targets);
  };
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { run({0, 7, 1}); }), HasSubstr("7"));
  EXPECT_THAT(three.Values(session), Each(1.0f));
  run({0, 0, 1});
  EXPECT_THAT(three.Values(session), ElementsAre(-9, -19, -29, -9, -9, -19, -9, -19, -29));
}

// Two tables of three rows, which start as 1, 1, 1.
struct TwoTables {
  Graph g;
  std::vector<ops::Variable> tables;
  std::vector<Output> ids, rows;
  std::vector<Node*> targets;

  TwoTables() {
    const DeviceScope scope(g, "/device:GPU:0");
    for (int i = 0; i < 2; ++i) {
      tables.emplace_back(g, Tensor::Vector<float>({1, 1, 1}), ops::VariableOptions{.name = StrCat("t", i)});
      ids.push_back(ops::Placeholder(g, DType::kInt32, Shape{-1}, StrCat("ids", i)));
      rows.push_back(ops::Placeholder(g, DType::kFloat32, Shape::UnknownRank(), StrCat("rows", i)));
      targets.push_back(ops::ResourceScatterAdd(tables.back().handle(), ids.back(), rows.back(), StrCat("add", i)));
    }
  }
  void Run(Session& session, const std::vector<std::vector<int32_t>>& at, const std::vector<std::vector<float>>& add) {
    FeedList feeds;
    for (size_t i = 0; i < 2; ++i) {
      feeds.push_back({ids[i], Tensor::Vector<int32_t>(at[i])});
      feeds.push_back({rows[i], Tensor::Vector<float>(add[i])});
    }
    session.Run(feeds, {}, targets);
  }
  std::vector<float> Values(Session& session) {
    std::vector<float> all;
    for (const ops::Variable& table : tables) {
      for (const float value : session.Run(table.Read()).ToVector<float>()) all.push_back(value);
    }
    return all;
  }
};

TEST_F(JoinedUpdatesTest, ABadIndexOfOneTableAppliesNoneAndIsNamedWithItsTable) {
  TwoTables two;
  Session session(two.g, "", Config());
  session.Run({}, {}, {two.tables[0].initializer(), two.tables[1].initializer()});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                two.Run(session, {{0, 1}, {2, 3}}, {{1, 1}, {1, 1}});
              }),
              HasSubstr("indices[1] = 3 is not in [0, 3), the rows of variable 't1'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                two.Run(session, {{0, 1}, {2, 1}}, {{1, 1}, {1, 1, 1}});
              }),
              HasSubstr("expected updates of shape [2] for variable 't1'; got [3]"));
  EXPECT_THAT(two.Values(session), Each(1.0f));
  two.Run(session, {{0, 1, 0}, {2, 1, 1}}, {{1, 10, 2}, {3, 4, 5}});
  EXPECT_THAT(two.Values(session), ElementsAre(4, 11, 1, 1, 10, 4));
}

TEST_F(JoinedUpdatesTest, AScalarIsAddedToAllRows) {
  TwoTables two;
  Session session(two.g, "", Config());
  session.Run({}, {}, {two.tables[0].initializer(), two.tables[1].initializer()});
  session.Run({{two.ids[0], Tensor::Vector<int32_t>({2, 0, 2})},
               {two.rows[0], Tensor::Scalar(5.0f)},
               {two.ids[1], Tensor::Vector<int32_t>({1})},
               {two.rows[1], Tensor::Vector<float>({7})}},
              {}, two.targets);
  EXPECT_THAT(two.Values(session), ElementsAre(6, 1, 11, 1, 8, 1));
}

TEST_F(JoinedUpdatesTest, ATableWithoutIndicesStaysAsItIs) {
  TwoTables two;
  Session session(two.g, "", Config());
  session.Run({}, {}, {two.tables[0].initializer(), two.tables[1].initializer()});
  two.Run(session, {{}, {2}}, {{}, {3}});
  EXPECT_THAT(two.Values(session), ElementsAre(1, 1, 1, 1, 1, 4));
  two.Run(session, {{0}, {}}, {{2}, {}});
  EXPECT_THAT(two.Values(session), ElementsAre(3, 1, 1, 1, 1, 4));
  two.Run(session, {{}, {}}, {{}, {}});
  EXPECT_THAT(two.Values(session), ElementsAre(3, 1, 1, 1, 1, 4));
}

TEST_F(JoinedUpdatesTest, AGradientOfAWrongShapeAppliesNoneAndIsNamed) {
  ThreeVariables three([](Graph& g, int i) {
    return ops::Placeholder(g, DType::kFloat32, Shape::UnknownRank(), StrCat("gradient", i));
  });
  Session session(three.g, "", Config());
  three.Initialize(session);
  const auto run = [&](const Tensor& last) {
    const Tensor ones = Tensor::Vector<float>({1, 1, 1});
    session.Run({{three.gradients[0], ones}, {three.gradients[1], ones}, {three.gradients[2], last}}, {},
                three.targets);
  };
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                run(Tensor::Vector<float>({1, 1}));
              }),
              AllOf(HasSubstr("expected a gradient of shape [3] for variable 'v2'; got [2]"), HasSubstr("joined")));
  EXPECT_THAT(three.Values(session), Each(1.0f));
  run(Tensor::Vector<float>({1, 1, 1}));
  EXPECT_THAT(three.Values(session), Each(0.0f));
}

TEST_F(JoinedUpdatesTest, TwoUpdatesOfOneVariableAreBothMade) {
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const ops::Variable v(g, Tensor::Vector<float>({8, 8}), {.name = "v"}),
      w(g, Tensor::Vector<float>({8, 8}), {.name = "w"});
  const Output half = ops::Const(g, 0.5f);
  std::vector<Node*> updates;
  for (const ops::Variable& variable : {v, w, v}) {
    updates.push_back(
        ops::ResourceApplyGradientDescent(variable.handle(), half, ops::Const(g, std::vector<float>{2, 4})));
  }
  Session session(g, "", Config());
  session.Run({}, {}, {v.initializer(), w.initializer()});
  session.Run({}, {}, updates);
  EXPECT_THAT(session.Run(v.Read()).ToVector<float>(), ElementsAre(6, 4));
  EXPECT_THAT(session.Run(w.Read()).ToVector<float>(), ElementsAre(7, 6));
}

}  // namespace
}  // namespace cohort::cuda
