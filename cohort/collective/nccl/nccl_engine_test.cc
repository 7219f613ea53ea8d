// The engine of NCCL on a fake library: which members use it, and what happens when a member hangs, fails or is lost.
#include "cohort/collective/nccl/nccl_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/collective/testing/in_graph.h"
#include "cohort/core/mutex.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/variables.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using testing::Await;
using testing::Begin;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::TestCluster;
using testing::TestGroup;

constexpr int kMembers = 3;

// Stands for the end of a process. The processes of several members may end at the same time.
class EndOfProcess {
 public:
  EndOfProcess() {
    Set("");
    AbortGuard::ReplaceEndOfProcess([](const std::string& why) {
      Set(why);
      cuda::InstalledFakeNccl().Heal();
    });
  }
  ~EndOfProcess() { AbortGuard::ReplaceEndOfProcess(nullptr); }
  EndOfProcess(const EndOfProcess&) = delete;
  EndOfProcess& operator=(const EndOfProcess&) = delete;
  // Returns the reason of the last process that has ended.
  static std::string why() {
    MutexLock lock(mu_);
    return why_;
  }

 private:
  static void Set(const std::string& why) {
    MutexLock lock(mu_);
    why_ = why;
  }
  static inline Mutex mu_;
  static inline std::string why_ COHORT_GUARDED_BY(mu_);
};

class NcclEngineTest : public ::testing::Test {
 protected:
  NcclEngineTest() : nccl_((RegisterAll(), cuda::InstalledFakeNccl())) {}
  void SetUp() override { COHORT_NEEDS_FAKE("the members of its library fail when the test says so"); }
  ~NcclEngineTest() override {
    nccl_.Heal();
    nccl_.set_absent(false);
  }

  // Begins an all-reduce of `count` ones at each member; the member `odd` brings one element more.
  static std::vector<std::future<Outcome>> BeginAll(TestGroup& group, int64_t count, int odd = -1) {
    std::vector<std::future<Outcome>> futures;
    for (const auto& member : group.members()) {
      futures.push_back(Begin([&](Communicator::Done done) {
        Tensor input(DType::kFloat32, Shape{member->rank() == odd ? count + 1 : count});
        std::fill_n(input.data<float>(), input.num_elements(), 1.0f);
        member->AllReduceAsync({1, "w"}, std::move(input), ReduceOp::kSum, std::move(done));
      }));
    }
    return futures;
  }
  // Expects that all members get `sum`.
  static void ExpectWorks(TestGroup& group, float sum = kMembers) {
    auto futures = BeginAll(group, 100);
    for (auto& future : futures) {
      const Outcome outcome = Await(future);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
      EXPECT_EQ(outcome.value.ToVector<float>(), std::vector<float>(100, sum));
    }
  }
  // Waits until all members have failed. Returns the errors. No time is compared, because the machine may be busy: the
  // errors say which limit has passed, and limits.h compares the limits with kNcclNamedWithin.
  static std::vector<std::string> Errors(std::vector<std::future<Outcome>> futures) {
    std::vector<std::string> errors;
    for (auto& future : futures) {
      const Outcome outcome = Await(future);
      EXPECT_FALSE(outcome.status.ok());
      errors.push_back(outcome.status.ToString());
    }
    return errors;
  }
  // A later generation of the group works, with a new identifier.
  void ExpectNextGenerationWorks(TestCluster& cluster) {
    const int ids = nccl_.ids();
    GroupOptions options;
    options.generation = 2;
    TestGroup group(cluster, options);
    ASSERT_TRUE(group.joined());
    EXPECT_EQ(nccl_.ids(), ids + 1);
    ExpectWorks(group);
  }

  cuda::FakeNccl& nccl_;
};

testing::Layout Hosts() { return {"in_process", kMembers, 1, Algorithm::kAuto, 1, "GPU"}; }
testing::Layout OneHost() { return {"in_process", kMembers, 1, Algorithm::kAuto, 0, "GPU"}; }

