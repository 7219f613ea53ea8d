// Tests a cluster of servers in one process: placement, steps over several tasks, failures and restarts of tasks, and
// the end of training. The suites run over each transport, and those of steps on each kind of device.
#include "cohort/cluster/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>
#include <tuple>

#include "cohort/cluster/transport.h"
#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/runtime/testing/device_kinds.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::LocalCluster;
using ::testing::Not;
using testing::VariableOn;

// Runs over each transport.
class ServerTest : public ::testing::TestWithParam<std::string> {
 protected:
  static ServerOptions Options() {
    ServerOptions options = LocalCluster::FastOptions();
    options.protocol = GetParam();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(All, ServerTest, ::testing::ValuesIn(TransportProtocols()),
                         [](const auto& info) { return info.param; });

// A small model of one worker. w and b are on two ps. The worker computes the gradients.
struct Model {
  testing::GraphOnDevice on;
  Graph& g = on.graph;
  ops::Variable w, b, step;
  Output gradient;
  Node* train = nullptr;
  Node* init = nullptr;

  explicit Model(int worker, const std::string& device = "/device:CPU:0") : on(device) {
    w = VariableOn(g, "/job:ps/task:0", ops::Const(g, std::vector<float>{1, 2}), "w");
    b = VariableOn(g, "/job:ps/task:1", ops::Const(g, 5.0f), "b");
    step = VariableOn(g, "/job:ps/task:0", ops::Const(g, int64_t{0}), "global_step");
    init = ops::GlobalVariablesInitializer(g);
    const DeviceScope scope(g, "/job:worker/task:" + std::to_string(worker));
    gradient = ops::Placeholder(g, DType::kFloat32, Shape{2}, "gradient");
    const Output used = gradient + w.value() * 0.0f;
    Node* update_w = w.AssignSub(used * 0.5f);
    Node* update_b = b.AssignSub(ops::Sum(used) * 0.5f);
    const ControlDependencies after(g, {update_w, update_b});
    train = step.AssignAdd(ops::Const(g, int64_t{1}));
  }
};

// Runs over each transport, with variables and kernels on each kind of device of every task.
class ServerDevicesTest : public ::testing::TestWithParam<std::tuple<std::string, const char*>> {
 protected:
  static std::string device() { return std::string("/device:") + std::get<1>(GetParam()) + ":0"; }
  static ServerOptions Options() {
    ServerOptions options = LocalCluster::FastOptions();
    options.protocol = std::get<0>(GetParam());
    options.config.device_count[std::get<1>(GetParam())] = 1;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(All, ServerDevicesTest,
                         ::testing::Combine(::testing::ValuesIn(TransportProtocols()), testing::AllDeviceKinds()),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

// 192.0.2.0/24 is for documents: no machine has it.
TEST(ServerAddressTest, TheEnvironmentNamesTheLocalAddress) {
  setenv("COHORT_BIND", "127.0.0.1:0", 1);
  const Server server({{"worker", {"192.0.2.7:2222"}}}, "worker", 0);
  unsetenv("COHORT_BIND");
  EXPECT_EQ(server.Target(), "grpc://192.0.2.7:2222");
}

TEST(ServerAddressTest, TasksWithOtherClustersAreNamed) {
  const std::string ps = "127.0.0.1:" + std::to_string(PortReservation().port());
  const auto cluster = [&](const char* second) {
    return ClusterSpec({{"ps", {ps}}, {"worker", {"127.0.0.1:1", second}}});
  };
  const Server server(cluster("127.0.0.1:2"), "ps", 0);
  ServerOptions any_port;
  any_port.bind = "127.0.0.1:0";
  const Server worker(cluster("127.0.0.1:3"), "worker", 0, any_port);
  Graph g;
  const DeviceScope scope(g, "/job:ps/task:0");
  const Output one = ops::Const(g, 1.0f);
  ::testing::internal::CaptureStderr();
  Session session(g, worker.Target());
  session.Run(one);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("/job:worker/task:1 is at 127.0.0.1:3 here and is at 127.0.0.1:2 there"));
}

TEST_P(ServerDevicesTest, AStepCrossesTasks) {
  LocalCluster cluster({{"ps", 2}, {"worker", 2}}, Options());
  Model model(0, device());
  Session session(model.g, cluster.target("worker", 0));
  session.Run(model.init);
  session.Run({{model.gradient, Tensor::Vector<float>({1, 3})}}, {}, {model.train});
  const auto values = session.Run({model.w.value(), model.b.value(), model.step.value()});
  EXPECT_EQ(values[0].ToVector<float>(), (std::vector<float>{0.5f, 0.5f}));  // w - lr x g, exactly
  EXPECT_EQ(values[1].scalar<float>(), 3.0f);
  EXPECT_EQ(values[2].scalar<int64_t>(), 1);
}

TEST_P(ServerDevicesTest, SessionsOfAllWorkersShareVariablesAndNoStepIsLost) {
  LocalCluster cluster({{"ps", 2}, {"worker", 2}}, Options());
  Model models[2] = {Model(0, device()), Model(1, device())};
  Session chief(models[0].g, cluster.target("worker", 0));
  chief.Run(models[0].init);
  constexpr int kSteps[2] = {150, 90};
  std::vector<std::thread> threads;
  for (int w = 0; w < 2; ++w) {
    threads.emplace_back([&, w] {
      Session session(models[w].g, cluster.target("worker", w));
      for (int i = 0; i < kSteps[w]; ++i) {
        session.Run({{models[w].gradient, Tensor::Vector<float>({1, 0})}}, {}, {models[w].train});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto values = chief.Run({models[0].step.value(), models[0].w.value()});
  EXPECT_EQ(values[0].scalar<int64_t>(), kSteps[0] + kSteps[1]);
  EXPECT_EQ(values[1].data<float>()[0], 1.0f - 0.5f * static_cast<float>(kSteps[0] + kSteps[1]));
}

TEST_P(ServerDevicesTest, AStepThatFailsOnAnotherTaskNamesTheLineOfTheProgram) {
  LocalCluster cluster({{"worker", 2}}, Options());
  Graph g;
  const Output i = ops::Placeholder(g, DType::kInt32, Shape{1});
  const DeviceScope scope(g, "/job:worker/task:1" + device());
  const Output row = ops::Gather(ops::Const(g, std::vector<float>{1, 2}), i);
  const int line = __LINE__ - 1;
  Session session(g, cluster.target("worker", 0));
  EXPECT_THAT(
      ErrorOf([&] {
        session.Run({{i, Tensor::Vector<int32_t>({5})}}, {row});
      }),
      AllOf(HasSubstr("/job:worker/replica:0/task:1"), HasSubstr(StrCat(", made at cluster/server_test.cc:", line))));
}

TEST_P(ServerTest, AClientOutsideTheClusterRunsOnItsTasks) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, Options());
  setenv("COHORT_TOKEN", "local-cluster-test", 1);
  std::string address = cluster.target("worker", 0);
  address.replace(address.find("127.0.0.1"), 9,
                  "localhost");  // so that the session does not find the server in this process
  Graph g;
  const ops::Variable v = VariableOn(g, "/job:ps/task:0", ops::Const(g, 4.0f), "v");
  Output doubled;
  {
    const DeviceScope scope(g, "/job:worker/task:0");
    doubled = v.value() * 2.0f;
  }
  Session session(g, address);
  session.Run(ops::GlobalVariablesInitializer(g));
  EXPECT_EQ(session.Run(doubled).scalar<float>(), 8.0f);
}

TEST_P(ServerDevicesTest, LargeTensorsTravelWhole) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, Options());
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const int64_t n = 3'000'001;
  Output x;
  Output y;
  {
    const DeviceScope scope(g, "/job:ps/task:0");
    x = ops::Placeholder(g, DType::kFloat32, Shape{-1});
    y = x + 1.0f;
  }
  Output z;
  {
    const DeviceScope scope(g, "/job:worker/task:0");
    z = y * 2.0f;
  }
  Session session(g, cluster.target("worker", 0));
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  const Tensor result = session.Run({{x, Tensor::Vector(values)}}, {z})[0];
  ASSERT_EQ(result.num_elements(), n);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(result.data<float>()[i], (values[i] + 1) * 2) << i;
}

TEST_P(ServerDevicesTest, ALostTaskFailsOnlyTheStepsThatUseIt) {
  LocalCluster cluster({{"ps", 2}, {"worker", 2}}, Options());
  Model models[2] = {Model(0, device()), Model(1, device())};
  Session first(models[0].g, cluster.target("worker", 0));
  first.Run(models[0].init);
  Session second(models[1].g, cluster.target("worker", 1));
  const FeedList feed0 = {{models[0].gradient, Tensor::Vector<float>({1, 0})}};
  second.Run({{models[1].gradient, Tensor::Vector<float>({1, 0})}}, {}, {models[1].train});
  second.Close();
  cluster.Stop("worker", 1);
  for (int i = 0; i < 20; ++i)
    first.Run(feed0, {}, {models[0].train});  // the death of the other worker does not disturb it
  cluster.Stop("ps", 1);
  const std::string message = ErrorOf([&] { first.Run(feed0, {}, {models[0].train}); });
  EXPECT_THAT(message, HasSubstr("Unavailable"));
  EXPECT_THAT(message, HasSubstr("/job:ps/replica:0/task:1"));
  EXPECT_THAT(message, HasSubstr(cluster.spec().task_address("ps", 1)));
}

TEST_P(ServerDevicesTest, ARestartedTaskIsToldApart) {
  LocalCluster cluster({{"ps", 2}, {"worker", 1}}, Options());
  Model model(0, device());
  Session session(model.g, cluster.target("worker", 0));
  session.Run(model.init);
  cluster.Restart("ps", 1);
  std::string message;
  for (int i = 0; i < 2; ++i) {  // the first one may still use the connection that is closing
    message = ErrorOf([&] { session.Run({{model.gradient, Tensor::Vector<float>({1, 0})}}, {}, {model.train}); });
  }
  EXPECT_THAT(message, HasSubstr("Aborted"));
  EXPECT_THAT(message, HasSubstr("restarted"));
  Session again(model.g, cluster.target("worker", 0));
  EXPECT_THAT(ErrorOf([&] { again.Run(model.b.value()); }), HasSubstr("uninitialized"));
}

// Rows, shapes and gradients travel between tasks. There are values of every kind.
TEST_P(ServerDevicesTest, ATrainingStepOverTwoTasksIsExact) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, Options());
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const ops::Variable w = VariableOn(g, "/job:ps/task:0", ops::Const(g, std::vector<float>{1, 2, 3}), "w");
  const ops::Variable table =
      VariableOn(g, "/job:ps/task:0", ops::Const(g, Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{3, 2})), "t");
  Output ids;
  Output rows;
  Output loss;
  Output sizes;
  {
    const DeviceScope scope(g, "/job:worker/task:0");
    ids = ops::Placeholder(g, DType::kInt64, Shape{-1}, "ids");
    rows = table.Gather(ids) * 10.0f;
    sizes = ops::ShapeOf(rows);
    loss = ops::Sum(w.value() * w.value());
  }
  Node* train = w.AssignSub(Gradients({loss}, {w.value()})[0].values * 0.25f);  // w - 0.25 x 2 w
  Session session(g, cluster.target("worker", 0));
  session.Run(ops::GlobalVariablesInitializer(g));
  const auto values = session.Run({{ids, Tensor::Vector<int64_t>({2, 0, 2})}}, {rows, sizes, loss}, {train});
  EXPECT_EQ(values[0].ToVector<float>(), (std::vector<float>{50, 60, 10, 20, 50, 60}));
  EXPECT_EQ(values[1].ToVector<int32_t>(), (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(values[2].scalar<float>(), 14);
  EXPECT_EQ(session.Run(w.value()).ToVector<float>(), (std::vector<float>{0.5f, 1, 1.5f}));
  const std::string message = ErrorOf([&] { session.Run({{ids, Tensor::Vector<int64_t>({2, 3})}}, {rows}); });
  EXPECT_THAT(message, HasSubstr("indices[1] = 3"));
  EXPECT_THAT(message, HasSubstr("/job:ps/replica:0/task:0" + device()));
}

TEST_P(ServerTest, UnknownTasksAreNamed) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, Options());
  Graph g;
  Output x;
  {
    const DeviceScope scope(g, "/job:ps/task:7");
    x = ops::Const(g, 1.0f) + 1.0f;
  }
  Session session(g, cluster.target("worker", 0));
  EXPECT_THAT(ErrorOf([&] { session.Run(x); }), HasSubstr("/job:ps/replica:0/task:7"));
}

TEST_P(ServerTest, AnotherTokenIsRefused) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, Options());
  setenv("COHORT_TOKEN", "the token of somebody else", 1);
  std::string address = cluster.target("worker", 0);
  address.replace(address.find("127.0.0.1"), 9, "localhost");
  Graph g;
  const std::string message = ErrorOf([&] { Session session(g, address); });
  EXPECT_THAT(message, HasSubstr("PermissionDenied"));
  EXPECT_THAT(message, HasSubstr("token"));
  setenv("COHORT_TOKEN", "local-cluster-test", 1);
}

