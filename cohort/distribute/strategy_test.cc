#include "cohort/distribute/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/strategies.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/random.h"
#include "cohort/registration.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

template <typename Base>
class WithGraph : public Base {
 protected:
  WithGraph() { RegisterAll(); }
  std::unique_ptr<Session> Open(const StrategyPtr& strategy) {
    auto session = strategy->OpenSession(graph_);
    session->Run(ops::GlobalVariablesInitializer(graph_));
    return session;
  }
  Graph graph_;
};

using StrategyTest = WithGraph<::testing::Test>;

class StrategyOnDevicesTest : public WithGraph<testing::DeviceKindTest> {
 protected:
  StrategyOnDevicesTest() { RegisterTestBackend(); }
  static std::vector<std::string> devices() { return {device(0), device(1), device(2)}; }
};
INSTANTIATE_TEST_SUITE_P(Devices, StrategyOnDevicesTest, testing::AllDeviceKinds(), testing::DeviceKindName);

TEST_F(StrategyTest, Layouts) {
  const StrategyPtr mirrored = Mirrored({"/cpu:1", "CPU:0"});
  EXPECT_EQ(mirrored->num_replicas_in_sync(), 2);
  EXPECT_THAT(mirrored->devices(), ElementsAre("/device:CPU:1", "/device:CPU:0"));
  EXPECT_EQ(mirrored->session_config({}).device_count.at("CPU"), 2);
  EXPECT_EQ(mirrored->session_config({.device_count = {{"CPU", 5}}}).device_count.at("CPU"), 5);
  EXPECT_TRUE(mirrored->is_chief());
  EXPECT_EQ(Mirrored()->num_replicas_in_sync(), 1);  // nothing was set: one CPU
  EXPECT_EQ(OneDevice("/cpu:3")->session_config({}).device_count.at("CPU"), 4);
  EXPECT_EQ(Default()->num_replicas_in_sync(), 1);
  EXPECT_EQ(Default()->session_config({}).device_count.count("CPU"), 0u);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                Mirrored({"/cpu:0", "/device:CPU:0"});
              }),
              HasSubstr("/device:CPU:0, /device:CPU:0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { OneDevice("/job:worker/cpu:0"); }),
              HasSubstr("MultiWorkerMirrored"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { OneDevice("/cpu"); }), HasSubstr("a number"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { MirroredOnCpus(0); }), HasSubstr("got 0"));
}

TEST_F(StrategyTest, CommunicationThatIsNotBuilt) {
  EXPECT_EQ(ImplementationByName("ring"), CommunicationImplementation::kRing);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ImplementationByName("mpi"); }),
              AllOf(HasSubstr("AUTO, RING, GLOO, NCCL"), HasSubstr("'mpi'")));
  const auto nccl = [] { Mirrored({.communication = {.implementation = CommunicationImplementation::kNccl}}); };
  if (IsBuilt(CommunicationImplementation::kNccl)) {  // the test has GPUs on a fake driver
    EXPECT_NO_THROW(nccl());
  } else {
    EXPECT_THAT(MessageOf<InvalidArgumentError>(nccl),
                AllOf(HasSubstr(IsBuilt(CommunicationImplementation::kGloo) ? "(AUTO, RING, GLOO)" : "(AUTO, RING)"),
                      HasSubstr("got NCCL, which needs devices of NVIDIA; AUTO chooses for you")));
  }
  const auto gloo = [] { Mirrored({.communication = {.implementation = CommunicationImplementation::kGloo}}); };
  if (IsBuilt(CommunicationImplementation::kGloo)) {
    EXPECT_NO_THROW(gloo());
  } else {
    EXPECT_THAT(MessageOf<InvalidArgumentError>(gloo), AllOf(HasSubstr("(AUTO, RING"), HasSubstr("got GLOO")));
  }
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Mirrored({.communication = {.bytes_per_pack = -1}}); }),
              HasSubstr("bytes_per_pack"));
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([] { Mirrored({.communication = {.timeout = std::chrono::seconds(-2)}}); }),
      HasSubstr("expected timeout of at least 0; got -2000 ms"));
}

TEST_F(StrategyTest, CommunicationOptionsReachTheCollectives) {
  const auto collectives = [](const CommunicationOptions& communication) {
    Graph graph;
    const StrategyPtr strategy = Mirrored({.devices = {"/cpu:0", "/cpu:1"}, .communication = communication});
    PerReplica<std::vector<Output>> gradients(2);
    for (auto& of_replica : gradients) {
      for (int i = 0; i < 4; ++i) of_replica.push_back(ops::Const(graph, Floats(16, 1.0f)));
    }
    strategy->SumOverReplicas(gradients);
    std::vector<const Node*> found;
    for (const Node* node : graph.nodes()) {
      if (node->op_name() == "CollectiveReduce") found.push_back(node);
    }
    return std::make_pair(found.size(), found.empty()
                                            ? std::make_pair(std::string(), 0.0f)
                                            : std::make_pair(found[0]->attr<std::string>("communication_hint"),
                                                             found[0]->attr<float>("timeout_seconds")));
  };
  const auto together = collectives({});
  EXPECT_EQ(together.first, 2u);  // one for each replica
  EXPECT_EQ(together.second, std::make_pair(std::string("auto"), 0.0f));
  const auto apart = collectives({.implementation = CommunicationImplementation::kRing,
                                  .bytes_per_pack = 64,
                                  .timeout = std::chrono::milliseconds(1500)});
  EXPECT_EQ(apart.first, 8u);  // of 64 bytes each
  EXPECT_EQ(apart.second, std::make_pair(std::string("ring"), 1.5f));
}