// The limits by which a lost, frozen or different member is named are shorter than the time that is promised. NCCL's
// own are compared in limits.h.
TEST(NcclLimitsTest, APeerThatIsSilentIsLostInTime) { EXPECT_LT(ServerOptions().silence_limit, kNcclNamedWithin); }

TEST_F(NcclEngineTest, AutoUsesItWhereEachMemberHasACard) {
  TestCluster cluster(Hosts());
  TestGroup group(cluster, {});
  ASSERT_TRUE(group.joined());
  const int64_t before = nccl_.collectives();
  ExpectWorks(group);
  EXPECT_EQ(nccl_.collectives(), before + 1);
}

TEST_F(NcclEngineTest, MembersOnOneCardReduceThroughHostMemory) {
  TestCluster cluster(OneHost());
  const int64_t before = nccl_.collectives();
  for (const Algorithm algorithm : {Algorithm::kAuto, Algorithm::kNccl}) {
    GroupOptions options;
    options.key = 1 + static_cast<int64_t>(algorithm);
    options.algorithm = algorithm;
    TestGroup group(cluster, options);
    ASSERT_TRUE(group.joined());
    ExpectWorks(group);
  }
  EXPECT_EQ(nccl_.collectives(), before);
}

TEST_F(NcclEngineTest, WithoutTheLibraryAutoUsesPlansAndNcclIsRefused) {
  nccl_.set_absent(true);
  TestCluster cluster(Hosts());
  const int64_t before = nccl_.collectives();
  {
    TestGroup group(cluster, {});
    ASSERT_TRUE(group.joined());
    ExpectWorks(group);
  }
  EXPECT_EQ(nccl_.collectives(), before);
  GroupOptions options;
  options.key = 2;
  options.algorithm = Algorithm::kNccl;
  TestGroup refused(cluster, options);
  for (const Status& error : refused.errors()) {
    EXPECT_THAT(error.message(), AllOf(HasSubstr("NCCL cannot be used at rank 0"), HasSubstr("this fake is absent")));
  }
}

TEST_F(NcclEngineTest, MembersOnTheHostsDevicesAreRefused) {
  TestCluster cluster({"in_process", 2, 1});
  GroupOptions options;
  options.algorithm = Algorithm::kNccl;
  TestGroup group(cluster, options);
  for (const Status& error : group.errors()) {
    EXPECT_EQ(error.code(), Code::kUnimplemented);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("CPU:0"), HasSubstr("use AUTO")));
  }
}

TEST_F(NcclEngineTest, AFailedConnectionIsReported) {
  nccl_.Break(1, cuda::NcclFault::kRefuseInit);
  TestCluster cluster(Hosts());
  TestGroup group(cluster, {});
  for (const Status& error : group.errors()) {
    EXPECT_THAT(error.message(), AllOf(HasSubstr("rank 1 (/job:worker"), HasSubstr("invalid usage")));
  }
}

TEST_F(NcclEngineTest, AKernelThatHangsFailsTheGroup) {
  TestCluster cluster(Hosts());
  {
    TestGroup group(cluster, {});
    ASSERT_TRUE(group.joined());
    ExpectWorks(group);
    nccl_.Break(1, cuda::NcclFault::kHangInKernel);
    EXPECT_THAT(Errors(BeginAll(group, 10)), Each(AllOf(HasSubstr("'w' (instance 1, round 1)"), HasSubstr("within 4 s"),
                                                        HasSubstr("it is on all devices"))));
  }
  nccl_.Heal();
  ExpectNextGenerationWorks(cluster);
}

TEST_F(NcclEngineTest, AnErrorThatComesLateIsReportedByItsMember) {
  TestCluster cluster(Hosts());
  {
    TestGroup group(cluster, {});
    ASSERT_TRUE(group.joined());
    ExpectWorks(group);
    nccl_.Break(2, cuda::NcclFault::kHangInKernel);  // or the others could end before the error comes
    nccl_.Break(2, cuda::NcclFault::kFailLate);
    EXPECT_THAT(Errors(BeginAll(group, 10)),
                Each(AllOf(HasSubstr("rank 2 (/job:worker"), HasSubstr("unhandled cuda error"))));
  }
  nccl_.Heal();
  ExpectNextGenerationWorks(cluster);
}