TEST_P(ServerTest, APortInUseIsNamed) {
  LocalCluster cluster({{"worker", 1}}, Options());
  const std::string message = ErrorOf([&] { Server second(cluster.spec(), "worker", 0, Options()); });
  EXPECT_THAT(message, HasSubstr("in use"));
}

TEST_P(ServerTest, JoinReturnsWhenTheChiefIsDone) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, Options());
  std::atomic<bool> joined{false};
  std::thread ps([&] {
    cluster.server("ps", 0).Join();
    joined = true;
  });
  Graph g;
  const ops::Variable v = VariableOn(g, "/job:ps/task:0", ops::Const(g, 4.0f), "v");
  auto session = std::make_unique<Session>(g, cluster.target("worker", 0));
  session->Run(v.initializer());
  cluster.server("worker", 0).AnnounceDone();
  EXPECT_FALSE(joined);  // the session is still open
  session.reset();
  ps.join();
  EXPECT_TRUE(joined);
}

// The chief's process may end right after it has said that training is done. By then all tasks have received it.
TEST_P(ServerTest, ThatTrainingIsDoneIsHeardBeforeTheChiefStops) {
  for (int round = 0; round < 20; ++round) {
    ServerOptions options = Options();
    options.orphan_timeout = std::chrono::milliseconds(1);
    LocalCluster cluster({{"ps", 3}, {"worker", 1}}, options);
    std::string messages[3];
    std::vector<std::thread> servers;
    for (int p = 0; p < 3; ++p) {
      servers.emplace_back([&, p] { messages[p] = ErrorOf([&] { cluster.server("ps", p).Join(); }); });
    }
    cluster.server("worker", 0).AnnounceDone();
    cluster.Stop("worker", 0);
    for (std::thread& server : servers) server.join();
    for (const std::string& message : messages) ASSERT_EQ(message, "no error") << "round " << round;
  }
}

