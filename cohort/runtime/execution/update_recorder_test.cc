// What an observer of the update gate is given, on all kinds of device.
#include "cohort/runtime/execution/update_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "cohort/core/str_cat.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"
#include "cohort/runtime/testing/executor_fixture.h"

namespace cohort {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Keeps all sets.
class KeptUpdates final : public UpdateObserver {
 public:
  void OnUpdates(UpdateSet set) override {
    MutexLock lock(mu_);
    sets_.push_back(std::move(set));
    if (refusing_) throw UnavailableError("the log is full");
  }
  std::vector<UpdateSet> sets() const {
    MutexLock lock(mu_);
    return sets_;
  }
  void Refuse() {
    MutexLock lock(mu_);
    refusing_ = true;
  }

 private:
  mutable Mutex mu_;
  std::vector<UpdateSet> sets_ COHORT_GUARDED_BY(mu_);
  bool refusing_ COHORT_GUARDED_BY(mu_) = false;
};

// In place of the other tasks. Notes how many sets the observer had when a value was sent, and when one was asked for.
class NotingRendezvous final : public Rendezvous {
 public:
  explicit NotingRendezvous(const KeptUpdates& kept) : kept_(kept) {}
  void Send(EdgeId, const Tensor&) override { at_send = kept_.sets().size(); }
  void RecvAsync(EdgeId, Done done) override {
    at_receive = kept_.sets().size();
    done(Status(), Tensor::Vector<float>({1, 1, 1}));
  }
  void Abort(const Status&) override {}

  std::atomic<size_t> at_send{0};
  std::atomic<size_t> at_receive{0};

 private:
  const KeptUpdates& kept_;
};

// Calls a function with each set.
class CalledWithUpdates final : public UpdateObserver {
 public:
  explicit CalledWithUpdates(std::function<void()> call) : call_(std::move(call)) {}
  void OnUpdates(UpdateSet) override { call_(); }

 private:
  const std::function<void()> call_;
};

testing::HeldKernels& HeldInTurns() {
  static auto* const held = new testing::HeldKernels;
  return *held;
}

const bool kRecorderOpsRegistered = [] {
  testing::RegisterForDeviceKinds();
  const auto same = [](ShapeContext& c) { return std::vector<Shape>{c.input(0)}; };
  OpRegistry::Global().Register(
      OpDef("RecorderHold").Input("x: float32").Output("y: float32").ShapeRule(same).Stateful());
  KernelRegistry::Global().Register<testing::HoldingKernel<HeldInTurns>>("RecorderHold", "CPU");
  testing::RegisterKernelsForDeviceKinds();
  return true;
}();

constexpr int64_t kTableRows = 64;
constexpr int64_t kWidth = 3;
const std::vector<std::string> kDense = {"w", "m", "v"};
const std::vector<std::string> kSparse = {"table", "accum"};

// A task of its own with variables "w", "m", "v" of [kWidth], "table", "accum" of [kTableRows, kWidth], all of them 1.
class UpdateRecorderTest : public testing::ExecutorFixture {
 protected:
  UpdateRecorderTest() {
    for (const std::string& name : kDense) Fill(name, Shape{kWidth});
    for (const std::string& name : kSparse) Fill(name, Shape{kTableRows, kWidth});
  }