// The member that is inside of a call cannot abort. So its process ends, and the error names it.
TEST_F(NcclEngineTest, AMemberThatHangsInACallIsNamedAndItsProcessEnds) {
  const EndOfProcess end;
  TestCluster cluster(Hosts());
  {
    TestGroup group(cluster, {});
    ASSERT_TRUE(group.joined());
    ExpectWorks(group);
    nccl_.Break(1, cuda::NcclFault::kHangInCall);
    auto futures = BeginAll(group, 10);
    std::vector<std::future<Outcome>> others;
    others.push_back(std::move(futures[0]));
    others.push_back(std::move(futures[2]));
    EXPECT_THAT(Errors(std::move(others)),
                Each(AllOf(HasSubstr("rank 1 (/job:worker"), HasSubstr("in a call of NCCL"), HasSubstr(" 4 s"))));
    EXPECT_FALSE(Await(futures[1]).status.ok());
  }
  EXPECT_THAT(EndOfProcess::why(), AllOf(HasSubstr("within 5 s"), HasSubstr("rank 1 (/job:worker")));
}

// No member is left that asks the others. Each process notices by itself that its call does not return.
TEST_F(NcclEngineTest, CallsThatHangAtAllMembersFailTheGroup) {
  const EndOfProcess end;
  TestCluster cluster(Hosts());
  {
    TestGroup group(cluster, {});
    ASSERT_TRUE(group.joined());
    ExpectWorks(group);
    for (int rank = 0; rank < kMembers; ++rank) nccl_.Break(rank, cuda::NcclFault::kHangInCall);
    auto futures = BeginAll(group, 10);
    for (auto& future : futures) EXPECT_FALSE(Await(future).status.ok());
  }
  EXPECT_THAT(EndOfProcess::why(), AllOf(HasSubstr("within 5 s"), HasSubstr("is in a call of NCCL 2.28.7 that has not"),
                                         HasSubstr("(/job:worker")));
}

TEST_F(NcclEngineTest, AnAbortThatHangsEndsTheProcessWithTheSuspect) {
  const EndOfProcess end;
  TestCluster cluster(Hosts());
  {
    TestGroup group(cluster, {});
    ASSERT_TRUE(group.joined());
    nccl_.Break(0, cuda::NcclFault::kHangInAbort);
    nccl_.Break(2, cuda::NcclFault::kHangInKernel);  // or the others could end before the error comes
    nccl_.Break(2, cuda::NcclFault::kFailLate);
    auto futures = BeginAll(group, 10);
    std::vector<std::future<Outcome>> others;
    others.push_back(std::move(futures[1]));
    others.push_back(std::move(futures[2]));
    EXPECT_THAT(Errors(std::move(others)), Each(HasSubstr("rank 2 (/job:worker")));
    EXPECT_FALSE(Await(futures[0]).status.ok());
  }
  EXPECT_THAT(EndOfProcess::why(), AllOf(HasSubstr("within 5 s"), HasSubstr("rank 2 (/job:worker")));
}

TEST_F(NcclEngineTest, ADifferentMemberIsNamed) {
  TestCluster cluster(Hosts());
  TestGroup group(cluster, {});
  ASSERT_TRUE(group.joined());
  const int64_t before = nccl_.calls();
  EXPECT_THAT(Errors(BeginAll(group, 10, /*odd=*/2)), Each(AllOf(HasSubstr("float32[11]"), HasSubstr("rank 2"))));
  EXPECT_EQ(nccl_.calls(), before);
}