// The kernel still accepts connections for a stopped process.
TEST(GrpcServerTest, APeerThatAcceptsAndSaysNothingIsNamedInTime) {
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent, 8), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string where = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const ClusterSpec spec({{"ps", {where}}, {"worker", {"127.0.0.1:0"}}});
  Server worker(spec, "worker", 0, LocalCluster::FastOptions());
  Graph g;
  const ops::Variable v = VariableOn(g, "/job:ps/task:0", ops::Const(g, 4.0f), "v");
  Session session(g, worker.Target(), {.connect_timeout = std::chrono::milliseconds(500)});
  const std::string message = ErrorOf([&] { session.Run(v.initializer()); });
  EXPECT_THAT(message, HasSubstr("Unavailable"));
  EXPECT_THAT(message, HasSubstr("/job:ps/replica:0/task:0 (" + where + ")"));
  EXPECT_THAT(message, HasSubstr("has not answered within "));  // our limit; gRPC alone would try for 20 s
  // A server that is stopped while it dials does not wait for that attempt, either.
  Session patient(g, worker.Target());
  std::thread stopper([&] { worker.Stop(); });
  EXPECT_THAT(ErrorOf([&] { patient.Run(v.initializer()); }), Not(HasSubstr("no error")));
  stopper.join();
  close(silent);
}