  void Observe() { task_->update_gate.SetObserver(kept_, milliseconds(20000)); }
  void Fill(const std::string& name, const Shape& shape) {
    Tensor ones(DType::kFloat32, shape);
    std::fill_n(ones.data<float>(), ones.num_elements(), 1.0f);
    MakeVariable(name, shape)->Assign(its_device().CopyFromHost(ones));
  }
  std::vector<float> ValueOf(const std::string& name) {
    const auto variable = std::dynamic_pointer_cast<VariableResource>(task_->resources.Lookup("", name));
    return its_device().CopyToHost(variable->Read()).ToVector<float>();
  }
  std::vector<std::vector<float>> AllValues() {
    std::vector<std::vector<float>> values;
    for (const std::string& name : kDense) values.push_back(ValueOf(name));
    for (const std::string& name : kSparse) values.push_back(ValueOf(name));
    return values;
  }
  static Output Handle(Graph& g, const std::string& name, const Shape& shape) {
    return g.Op("VarHandleOp").Attr("dtype", DType::kFloat32).Attr("shape", shape).Attr("shared_name", name).Finish1();
  }
  Output Dense(const std::string& name) { return Handle(g_, name, Shape{kWidth}); }
  // Runs "w += 1", then what `between` adds, and then "m += 1".
  void RunAround(NotingRendezvous& rendezvous, const std::function<Node*(Output x)>& between) {
    const Output x = Arg(DType::kFloat32, 0);
    Node* first = ops::AssignAddVariableOp(Dense("w"), x);
    Node* middle = nullptr;
    {
      const ControlDependencies after(g_, {first});
      middle = between(x);
    }
    {
      const ControlDependencies after(g_, {middle});
      ops::AssignAddVariableOp(Dense("m"), x);
    }
    const auto executor = Compile();
    Observe();
    const auto step = Prepare({Tensor::Vector<float>({1, 1, 1})}, 0);
    step->info.rendezvous = &rendezvous;
    Start(*executor, *step);
    step->Wait().ThrowIfError();
  }
  static AttrMap EdgeAttrs() {
    return {{"tensor_name", "x:0"}, {"edge", int64_t{0}}, {"send_device", "here"}, {"recv_device", "there"}};
  }
  Output Sparse(const std::string& name) { return Handle(g_, name, Shape{kTableRows, kWidth}); }

  // Makes the update of a record again.
  void Replay(const UpdateRecord& record) {
    Graph* graph = new Graph;
    NodeBuilder builder = graph->Op(record.op->op);
    std::vector<Tensor> args;
    size_t variable = 0;
    for (const ArgDef& arg : OpRegistry::Global().Find(record.op->op)->inputs()) {
      if (arg.dtype == DType::kResource) {
        const VariableId& id = record.variables.at(variable++);
        EXPECT_EQ(id.container, ResourceManager::kDefaultContainer);
        const bool dense = std::find(kDense.begin(), kDense.end(), id.name) != kDense.end();
        builder.Input(Handle(*graph, id.name, dense ? Shape{kWidth} : Shape{kTableRows, kWidth}));
        continue;
      }
      const Tensor& input = record.inputs.at(args.size());
      builder.Input(
          graph->Op("_Arg").Attr("T", input.dtype()).Attr("index", static_cast<int64_t>(args.size())).Finish1());
      args.push_back(input);
    }
    builder.Attrs(record.op->attrs).Finish();
    Executor executor(std::unique_ptr<Graph>(graph), its_device());
    Run(executor, args, 0);
  }

  const std::shared_ptr<KeptUpdates> kept_ = std::make_shared<KeptUpdates>();
};
INSTANTIATE_TEST_SUITE_P(Devices, UpdateRecorderTest, testing::AllDeviceKinds(), testing::DeviceKindName);

Tensor RandomTensor(std::mt19937& random, const Shape& shape) {
  Tensor value(DType::kFloat32, shape);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < value.num_elements(); ++i) value.data<float>()[i] = normal(random);
  return value;
}
Tensor RandomRows(std::mt19937& random, int64_t count) {
  Tensor rows(DType::kInt32, Shape{count});
  for (int64_t i = 0; i < count; ++i) rows.data<int32_t>()[i] = static_cast<int32_t>(random() % kTableRows);
  return rows;
}