// The graph of one worker lacks a collective. Nothing of it gets to NCCL.
TEST_F(NcclEngineTest, AMemberWithAnotherScheduleIsNamedBeforeNcclIsCalled) {
  TestCluster cluster({"in_process", 4, 2, Algorithm::kAuto, 0, "GPU"});
  const int64_t before = nccl_.calls();
  const auto outcomes = testing::OnThreads(2, [&](int task) {
    Graph graph;
    const DeviceScope scope(graph, StrCat("/job:worker/task:", task, "/device:GPU:", task));
    ops::CollectiveKeys keys;
    keys.members = {"/job:worker/task:0/device:GPU:0", "/job:worker/task:1/device:GPU:1"};
    std::vector<Output> sums;
    for (const char* name : {"a", "b"}) {
      if (task == 1 && std::string(name) == "b") continue;
      keys.instance_key = ops::NextInstanceKey(graph);
      sums.push_back(
          ops::CollectiveReduce(ops::Const(graph, Tensor::Zeros(DType::kFloat32, {7})), keys, "Add", "Id", name));
    }
    Session session(graph, cluster.server(task).Target());
    session.Run({}, sums);
  });
  for (const Status& status : outcomes) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 1 (/job:worker/replica:0/task:1"),
                                        HasSubstr("number 1 of its schedule is "), HasSubstr("'b' (instance 2)")));
  }
  EXPECT_EQ(nccl_.calls(), before);
}

// Its process ends in order, while the others are inside of the collective.
TEST_F(NcclEngineTest, AMemberWhoseServerStopsIsNamed) {
  TestCluster cluster(Hosts());
  TestGroup group(cluster, {});
  ASSERT_TRUE(group.joined());
  ExpectWorks(group);
  nccl_.Break(1, cuda::NcclFault::kHangInKernel);
  const int64_t before = nccl_.calls();
  auto futures = BeginAll(group, 10);
  while (nccl_.calls() < before + kMembers) std::this_thread::yield();
  cluster.Stop(1);
  std::vector<std::future<Outcome>> others;
  others.push_back(std::move(futures[0]));
  others.push_back(std::move(futures[2]));
  EXPECT_THAT(Errors(std::move(others)), Each(AllOf(HasSubstr("'w' (instance 1, round 1)"), HasSubstr("/task:1"))));
  EXPECT_FALSE(Await(futures[1]).status.ok());
}

// A connection of NCCL's breaks first, and the group's own connection tells the reason.
TEST_F(NcclEngineTest, TheCauseOfARemoteErrorIsAwaited) {
  TestCluster cluster(Hosts());
  TestGroup group(cluster, {});
  ASSERT_TRUE(group.joined());
  ExpectWorks(group);
  nccl_.Break(1, cuda::NcclFault::kHangInKernel);
  nccl_.Break(0, cuda::NcclFault::kRemoteError);
  auto futures = BeginAll(group, 10);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  FailGroups(cluster.server(2), 1, Status(Code::kUnavailable, "the test's cause"));
  EXPECT_THAT(Errors(std::move(futures)), Each(HasSubstr("the test's cause")));
}

TEST_F(NcclEngineTest, FloatingPointMaximaGoThroughHostMemory) {
  TestCluster cluster(Hosts());
  GroupOptions options;
  options.algorithm = Algorithm::kNccl;
  TestGroup group(cluster, options);
  ASSERT_TRUE(group.joined());
  const int64_t before = nccl_.collectives();
  for (const Outcome& outcome : group.Run([](Communicator&member, Communicator::Done done) {
         const float value = member.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
         member.AllReduceAsync({1, "most"}, Tensor::Scalar(value), ReduceOp::kMax, std::move(done));
       })) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_TRUE(std::isnan(outcome.value.scalar<float>()));
  }
  EXPECT_EQ(nccl_.collectives(), before);
}

