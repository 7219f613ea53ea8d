// Tests the lease of a client's sessions on a task. The test is a master that sends the messages of the step protocol
// itself. It checks what happens to an executable when the client's connection closes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cluster/testing/recording_handler.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using testing::LocalCluster;
using testing::RecordingHandler;
using testing::Soon;

constexpr char kPs[] = "/job:ps/replica:0/task:0";
constexpr char kClient[] = "/job:client/replica:0/task:9";
const ExecutableKey kKey{11, 1};

class LeaseTest : public ::testing::TestWithParam<std::string> {
 protected:
  void Start(std::chrono::milliseconds reconnect_limit) {
    ServerOptions options = LocalCluster::FastOptions();
    options.protocol = GetParam();
    options.reconnect_limit = reconnect_limit;
    cluster_ = std::make_unique<LocalCluster>(std::map<std::string, int>{{"ps", 1}}, options);
    node_ = ServerDirectory::Global().Find(cluster_->target("ps", 0));
    TransportOptions transport;
    transport.token = options.token;
    transport_ = MakeTransport(GetParam(), handler_, transport);
    TaskIdentity identity;
    identity.task = kClient;
    identity.incarnation = 7;
    identity.op_fingerprint = OpRegistry::Global().Fingerprint();
    identity.protocol_version = kProtocolVersion;
    identity.cluster = ClusterToJson(ClusterSpec());
    transport_->SetIdentity(identity);
    Connect();
  }
  void Connect() { connection_ = transport_->Dial(cluster_->spec().task_address("ps", 0), kPs, Soon()); }
  // Closes the connection. Returns when the server has noticed it.
  void Disconnect() {
    connection_->Close(Status(Code::kCancelled, "the test closes it"));
    Await([&] { return node_->peers().Find(kClient) == nullptr; });
  }
  void Await(const std::function<bool()>& condition) {
    while (!condition() && std::chrono::steady_clock::now() < deadline_) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }

  void Register() {
    ExecutableSpec spec;
    spec.key = kKey;
    spec.tasks = {kPs};
    spec.partitions.push_back({StrCat(kPs, "/device:CPU:0"), std::make_unique<Graph>()});
    ops::Const(*spec.partitions[0].graph, 1.0f);
    connection_->Send(EncodeRegister(1, spec));
    const RegisteredReply reply = DecodeRegistered(handler_.Messages(++received_).back());
    ASSERT_TRUE(reply.status.ok()) << reply.status.ToString();
    ASSERT_EQ(node_->local_task()->num_executables(), 1u);
  }
  Status Step() {
    connection_->Send(EncodeStartStep({kKey, static_cast<int64_t>(received_)}, received_, {}));
    return DecodeStepDone(handler_.Messages(++received_).back()).status;
  }

  const std::chrono::steady_clock::time_point deadline_ = Soon();
  std::unique_ptr<LocalCluster> cluster_;
  std::shared_ptr<ClusterNode> node_;
  RecordingHandler handler_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<Connection> connection_;
  size_t received_ = 0;

  void TearDown() override {
    if (transport_ != nullptr) transport_->Shutdown();
  }
};
INSTANTIATE_TEST_SUITE_P(All, LeaseTest, ::testing::ValuesIn(TransportProtocols()),
                         [](const auto& info) { return info.param; });

TEST_P(LeaseTest, AClientThatConnectsAgainWithinTheLimitGoesOn) {
  Start(std::chrono::hours(1));
  Register();
  EXPECT_TRUE(Step().ok());
  Disconnect();
  Connect();
  const Status status = Step();
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST_P(LeaseTest, AClientThatDoesNotComeBackHoldsNothing) {
  Start(std::chrono::milliseconds(50));
  Register();
  Disconnect();
  Await([&] { return node_->local_task()->num_executables() == 0; });
  Connect();
  const Status status = Step();
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_THAT(status.message(), HasSubstr("does not know executable 1 of session 11"));
}

TEST_P(LeaseTest, WithoutALimitTheSessionEndsWithTheLastConnection) {
  Start(std::chrono::milliseconds(0));
  Register();
  const std::shared_ptr<Connection> first = connection_;
  const std::weak_ptr<Connection> accepted = node_->peers().Find(kClient);
  Connect();  // a second connection of the same process
  first->Close(Status(Code::kCancelled, "the test closes it"));
  Await([&] { return accepted.expired(); });  // the server has handled the end
  EXPECT_TRUE(Step().ok());
  Disconnect();
  Await([&] { return node_->local_task()->num_executables() == 0; });
}

}  // namespace
}  // namespace cohort