// The last attempt has no time left and learns nothing. The error has the reason that earlier attempts have found.
TEST(GrpcServerTest, APeerThatIsNotThereIsNamedWithTheReason) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  const std::string where = cluster.spec().task_address("ps", 0);
  cluster.Stop("ps", 0);
  Graph g;
  const ops::Variable v = VariableOn(g, "/job:ps/task:0", ops::Const(g, 4.0f), "v");
  Session session(g, cluster.target("worker", 0), {.connect_timeout = std::chrono::milliseconds(400)});
  const std::string message = ErrorOf([&] { session.Run(v.initializer()); });
  EXPECT_THAT(message, HasSubstr("/job:ps/replica:0/task:0 (" + where + ") could not be reached for "));
  EXPECT_THAT(message, ContainsRegex(" for [0-9]+\\.[0-9]+ s: .*Connection refused"));  // the whole time of the wait
  EXPECT_THAT(message, Not(HasSubstr("has not answered")));
}

TEST(ServerProtocolTest, UnknownOnesAreNamed) {
  ServerOptions options = LocalCluster::FastOptions();
  options.protocol = "carrier_pigeon";
  const ClusterSpec spec({{"worker", {"127.0.0.1:0"}}});
  EXPECT_THAT(ErrorOf([&] { Server server(spec, "worker", 0, options); }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("carrier_pigeon"), HasSubstr("grpc, in_process")));
  Graph g;
  EXPECT_THAT(ErrorOf([&] { Session session(g, "carrier_pigeon://127.0.0.1:1"); }),
              AllOf(HasSubstr("NotFound"), HasSubstr("carrier_pigeon"), HasSubstr("in_process://")));
}