// The same of a graph, whose tensors are on the card: each copy is between the card and pinned memory.
TEST_F(NcclEngineTest, OpsOfAGraphOnOneCardGoThroughPinnedMemory) {
  const cuda::FakeControl& control = cuda::RegisterFakeCuda().control();
  TestCluster cluster({"in_process", 2, 1, Algorithm::kAuto, 0, "GPU"});
  Graph graph;
  ops::CollectiveKeys keys;
  keys.members = {"/job:worker/task:0/device:GPU:0", "/job:worker/task:1/device:GPU:0"};
  keys.instance_key = ops::NextInstanceKey(graph);
  std::vector<Node*> updates;
  std::vector<Output> reads;
  for (const std::string& member : keys.members) {
    const DeviceScope scope(graph, member);
    const ops::Variable w(graph, Tensor::Zeros(DType::kFloat32, {1000}), {.name = StrCat("w", reads.size())});
    updates.push_back(w.AssignAdd(ops::CollectiveReduce(w + 1.0f, keys)));
    reads.push_back(w);
  }
  Session session(graph, cluster.server(0).Target());
  session.Run(ops::GlobalVariablesInitializer(graph));
  const int64_t collectives = nccl_.collectives(), pageable = control.pageable_copies();
  const int64_t to_host = control.bytes_to_host(), from_host = control.bytes_from_host();
  session.Run({}, {}, updates);
  EXPECT_EQ(nccl_.collectives(), collectives);
  constexpr int64_t kBytes = 2 * 1000 * sizeof(float);
  EXPECT_GE(control.bytes_to_host(), to_host + kBytes);
  EXPECT_GE(control.bytes_from_host(), from_host + kBytes);
  EXPECT_EQ(control.pageable_copies(), pageable);
  for (const Tensor& value : session.Run({}, reads)) EXPECT_EQ(value.ToVector<float>(), std::vector<float>(1000, 2));
}

// Ops of a graph: the tensors stay on the devices.
TEST_F(NcclEngineTest, OpsOfAGraphUseIt) {
  cuda::FakeDriver& driver = cuda::RegisterFakeCuda();
  // Two devices of each task, so that the members are on different cards.
  TestCluster cluster({"in_process", 4, 2, Algorithm::kAuto, 0, "GPU"});
  Graph graph;
  ops::CollectiveKeys keys;
  keys.members = {"/job:worker/task:0/device:GPU:0", "/job:worker/task:1/device:GPU:1"};
  keys.instance_key = ops::NextInstanceKey(graph);
  std::vector<Output> reads;
  std::vector<Node*> updates, plain;
  for (const std::string& member : keys.members) {
    const DeviceScope scope(graph, member);
    const ops::Variable w(graph, Tensor::Zeros(DType::kFloat32, {1000}), {.name = StrCat("w", reads.size())});
    updates.push_back(w.AssignAdd(ops::CollectiveReduce(w + 1.0f, keys)));
    plain.push_back(w.AssignAdd(w * 0.0f));
    reads.push_back(w);
  }
  Session session(graph, cluster.server(0).Target());
  session.Run(ops::GlobalVariablesInitializer(graph));
  const int64_t before = nccl_.collectives();
  session.Run({}, {}, updates);
  const int64_t bytes = driver.control().bytes_to_host();
  session.Run({}, {}, updates);
  EXPECT_EQ(driver.control().bytes_to_host(), bytes);
  EXPECT_EQ(nccl_.collectives(), before + 2);
  for (const Tensor& value : session.Run({}, reads)) {
    EXPECT_EQ(value.ToVector<float>(), std::vector<float>(1000, 2 + 2 * 3));
  }
  // A step with NCCL's work is never a CUDA graph. The same step without it is one from its second run on.
  const int64_t graphs = driver.control().graph_launches();
  for (int step = 0; step < 4; ++step) session.Run({}, {}, updates);
  EXPECT_EQ(driver.control().graph_launches(), graphs);
  for (int step = 0; step < 4; ++step) session.Run({}, {}, plain);
  EXPECT_GT(driver.control().graph_launches(), graphs);
}

}  // namespace
}  // namespace cohort::collective