// Whoever makes the recorded updates again, in their order, gets the same bits; in another order not.
TEST_P(UpdateRecorderTest, ReplayedUpdatesGiveTheSameBits) {
  const auto constant = [&](float value) { return ops::Const(g_, value); };
  const Output grad = ops::Tanh(Arg(DType::kFloat32, 0));
  const Output rows = Arg(DType::kInt32, 1);
  const Output row_grad = Arg(DType::kFloat32, 2) * 0.5f;
  ops::ResourceApplyGradientDescent(Dense("w"), constant(0.1f), grad);
  ops::ResourceApplyAdam(
      Dense("w"), Dense("m"), Dense("v"),
      {constant(0.9f), constant(0.999f), constant(0.01f), constant(0.9f), constant(0.999f), constant(1e-7f)}, grad);
  ops::ResourceSparseApplyMomentum(Sparse("table"), Sparse("accum"), constant(0.1f), row_grad, rows, constant(0.9f));
  ops::ResourceScatterAdd(Sparse("table"), rows, row_grad);
  const auto executor = Compile();
  Observe();
  constexpr int kClients = 4;
  constexpr int kSteps = 50;
  std::vector<StepOrigin> origins;
  for (uint64_t i = 0; i < kClients; ++i) origins.push_back({{StrCat("/job:worker/task:", i), i}, 100 + i});
  std::vector<std::thread> clients;
  for (size_t c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      std::mt19937 random(static_cast<unsigned>(c));
      for (int64_t i = 1; i <= kSteps; ++i) {
        auto step = Prepare(
            {RandomTensor(random, Shape{kWidth}), RandomRows(random, 20), RandomTensor(random, Shape{20, kWidth})}, 0);
        step->info.step_id = i;
        step->info.origin = &origins[c];
        Start(*executor, *step, i % 2 == 0 ? Executor::Mode::kInline : Executor::Mode::kDevice);
        EXPECT_TRUE(step->Wait().ok());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  task_->update_gate.SetObserver(nullptr, milliseconds(20000));

  const std::vector<UpdateSet> sets = kept_->sets();
  ASSERT_EQ(sets.size(), kClients * kSteps);
  std::vector<int64_t> latest(kClients, 0);
  for (size_t i = 0; i < sets.size(); ++i) {
    EXPECT_EQ(sets[i].position, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(sets[i].device, &its_device());
    EXPECT_EQ(sets[i].updates.size(), 4u);
    const auto client = static_cast<size_t>(sets[i].origin.client.incarnation);
    EXPECT_EQ(sets[i].origin.session, 100 + client);
    EXPECT_EQ(sets[i].sequence, ++latest[client]);
  }

  const auto values = AllValues();
  const auto replay = [&](auto begin, auto end) {
    for (const std::string& name : kDense) Fill(name, Shape{kWidth});
    for (const std::string& name : kSparse) Fill(name, Shape{kTableRows, kWidth});
    for (auto set = begin; set != end; ++set) {
      for (const UpdateRecord& record : set->updates) Replay(record);
    }
    return AllValues();
  };
  // Vectors of floats without NaN and -0 are equal if their bits are.
  EXPECT_EQ(replay(sets.begin(), sets.end()), values);
  EXPECT_NE(replay(sets.rbegin(), sets.rend()), values);
}

TEST_P(UpdateRecorderTest, AnUpdateOfNoRowsIsAnUpdate) {
  Node* const none = ops::ResourceScatterAdd(Sparse("table"), Arg(DType::kInt32, 0), ops::Const(g_, 1.0f));
  Node* const dense = ops::ResourceApplyGradientDescent(Dense("v"), ops::Const(g_, 0.5f), Arg(DType::kFloat32, 1));
  dense->AddControlInput(none);
  const auto executor = Compile();
  Observe();
  Run(*executor, {Tensor::Vector(std::vector<int32_t>()), Tensor::Vector<float>({1, 2, 3})}, 0);
  const std::vector<UpdateSet> sets = kept_->sets();
  ASSERT_EQ(sets.size(), 1u);
  std::vector<std::string> made;
  for (const UpdateRecord& record : sets[0].updates) made.push_back(record.op->op);
  EXPECT_THAT(made, ElementsAre("ResourceScatterAdd", "ResourceApplyGradientDescent"));
}

// A backend may make several updates by one kernel. The observer gets the single updates.
TEST_P(UpdateRecorderTest, UpdatesOfOneOptimizerAreRecordedOneByOne) {
  const Output rate = ops::Const(g_, 0.5f);
  for (int i = 0; i < 3; ++i) {
    const std::string& name = kDense[static_cast<size_t>(i)];
    ops::ResourceApplyGradientDescent(Dense(name), rate, Arg(DType::kFloat32, i), "update_" + name);
  }
  const auto executor = Compile();
  Observe();
  std::vector<Tensor> gradients;
  for (int i = 0; i < 3; ++i) gradients.push_back(Tensor::Vector<float>({1, 2, static_cast<float>(i)}));
  Run(*executor, gradients, 0);
  const std::vector<UpdateSet> sets = kept_->sets();
  ASSERT_EQ(sets.size(), 1u);
  ASSERT_EQ(sets[0].updates.size(), 3u);
  std::set<std::string> names;
  for (const UpdateRecord& record : sets[0].updates) {
    EXPECT_EQ(record.op->op, "ResourceApplyGradientDescent");
    EXPECT_EQ(record.op->attrs.count("use_nesterov"), 0u);  // an attribute of another op
    ASSERT_EQ(record.variables.size(), 1u);
    EXPECT_EQ(record.op->node, "update_" + record.variables[0].name);
    ASSERT_EQ(record.inputs.size(), 2u);
    names.insert(record.op->node);
  }
  EXPECT_EQ(names.size(), 3u);
  const auto values = AllValues();
  for (const std::string& name : kDense) Fill(name, Shape{kWidth});
  for (const UpdateRecord& record : sets[0].updates) Replay(record);
  EXPECT_EQ(AllValues(), values);
  EXPECT_THAT(ValueOf("v"), ElementsAre(0.5f, 0.0f, 0.0f));
}

// Kernels that come after an update must not write over what it has used.
TEST_P(UpdateRecorderTest, InputsStayAsTheyWere) {
  constexpr int64_t kMany = 1 << 15;
  Fill("big", Shape{kMany});
  const Output change = Arg(DType::kFloat32, 0) * 2.0f;
  Node* update = ops::AssignAddVariableOp(Handle(g_, "big", Shape{kMany}), change);
  const std::string name = update->name();
  {
    const ControlDependencies after(g_, {update});
    Retval(ops::Sum(ops::Exp(change + 1.0f)), 0);
  }
  const auto executor = Compile();
  Observe();
  for (int i = 1; i <= 5; ++i) {  // the later ones have an arena
    Run(*executor, {Tensor::Vector(std::vector<float>(kMany, static_cast<float>(i)))}, 1);
  }
  const std::vector<UpdateSet> sets = kept_->sets();
  ASSERT_EQ(sets.size(), 5u);
  for (size_t i = 0; i < sets.size(); ++i) {
    const UpdateRecord& record = sets[i].updates.at(0);
    EXPECT_EQ(record.op->op, "AssignAddVariableOp");
    EXPECT_EQ(record.op->node, name);
    EXPECT_THAT(record.variables, ElementsAre(VariableId{ResourceManager::kDefaultContainer, "big"}));
    const auto expected = static_cast<float>(2 * (i + 1));
    EXPECT_EQ(its_device().CopyToHost(record.inputs.at(0)).ToVector<float>(), std::vector<float>(kMany, expected));
  }
}

TEST_P(UpdateRecorderTest, WhatIsNotAppliedIsNotGiven) {
  const Output change = Arg(DType::kFloat32, 0);
  ops::AssignAddVariableOp(Dense("w"), change);
  {
    const Output later = ops::Reshape(change, ops::Const(g_, std::vector<int32_t>{-1}));
    ops::AssignAddVariableOp(Dense("m"), later + 0.0f * ops::Const(g_, std::vector<float>{1, 1, 1}));
  }
  const auto executor = Compile();
  Observe();
  // Of the second update the kernel itself says no; before it the first one was made.
  EXPECT_TRUE(Start(*executor, {Tensor::Vector<float>({1, 2, 3})}, 0)->Wait().ok());
  const auto failed = Start(*executor, {Tensor::Vector<float>({1, 2})}, 0)->Wait();
  EXPECT_EQ(failed.code(), Code::kInvalidArgument) << failed.message();
  const auto cancelled = Prepare({Tensor::Vector<float>({1, 2, 3})}, 0);
  cancelled->cancellation.Cancel(Status(Code::kCancelled, "enough"));
  Start(*executor, *cancelled);
  EXPECT_EQ(cancelled->Wait().message(), "enough");
  EXPECT_TRUE(Start(*executor, {Tensor::Vector<float>({4, 4, 4})}, 0)->Wait().ok());

  const std::vector<UpdateSet> sets = kept_->sets();
  ASSERT_EQ(sets.size(), 2u);
  for (const UpdateSet& set : sets) EXPECT_EQ(set.updates.size(), 2u);
  EXPECT_THAT(ValueOf("w"), ElementsAre(6, 7, 8));
  EXPECT_EQ(ValueOf("m"), ValueOf("w"));
}

TEST_P(UpdateRecorderTest, OfASetThatFailsInTheMiddleTheAppliedPartIsGiven) {
  const Output change = Arg(DType::kFloat32, 0);
  Node* first = ops::AssignAddVariableOp(Dense("w"), change);
  {
    const ControlDependencies after(g_, {first});
    ops::ResourceScatterAdd(Sparse("table"), Arg(DType::kInt32, 1), ops::Const(g_, 1.0f));
  }
  const auto executor = Compile();
  Observe();
  const Tensor ones = Tensor::Vector<float>({1, 1, 1});
  const Status status = Start(*executor, {ones, Tensor::Vector<int32_t>({2, kTableRows})}, 0)->Wait();
  EXPECT_THAT(status.message(), HasSubstr(StrCat("indices[1] = ", kTableRows)));
  const std::vector<UpdateSet> sets = kept_->sets();
  ASSERT_EQ(sets.size(), 1u);
  ASSERT_EQ(sets[0].updates.size(), 1u);
  EXPECT_EQ(sets[0].updates[0].op->op, "AssignAddVariableOp");
  EXPECT_THAT(ValueOf("w"), ElementsAre(2, 2, 2));
  task_->update_gate.Close(milliseconds(20000));  // nobody is left inside
  task_->update_gate.Open();
  EXPECT_TRUE(Start(*executor, {ones, Tensor::Vector<int32_t>({2, 3})}, 0)->Wait().ok());
}

TEST_P(UpdateRecorderTest, AStepThatWaitsBetweenItsUpdatesLetsOthersUpdate) {
  const Output x = Arg(DType::kFloat32, 0);
  Node* first = ops::AssignAddVariableOp(Dense("w"), x);
  Output held;
  {
    const ControlDependencies after(g_, {first});
    held = Own("RecorderHold", x);
  }
  ops::AssignAddVariableOp(Dense("m"), held);
  const auto executor = Compile();
  auto other = std::make_unique<Graph>();
  const Output change = other->Op("_Arg").Attr("T", DType::kFloat32).Attr("index", 0).Finish1();
  ops::AssignAddVariableOp(Handle(*other, "m", Shape{kWidth}), change);
  Executor other_executor(std::move(other), its_device());
  Observe();
  const Tensor ones = Tensor::Vector<float>({1, 1, 1});
  const auto waiting = Start(*executor, {ones}, 0);
  HeldInTurns().WaitFor(1);
  auto quick = Prepare({ones}, 0);
  quick->info.step_id = 2;
  Start(other_executor, *quick);
  EXPECT_TRUE(quick->Wait().ok());
  HeldInTurns().Release();
  EXPECT_TRUE(waiting->Wait().ok());
  std::vector<std::pair<int64_t, std::string>> seen;
  for (const UpdateSet& set : kept_->sets()) {
    for (const UpdateRecord& record : set.updates) seen.emplace_back(set.sequence, record.variables.at(0).name);
  }
  EXPECT_THAT(seen, ElementsAre(std::pair{1, "w"}, std::pair{2, "m"}, std::pair{1, "m"}));
}

TEST_P(UpdateRecorderTest, ASetIsGivenBeforeTheStepSendsAValue) {
  NotingRendezvous rendezvous(*kept_);
  RunAround(rendezvous, [&](Output x) { return g_.Op("_Send").Input(x).Attrs(EdgeAttrs()).Finish(); });
  EXPECT_EQ(rendezvous.at_send, 1u);
  EXPECT_EQ(kept_->sets().size(), 2u);
}

TEST_P(UpdateRecorderTest, ASetIsGivenBeforeAKernelThatWaitsStarts) {
  NotingRendezvous rendezvous(*kept_);
  RunAround(rendezvous, [&](Output) {
    return g_.Op("_Recv").Attr("tensor_type", DType::kFloat32).Attr("shape", Shape{kWidth}).Attrs(EdgeAttrs()).Finish();
  });
  EXPECT_EQ(rendezvous.at_receive, 1u);
  EXPECT_EQ(kept_->sets().size(), 2u);
}

TEST_P(UpdateRecorderTest, AStepFailsIfItsObserverThrows) {
  ops::AssignAddVariableOp(Dense("w"), Arg(DType::kFloat32, 0));
  const auto executor = Compile();
  Observe();
  kept_->Refuse();
  const Tensor ones = Tensor::Vector<float>({1, 1, 1});
  const Status status = Start(*executor, {ones}, 0)->Wait();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("[update observer]"));
  EXPECT_THAT(status.message(), HasSubstr("the log is full"));
  task_->update_gate.SetObserver(nullptr, milliseconds(20000));
  EXPECT_TRUE(Start(*executor, {ones}, 0)->Wait().ok());
  EXPECT_THAT(ValueOf("w"), ElementsAre(3, 3, 3));
  EXPECT_EQ(kept_->sets().size(), 1u);
}

// A kernel that ends while the observer is at work does not end the step, although the step has failed.
TEST_P(UpdateRecorderTest, AFailedStepEndsAfterItsObserverHasReturned) {
  const Output x = Arg(DType::kFloat32, 0);
  Retval(Own("RecorderHold", x), 0);
  Node* first = ops::AssignAddVariableOp(Dense("w"), x * 2.0f);
  {
    const ControlDependencies after(g_, {first});
    ops::ResourceScatterAdd(Sparse("table"), Arg(DType::kInt32, 1), ops::Const(g_, 1.0f));
  }
  const auto executor = Compile();
  const auto step = Prepare({Tensor::Vector<float>({1, 1, 1}), Tensor::Vector<int32_t>({2, kTableRows})}, 1);
  int sets = 0;
  bool had_ended = false;
  const auto observer = std::make_shared<CalledWithUpdates>([&] {
    ++sets;
    HeldInTurns().Release();
    had_ended = step->end.wait_for(milliseconds(0)) == std::future_status::ready;
  });
  task_->update_gate.SetObserver(observer, milliseconds(20000));
  Start(*executor, *step);
  EXPECT_THAT(step->Wait().message(), HasSubstr(StrCat("indices[1] = ", kTableRows)));
  EXPECT_EQ(sets, 1);
  EXPECT_FALSE(had_ended);
}

TEST_P(UpdateRecorderTest, UpdatesInsideOfFunctionsAreGivenToo) {
  const Output x = Arg(DType::kFloat32, 0);
  const Output w = Dense("w");
  const Output m = Dense("m");
  ops::AssignAddVariableOp(w, x);
  ops::While(
      {ops::Const(g_, 0)}, [](Graph&, const std::vector<Output>& v) { return std::vector<Output>{ops::Less(v[0], 3)}; },
      [&](Graph& body, const std::vector<Output>& v) {
        Node* update = body.Op("AssignAddVariableOp").Input(m).Input(x).Finish();
        const ControlDependencies after(body, {update});
        return std::vector<Output>{v[0] + 1};
      });
  ops::AssignAddVariableOp(w, x);
  const auto executor = Compile();
  Observe();
  EXPECT_TRUE(Start(*executor, {Tensor::Vector<float>({1, 1, 1})}, 0)->Wait().ok());
  std::multiset<std::string> seen;
  for (const UpdateSet& set : kept_->sets()) {
    for (const UpdateRecord& record : set.updates) seen.insert(record.variables.at(0).name);
  }
  EXPECT_THAT(seen, ElementsAre("m", "m", "m", "w", "w"));
  EXPECT_THAT(ValueOf("m"), ElementsAre(4, 4, 4));
}

}  // namespace
}  // namespace cohort
