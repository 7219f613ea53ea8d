// What a server does with messages that no Session sends. The test has the token and sends messages of the step
// protocol itself, as a client or as a task of the cluster. The server must refuse them with an error, and must go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "cohort/checkpoint/ops.h"
#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cluster/testing/recording_handler.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/cohort.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LocalCluster;
using testing::RecordingHandler;
using testing::Soon;

constexpr char kPs[] = "/job:ps/replica:0/task:0";
constexpr char kClient[] = "/job:client/replica:0/task:9";

// One process that is connected to the parameter server. The test owns it.
class Peer {
 public:
  // `address` is "" for a client.
  Peer(const LocalCluster& cluster, const std::string& protocol, const std::string& task, const std::string& address,
       uint64_t op_fingerprint = OpRegistry::Global().Fingerprint()) {
    TransportOptions options;
    options.token = LocalCluster::FastOptions().token;
    transport_ = MakeTransport(protocol, handler_, options);
    TaskIdentity identity;
    identity.task = task;
    identity.address = address;
    identity.incarnation = 7;
    identity.op_fingerprint = op_fingerprint;
    identity.protocol_version = kProtocolVersion;
    identity.cluster = ClusterToJson(address.empty() ? ClusterSpec() : cluster.spec());
    transport_->SetIdentity(identity);
    connection_ = transport_->Dial(cluster.spec().task_address("ps", 0), kPs, Soon());
  }
  ~Peer() { transport_->Shutdown(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Sends `message`. Returns the answer.
  Message Ask(Message message) {
    connection_->Send(std::move(message));
    return handler_.Messages(++received_).back();
  }
  Status Register(const ExecutableSpec& spec) { return DecodeRegistered(Ask(EncodeRegister(1, spec))).status; }
  Status Run(const ExecutableSpec& spec, std::vector<Tensor> args) {
    const auto step = static_cast<int64_t>(received_);
    return DecodeStepDone(Ask(EncodeStartStep({spec.key, step}, step, std::move(args)))).status;
  }
  void Send(Message message) { connection_->Send(std::move(message)); }
  // Waits until the server has closed the connection. Returns the reason as this side sees it.
  Status WhyClosed() { return handler_.WhyClosed(connection_); }
  bool closed() const { return connection_->closed(); }

 private:
  RecordingHandler handler_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<Connection> connection_;
  size_t received_ = 0;
};

class HostilePeerTest : public ::testing::TestWithParam<std::string> {
 protected:
  HostilePeerTest() {
    ServerOptions options = LocalCluster::FastOptions();
    options.protocol = GetParam();
    cluster_ = std::make_unique<LocalCluster>(std::map<std::string, int>{{"ps", 1}, {"worker", 2}}, options);
    node_ = ServerDirectory::Global().Find(cluster_->target("ps", 0));
  }
  std::unique_ptr<Peer> Client() { return std::make_unique<Peer>(*cluster_, GetParam(), kClient, ""); }
  // Stops a worker and connects in its name.
  std::unique_ptr<Peer> Worker(int task) {
    cluster_->Stop("worker", task);
    return std::make_unique<Peer>(*cluster_, GetParam(), StrCat("/job:worker/replica:0/task:", task),
                                  cluster_->spec().task_address("worker", task));
  }
  static ExecutableSpec Spec(int32_t id) {
    ExecutableSpec spec;
    spec.key = {11, id};
    spec.tasks = {kPs};
    spec.partitions.push_back({StrCat(kPs, "/device:CPU:0"), std::make_unique<Graph>()});
    return spec;
  }
  // Returns a signature that gives back the float32 scalar that it is fed.
  static ExecutableSpec Echo(int32_t id, int64_t arg = 0, int64_t ret = 0) {
    ExecutableSpec spec = Spec(id);
    Graph& g = *spec.partitions[0].graph;
    const Output fed = g.Op("_Arg").Attr("T", DType::kFloat32).Attr("index", 0).Finish1();
    fed.node->SetAttr("index", arg);  // a graph that checks nothing
    g.Op("_Retval").Input(fed).Attr("index", 0).Finish()->SetAttr("index", ret);
    spec.num_args = 1;
    spec.num_rets = 1;
    return spec;
  }
  void ExpectServes(Peer& peer) {
    const ExecutableSpec spec = Echo(100);
    const Status registered = peer.Register(spec);
    ASSERT_TRUE(registered.ok()) << registered.ToString();
    const Status ran = peer.Run(spec, {Tensor::Scalar(1.0f)});
    EXPECT_TRUE(ran.ok()) << ran.ToString();
  }

  std::unique_ptr<LocalCluster> cluster_;
  std::shared_ptr<ClusterNode> node_;
};
INSTANTIATE_TEST_SUITE_P(All, HostilePeerTest, ::testing::ValuesIn(TransportProtocols()),
                         [](const auto& info) { return info.param; });

// Such a client may know other ops than the server, so that graphs could mean something else on the two sides.
TEST_P(HostilePeerTest, AClientThatOnlyAsksForTheStatusRunsNoGraph) {
  Peer asks(*cluster_, GetParam(), kClient, "", /*op_fingerprint=*/0);
  asks.Send(EncodeRegister(1, Echo(1)));
  EXPECT_FALSE(asks.WhyClosed().ok());
  ExpectServes(*Client());
}

TEST_P(HostilePeerTest, IndicesOfArgumentsAndResultsAreChecked) {
  const auto peer = Client();
  int32_t id = 0;
  for (const int64_t index : {int64_t{1}, int64_t{1} << 32, int64_t{1} << 33, std::numeric_limits<int64_t>::max()}) {
    SCOPED_TRACE(index);
    for (const ExecutableSpec& spec : {Echo(++id, index, 0), Echo(++id, 0, index)}) {
      const Status registered = peer->Register(spec);
      EXPECT_EQ(registered.code(), Code::kInvalidArgument) << registered.ToString();
      EXPECT_THAT(registered.message(), HasSubstr(StrCat("got ", index)));
    }
  }
  // No graph has a negative index, so the message cannot be read.
  for (const int64_t index : {int64_t{-1}, -(int64_t{1} << 33), std::numeric_limits<int64_t>::min()}) {
    SCOPED_TRACE(index);
    for (const ExecutableSpec& spec : {Echo(++id, index, 0), Echo(++id, 0, index)}) {
      const auto negative = Client();
      negative->Send(EncodeRegister(1, spec));
      EXPECT_FALSE(negative->WhyClosed().ok());
    }
  }
  EXPECT_EQ(node_->local_task()->num_executables(), 0u);
  ExpectServes(*peer);
}

TEST_P(HostilePeerTest, AFedValueOfAnotherDTypeFailsTheStep) {
  const auto peer = Client();
  const ExecutableSpec spec = Echo(1);
  ASSERT_TRUE(peer->Register(spec).ok());
  const Status ran = peer->Run(spec, {Tensor::Scalar(uint8_t{1})});
  EXPECT_THAT(ran.message(), HasSubstr("expected a fed value of dtype float32; got uint8"));
  ExpectServes(*peer);
}

TEST_P(HostilePeerTest, OnlyAStepWithoutValuesIsRepeated) {
  const auto peer = Client();
  const ExecutableSpec spec = Echo(1);
  ASSERT_TRUE(peer->Register(spec).ok());
  StepStart start(1);
  start.repeat = true;
  const Status ran = DecodeStepDone(peer->Ask(EncodeStartStep({spec.key, 1}, start, {Tensor::Scalar(1.0f)}))).status;
  EXPECT_EQ(ran.code(), Code::kInvalidArgument) << ran.ToString();
  EXPECT_THAT(ran.message(), HasSubstr("1 fed values and 1 results"));
  ExpectServes(*peer);
}

// The completion of the step finds that the result cannot be sent, on a thread that catches nothing.
TEST_P(HostilePeerTest, AResultThatCannotTravelIsAnErrorOfTheStep) {
  const auto peer = Client();
  ExecutableSpec spec = Spec(1);
  Graph& g = *spec.partitions[0].graph;
  const ops::Variable v = testing::VariableOn(g, "/job:ps/task:0", ops::Const(g, 1.0f), "v");
  g.Op("_Retval").Input(v.handle()).Attr("index", 0).Finish();
  spec.num_rets = 1;
  const Status registered = peer->Register(spec);
  ASSERT_TRUE(registered.ok()) << registered.ToString();
  const Status ran = peer->Run(spec, {});
  EXPECT_EQ(ran.code(), Code::kInvalidArgument) << ran.ToString();
  EXPECT_THAT(ran.message(), HasSubstr("expected tensors in host memory to send"));
  ExpectServes(*peer);
}

TEST_P(HostilePeerTest, OnlyTheChiefSaysThatTrainingIsDone) {
  const auto client = Client();
  client->Send(EncodeTrainingDone(1));
  EXPECT_FALSE(client->WhyClosed().ok());
  const auto other = Worker(1);
  other->Send(EncodeTrainingDone(1));
  EXPECT_FALSE(other->WhyClosed().ok());
  EXPECT_FALSE(node_->chief().training_done());
  const auto chief = Worker(0);
  EXPECT_EQ(DecodeTrainingDoneAck(chief->Ask(EncodeTrainingDone(5))), 5u);
  ExpectServes(*chief);  // the server notes it after the answer, and before the next message
  EXPECT_TRUE(node_->chief().training_done());
}

TEST_P(HostilePeerTest, OnlyTheChiefOrAClientResetsContainers) {
  Graph g;
  const ops::Variable v = testing::VariableOn(g, "/job:ps/task:0", ops::Const(g, 4.0f), "kept");
  Session session(g, cluster_->target("ps", 0));
  session.Run(v.initializer());
  const auto worker = Worker(1);
  worker->Send(EncodeResetContainer(""));
  EXPECT_FALSE(worker->WhyClosed().ok());
  EXPECT_EQ(session.Run(v.value()).scalar<float>(), 4.0f);
  const auto client = Client();
  client->Send(EncodeResetContainer(""));
  ExpectServes(*client);  // the answer comes after the message before
  EXPECT_THROW(session.Run(v.value()), Error);
}

// The graphs of the worker's sessions are those of another process for the parameter server.
TEST_P(HostilePeerTest, AllowPathBoundsTheFilesOfRemoteGraphs) {
  const testing::TempFolder folder;
  const std::string allowed = folder / "allowed";
  CreateDirectories(allowed);
  ServerOptions options = LocalCluster::FastOptions();
  options.protocol = GetParam();
  options.allow_path = {allowed};
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  Graph g;
  const DeviceScope scope(g, "/job:ps/task:0");
  const Output path = ops::Placeholder(g, DType::kString, Shape{});
  const Output names = ops::Const(g, Tensor::Vector<std::string>({"v"}));
  const Output slices = ops::Const(g, Tensor::Vector<std::string>({""}));
  Node* save = ops::SaveV2(path, names, slices, {ops::Const(g, 4.0f)});
  const Output restored = ops::RestoreV2(path, names, slices, {DType::kFloat32}).front();
  Session remote(g, cluster.target("worker", 0));
  const auto run = [&](Session& session, const std::string& prefix) {
    return ErrorOf([&] {
      session.Run({{path, Tensor::Scalar(prefix)}}, {}, {save});
      EXPECT_EQ(session.Run({{path, Tensor::Scalar(prefix)}}, {restored})[0].scalar<float>(), 4.0f);
    });
  };
  EXPECT_EQ(run(remote, allowed + "/model"), "no error");
  std::filesystem::create_symlink(folder.path(), allowed + "/out");
  for (const std::string& prefix : {folder / "model", allowed + "/../model", allowed + "/out/model"}) {
    EXPECT_THAT(run(remote, prefix), AllOf(HasSubstr("PermissionDenied"), HasSubstr(allowed))) << prefix;
  }
  EXPECT_FALSE(FileExists(folder / "model.index"));
  // The server's own program may use every path, and a reset does not take the bound away.
  Session own(g, cluster.target("ps", 0));
  EXPECT_EQ(run(own, folder / "model"), "no error");
  Session::Reset(cluster.target("worker", 0));
  EXPECT_THAT(ErrorOf([&] {
                remote.Run({{path, Tensor::Scalar(folder / "model")}}, {restored});
              }),
              HasSubstr("PermissionDenied"));
}

TEST_P(HostilePeerTest, AllowPathBoundsOpsThatReadFiles) {
  const testing::TempFolder folder;
  CreateDirectories(folder / "allowed");
  for (const char* name : {"secret", "allowed/words"}) WriteFileAtomically(folder / name, "a\nb\n");
  ServerOptions options = LocalCluster::FastOptions();
  options.protocol = GetParam();
  options.allow_path = {folder / "allowed"};
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  Graph g;
  const DeviceScope scope(g, "/job:ps/task:0");
  const Output path = ops::Placeholder(g, DType::kString, Shape{});
  const Output text = g.Op("ReadFile").Input(path).Finish1();
  const Output table = g.Op("HashTableV2")
                           .Attr("key_dtype", DType::kString)
                           .Attr("value_dtype", DType::kInt64)
                           .Attr("shared_name", "words")
                           .Finish1();
  Node* fill = g.Op("InitializeTableFromTextFileV2")
                   .Input(table)
                   .Input(path)
                   .Attr("key_index", -2)
                   .Attr("value_index", -1)
                   .Finish();
  Session remote(g, cluster.target("worker", 0));
  const auto run = [&](const std::string& name, const std::vector<Output>& fetches, const std::vector<Node*>& targets) {
    return ErrorOf([&] { remote.Run({{path, Tensor::Scalar(folder / name)}}, fetches, targets); });
  };
  EXPECT_EQ(run("allowed/words", {text}, {fill}), "no error");
  EXPECT_THAT(run("secret", {text}, {}), HasSubstr("PermissionDenied"));
  EXPECT_THAT(run("secret", {}, {fill}), HasSubstr("PermissionDenied"));
}

TEST_P(HostilePeerTest, TheTasksOwnContainerIsNotReset) {
  const auto client = Client();
  client->Send(EncodeResetContainer("_task"));
  EXPECT_FALSE(client->WhyClosed().ok());
}

}  // namespace
}  // namespace cohort