TEST_P(StrategyOnDevicesTest, MirroredVariablesBeginEqualEvenWithoutASeed) {
  const StrategyPtr strategy = Mirrored(devices());
  ops::Variable w, local;
  {
    const auto scope = strategy->Scope(graph_);
    w = ops::Variable(graph_, ops::RandomUniform(ops::Const(graph_, std::vector<int32_t>{4})), {.name = "w"});
    local = ops::Variable(graph_, Tensor::Scalar(1.0f), {.name = "local", .local = true});
  }
  const ops::Variable outside(graph_, Tensor::Scalar(1.0f), {.name = "outside"});
  const auto session = Open(strategy);
  const Floats first = session->Run(w.value()).ToVector<float>();
  for (int r = 0; r < 3; ++r) {
    const ops::Variable part = strategy->Local(w, r);
    EXPECT_EQ(part.name(), r == 0 ? "w" : StrCat("w/replica_", r));
    EXPECT_EQ(part.handle().node->device(), device(r));
    EXPECT_EQ(session->Run(part.value()).ToVector<float>(), first);
  }
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { strategy->Local(outside, 1); }),
              AllOf(HasSubstr("'outside'"), HasSubstr("scope")));
  EXPECT_THROW(strategy->Local(local, 2), FailedPreconditionError);
}

TEST_F(StrategyTest, CentralStorageHasOneCopy) {
  const StrategyPtr strategy = CentralStorage({.compute_devices = {"/cpu:1", "/cpu:2"}});
  const auto scope = strategy->Scope(graph_);
  const ops::Variable w(graph_, Tensor::Scalar(1.0f), {.name = "w"});
  EXPECT_EQ(w.handle().node->device(), "/device:CPU:0");
  EXPECT_EQ(strategy->Local(w, 1), w);
  EXPECT_EQ(graph_.variables().size(), 1u);
}

TEST_F(StrategyTest, OneStrategysScopeAtATime) {
  const StrategyPtr outer = MirroredOnCpus(2), inner = MirroredOnCpus(2);
  const auto scope = outer->Scope(graph_);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { const auto second = inner->Scope(graph_); }),
              HasSubstr("MirroredStrategy"));
  const auto again = outer->Scope(graph_);  // changes nothing, also not for variables
  EXPECT_EQ(ops::GetVariable(graph_, "w", Shape{2}).name(), "w");
  EXPECT_THAT(graph_.variables(), ::testing::SizeIs(2)) << "one copy for each replica";
}

TEST_P(StrategyOnDevicesTest, ReplicasReduceTheirValues) {
  for (const StrategyPtr& strategy :
       {OneDevice(device()), Mirrored(devices()), CentralStorage({.compute_devices = devices()})}) {
    const int n = strategy->num_replicas_in_sync();
    std::vector<Output> values, sums, means;
    const auto results = strategy->Run(graph_, [&](ReplicaContext& replica) -> std::vector<Output> {
      const Output own = ops::Const(graph_, static_cast<float>(replica.replica_id_in_sync_group() + 1));
      EXPECT_EQ(own.node->device(), strategy->devices()[static_cast<size_t>(replica.local_replica())]);
      return {own, replica.AllReduce(Reduction::kSum, own), replica.AllReduce(Reduction::kMean, own)};
    });
    std::vector<Output> fetches;
    std::vector<std::vector<Output>> own;
    for (const auto& result : results) {
      fetches.insert(fetches.end(), result.begin() + 1, result.end());
      values.push_back(result[0]);
      own.push_back({result[0], result[0] * 2.0f});
    }
    fetches.push_back(strategy->Reduce(Reduction::kSum, values));
    fetches.push_back(strategy->Reduce(Reduction::kMean, values));
    for (const auto& summed : strategy->SumOverReplicas(own)) {
      fetches.insert(fetches.end(), summed.begin(), summed.end());
    }
    const auto session = Open(strategy);
    const std::vector<Tensor> got = session->Run(fetches);
    const auto sum = static_cast<float>(n * (n + 1)) / 2;
    size_t i = 0;
    for (int r = 0; r < n; ++r) {
      EXPECT_EQ(got[i++].scalar<float>(), sum);
      EXPECT_EQ(got[i++].scalar<float>(), sum / static_cast<float>(n));
    }
    EXPECT_EQ(got[i++].scalar<float>(), sum);
    EXPECT_EQ(got[i++].scalar<float>(), sum / static_cast<float>(n));
    for (int r = 0; r < n; ++r) {
      EXPECT_EQ(got[i++].scalar<float>(), sum);
      EXPECT_EQ(got[i++].scalar<float>(), 2 * sum);
    }
  }
}

TEST_F(StrategyTest, ReplicasMakeTheSameCalls) {
  const StrategyPtr strategy = MirroredOnCpus(2);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                strategy->Run(graph_, [&](ReplicaContext& replica) {
                  const Output one = ops::Const(graph_, 1.0f);
                  if (replica.local_replica() == 0) replica.AllReduce(Reduction::kSum, one);
                  return std::vector<Output>();
                });
              }),
              AllOf(HasSubstr("replica 0 has 1"), HasSubstr("replica 1 has 0")));
  EXPECT_THROW(strategy->Reduce(Reduction::kSum, {ops::Const(graph_, 1.0f)}), InvalidArgumentError);
}

TEST_F(StrategyTest, OneProcessAgreesWithItself) {
  const StrategyPtr strategy = Default();
  WorkerMeeting& meeting = strategy->meeting();
  EXPECT_THAT(meeting.Gather("x"), ElementsAre("x"));
  EXPECT_FALSE(meeting.Any(false));
  EXPECT_TRUE(meeting.Any(true));
  meeting.Barrier();
  meeting.ExpectAgreement("nothing", {{"a", "b"}});
}

}  // namespace
}  // namespace cohort::distribute