TEST_P(ServerTest, JoinFailsWhenTheChiefIsGone) {
  ServerOptions options = Options();
  options.orphan_timeout = std::chrono::milliseconds(300);
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  std::string message;
  std::thread ps([&] { message = ErrorOf([&] { cluster.server("ps", 0).Join(); }); });
  {
    Graph g;
    const ops::Variable v = VariableOn(g, "/job:ps/task:0", ops::Const(g, 4.0f), "v");
    Session session(g, cluster.target("worker", 0));
    session.Run(v.initializer());
  }
  cluster.Stop("worker", 0);
  ps.join();
  EXPECT_THAT(message, HasSubstr("chief"));
  EXPECT_THAT(message, HasSubstr("/job:worker/replica:0/task:0"));
}

TEST_P(ServerTest, JoinFailsWhenNoChiefComes) {
  ServerOptions options = Options();
  options.chief_timeout = std::chrono::milliseconds(200);
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  cluster.Stop("worker", 0);
  const std::string message = ErrorOf([&] { cluster.server("ps", 0).Join(); });
  EXPECT_THAT(message, HasSubstr("Unavailable"));
  EXPECT_THAT(message, HasSubstr("/job:ps/replica:0/task:0 ends"));
  EXPECT_THAT(message, HasSubstr("the chief /job:worker/replica:0/task:0 to come within 0.2 s (chief timeout)"));
  EXPECT_THAT(message, HasSubstr(cluster.spec().task_address("worker", 0)));
}

// The chief never connects to this task, because it is for example a parameter server without variables. The task finds
// the chief.
TEST_P(ServerTest, JoinServesWhileThereIsAChiefThatDoesNotUseTheTask) {
  ServerOptions options = Options();
  options.chief_timeout = std::chrono::milliseconds(50);
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  std::promise<std::string> joined;
  std::future<std::string> end = joined.get_future();
  std::thread ps([&] { joined.set_value(ErrorOf([&] { cluster.server("ps", 0).Join(); })); });
  EXPECT_EQ(end.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  cluster.server("worker", 0).AnnounceDone();
  ps.join();
  EXPECT_EQ(end.get(), "no error");
}

TEST_P(ServerTest, ATaskThatWaitsForTheChiefIsToldWhenItIsLost) {
  ServerOptions options = Options();
  options.orphan_timeout = std::chrono::milliseconds(100);
  LocalCluster cluster({{"worker", 2}}, options);
  Server& second = cluster.server("worker", 1);
  EXPECT_NO_THROW(cluster.server("worker", 0).ThrowIfChiefIsLost());  // this is the chief itself
  EXPECT_NO_THROW(second.ThrowIfChiefIsLost());                       // this task sees the chief
  cluster.Restart("worker", 0);
  std::this_thread::sleep_for(2 * *options.orphan_timeout);
  EXPECT_NO_THROW(second.ThrowIfChiefIsLost());  // the chief is back
  cluster.Stop("worker", 0);
  std::string message = "no error";
  while (message == "no error") message = ErrorOf([&] { second.ThrowIfChiefIsLost(); });
  EXPECT_THAT(message, HasSubstr("Unavailable"));
  EXPECT_THAT(message, HasSubstr("/job:worker/replica:0/task:1"));
  EXPECT_THAT(message, HasSubstr("the chief /job:worker/replica:0/task:0 has been gone for 0.1 s (orphan timeout)"));
}

}  // namespace
}  // namespace cohort
