// Measures steps of a cluster; see kUsage. `cohort launch` runs it. Every worker prints one JSON object on each line.
// Values are checked, and a wrong value is an error. The peers are bench/peers/tf_null_step.py, tf_bulk.py,
// tf_cluster.py --startup, tf_monitored_session.py and grpc_stream.cc.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/peers/samples.h"
#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr char kUsage[] =
    "usage: cohort launch --ps=N --workers=N -- cluster_steps WHAT [--seconds=S]\n"
    "WHAT is one of:\n"
    "  null_step    all workers at once read one scalar from each parameter server\n"
    "  bulk         worker 0 reads 100 MiB from parameter server 0, and applies 100 MiB of gradients there\n"
    "  startup      the time from Server() to the end of the first step of a linear regression\n"
    "  guide_003    worker 0 multiplies two matrices of parameter server 0 in a MonitoredTrainingSession with hooks\n"
    "  --seconds=S  measure each kind of step for S seconds (2)\n";

using Clock = std::chrono::steady_clock;

constexpr int64_t kTensors = 25;
constexpr int64_t kFloats = 1 << 20;  // elements of one tensor: 4 MiB
constexpr float kStartValue = 1000.0f;

double Millis(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

void Require(bool right, const std::string& what, double value) {
  if (!right) throw InternalError(StrCat("[cluster_steps] wrong result: ", what, " is ", value));
}

// Collects times in milliseconds.
class Times {
 public:
  // Runs `step` again and again, and notes the time of each call after a warm-up.
  template <typename Step>
  Times(double seconds, const Step& step) {
    for (int i = 0; i < 3; ++i) step();
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (Clock::now() < end) {
      const auto begin = Clock::now();
      step();
      millis_.push_back(Millis(Clock::now() - begin));
    }
  }
  size_t count() const { return millis_.size(); }
  double At(double fraction) const { return Quantile(millis_, fraction); }
  double Mean() const { return std::accumulate(millis_.begin(), millis_.end(), 0.0) / static_cast<double>(count()); }

 private:
  std::vector<double> millis_;
};

std::string Task(const char* job, int index) { return StrCat("/job:", job, "/task:", index); }

void WaitUntilReady(Session& session, Output report) {
  while (session.Run(report).num_elements() > 0) {
  }
}

// Lets the workers wait for each other. It is a counter on parameter server 0.
class MeetingPoint {
 public:
  MeetingPoint(Graph& graph, const std::string& name, int workers) : workers_(workers) {
    const DeviceScope scope(graph, Task("ps", 0));
    const ops::Variable counter(graph, Tensor::Scalar(0.0f), {.name = name});
    here_ = counter.value();
    arrive_ = counter.AssignAdd(ops::Const(graph, 1.0f));
  }
  void Arrive(Session& session) const { session.Run({}, {}, {arrive_}); }
  void AwaitAll(Session& session) const {
    while (session.Run(here_).scalar<float>() < static_cast<float>(workers_)) {
    }
  }

 private:
  int workers_;
  Output here_;
  Node* arrive_ = nullptr;
};

void NullStep(const Server& server, double seconds) {
  Graph graph;
  const int workers = server.cluster().num_tasks("worker");
  const MeetingPoint begin(graph, "begin", workers);
  const MeetingPoint end(graph, "end", workers);
  std::vector<Output> reads;
  for (int i = 0; i < server.cluster().num_tasks("ps"); ++i) {
    const DeviceScope scope(graph, Task("ps", i));
    reads.push_back(
        ops::Variable(graph, Tensor::Scalar(static_cast<float>(i) + 3), {.name = StrCat("scalar", i)}).value());
  }
  Node* init = ops::GlobalVariablesInitializer(graph);
  const Output report = ops::ReportUninitializedVariables(graph);
  Session session(graph, server.Target());
  if (server.is_chief()) session.Run(init);
  WaitUntilReady(session, report);
  const Callable read = session.MakeCallable({}, reads);
  begin.Arrive(session);
  begin.AwaitAll(session);
  const Times times(seconds, [&] {
    const std::vector<Tensor> values = read({});
    for (size_t i = 0; i < values.size(); ++i) {
      const float value = values[i].scalar<float>();
      Require(value == static_cast<float>(i) + 3, StrCat("scalar ", i), value);
    }
  });
  end.Arrive(session);
  end.AwaitAll(session);
  std::printf("{\"bench\":\"null_step\",\"worker\":%d,\"ms_median\":%.4f,\"ms_p99\":%.4f,\"steps\":%zu}\n",
              server.task(), times.At(0.5), times.At(0.99), times.count());
}

// A model with 25 parameters on the parameter server, and as many gradients on the worker.
struct BulkModel {
  Graph graph;
  Output pulled;    // [25]: the last element of each parameter, read on the worker, so that the whole parameter travels
  Output extremes;  // [50]: the least and the greatest element of each parameter, computed on the parameter server
  std::vector<Node*> push;

  BulkModel() {
    std::vector<Output> last;
    std::vector<Output> bounds;
    for (int64_t i = 0; i < kTensors; ++i) {
      ops::Variable parameter;
      {
        const DeviceScope scope(graph, Task("ps", 0));
        parameter =
            ops::Variable(graph, Shape{kFloats}, initializers::Constant(kStartValue), {.name = StrCat("parameter", i)});
        bounds.push_back(ops::Min(parameter));
        bounds.push_back(ops::Max(parameter));
      }
      const DeviceScope scope(graph, Task("worker", 0));
      const ops::Variable gradient(graph, Shape{kFloats}, initializers::Ones(), {.name = StrCat("gradient", i)});
      last.push_back(ops::Slice(parameter, {kFloats - 1}, {1}));
      push.push_back(parameter.AssignSub(gradient));
    }
    const DeviceScope scope(graph, Task("worker", 0));
    pulled = ops::Concat(last, 0);
    const DeviceScope at_ps(graph, Task("ps", 0));
    extremes = ops::Pack(bounds);
  }
};

void CheckAll(const Tensor& values, float expected, const char* what) {
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    Require(values.data<float>()[i] == expected, StrCat(what, " ", i, " (expected ", expected, ")"),
            values.data<float>()[i]);
  }
}

void PrintRate(const char* what, const Times& times) {
  const double bytes = static_cast<double>(kTensors * kFloats) * sizeof(float);
  std::printf("{\"bench\":\"bulk_%s\",\"gb_per_s_median\":%.3f,\"gb_per_s_best\":%.3f,\"steps\":%zu}\n", what,
              bytes / times.At(0.5) / 1e6, bytes / times.At(0) / 1e6, times.count());
}

void Bulk(const Server& server, double seconds) {
  BulkModel model;
  Node* init = ops::GlobalVariablesInitializer(model.graph);
  Session session(model.graph, server.Target());
  session.Run(init);
  const Callable pull = session.MakeCallable({}, {model.pulled});
  const Callable push = session.MakeCallable({}, {}, model.push);
  float expected = kStartValue;
  PrintRate("pull", Times(seconds, [&] { CheckAll(pull({})[0], expected, "pulled element"); }));
  PrintRate("push", Times(seconds, [&] {
              push({});
              --expected;
            }));
  CheckAll(session.Run(model.extremes), expected, "extreme");
  CheckAll(pull({})[0], expected, "pulled element");
}

// Measures the start of the model of examples/linear_regression, with the Supervisor that the peer has, too.
void Startup(Server& server, Clock::time_point begin) {
  Graph graph;
  const MeetingPoint end(graph, "end", server.cluster().num_tasks("worker"));
  Output x, y, loss;
  ops::Variable step;
  Node* train = nullptr;
  {
    const DeviceScope replica(graph, train::ReplicaDeviceSetter({.worker_device = Task("worker", server.task()),
                                                                 .cluster = server.cluster()}));
    step = ops::GetOrCreateGlobalStep(graph);
    x = ops::Placeholder(graph, DType::kFloat32, Shape{1}, "input");
    y = ops::Placeholder(graph, DType::kFloat32, Shape{1}, "label");
    const auto weight = ops::GetVariable(graph, "weight", Shape{1}, DType::kFloat32, initializers::RandomNormal());
    const auto bias = ops::GetVariable(graph, "biase", Shape{1}, DType::kFloat32, initializers::RandomNormal());
    loss = ops::SquaredDifference(y, x * weight + bias);
    train::GradientDescentOptimizer optimizer(0.01);
    train = optimizer.Minimize(loss, step);
  }
  train::Supervisor supervisor(graph, {.is_chief = server.is_chief(),
                                       .global_step = step,
                                       .save_model_interval = std::chrono::milliseconds(0),
                                       .server = &server});
  train::ManagedSession session = supervisor.managed_session(server.Target());
  const std::vector<Tensor> results =
      session->Run({{x, Tensor::Vector<float>({1})}, {y, Tensor::Vector<float>({12})}}, {loss}, {train});
  const double millis = Millis(Clock::now() - begin);
  const double epoch = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Require(std::isfinite(results[0].data<float>()[0]), "the loss", results[0].data<float>()[0]);
  end.Arrive(*session);
  end.AwaitAll(*session);
  const int64_t steps = session->Run(step.value()).scalar<int64_t>();
  Require(steps == server.cluster().num_tasks("worker"), "the global step", static_cast<double>(steps));
  std::printf("{\"bench\":\"startup\",\"worker\":%d,\"ms_from_server_to_first_step\":%.1f,\"first_step_at\":%.4f}\n",
              server.task(), millis, epoch);
  session.Close();
}

// Measures the loop of examples/guides/003_monitored_session, after a warm-up. A StopAtStepHook ends it, and sees each
// step.
void Guide003(Server& server, double seconds) {
  Graph graph;
  Output mat;
  Node* count = nullptr;
  {
    const DeviceScope scope(
        graph, train::ReplicaDeviceSetter({.worker_device = "job:worker/task:0/cpu:0/", .cluster = server.cluster()}));
    const ops::Variable global_step = ops::GetOrCreateGlobalStep(graph);
    const ops::Variable x(graph, Tensor::FromValues<int32_t>({1, 2, 3, 4}, Shape{1, 4}), {.name = "x"});
    const ops::Variable w(graph, Tensor::FromValues<int32_t>({2, 2, 2, 2}, Shape{4, 1}), {.name = "w"});
    mat = ops::MatMul(x, w);
    count = global_step.AssignAdd(1);
  }
  using train::StopAtStepHook;
  train::MonitoredSession session = train::MonitoredTrainingSession(
      graph, {.master = server.Target(),
              .is_chief = true,
              .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::Options{.last_step = int64_t{1} << 40})},
              .server = &server});
  const Times times(seconds, [&] {
    const int32_t product = session.Run({}, {mat}, {count}).front().scalar<int32_t>();
    Require(product == 20, "the product", product);
  });
  session.Close();
  std::printf("{\"bench\":\"guide_003\",\"us_median\":%.2f,\"us_mean\":%.2f,\"steps_per_s\":%.1f,\"steps\":%zu}\n",
              times.At(0.5) * 1000, times.Mean() * 1000, 1000 / times.Mean(), times.count());
}

int Main(const std::string& what, double seconds, const ServerOptions& options) {
  const TFConfigClusterResolver resolver;
  const auto begin = Clock::now();
  Server server(resolver.cluster_spec(), resolver.task_type().value_or(""), resolver.task_id().value_or(-1), options);
  if (server.job() == "ps") {
    server.Join();
    return 0;
  }
  if (what == "null_step") NullStep(server, seconds);
  if (what == "bulk") Bulk(server, seconds);
  if (what == "startup") Startup(server, begin);
  if (what == "guide_003") Guide003(server, seconds);
  std::fflush(stdout);
  // In the two others the Supervisor and the MonitoredSession have done it.
  if (server.is_chief() && (what == "null_step" || what == "bulk")) server.AnnounceDone();
  return 0;
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string flag = argc > 2 ? argv[2] : "--seconds=2";
  const double seconds = flag.starts_with("--seconds=") ? std::atof(flag.c_str() + sizeof("--seconds=") - 1) : 0;
  if (what == "--help" || what == "-h") {
    std::cout << cohort::kUsage;
    return 0;
  }
  cohort::ServerOptions options;
  options.share_memory = argc <= 3;
  const bool last_is_known = argc <= 3 || (argc == 4 && std::string(argv[3]) == "--alone");
  const bool what_is_known = what == "null_step" || what == "bulk" || what == "startup" || what == "guide_003";
  if (!what_is_known || !(seconds > 0) || !last_is_known) {
    std::cerr << "cluster_steps: wrong arguments\n" << cohort::kUsage;
    return 2;
  }
  try {
    return cohort::Main(what, seconds, options);
  } catch (const cohort::Error& e) {
    std::cerr << "cluster_steps: " << e.what() << "\n";
    return 1;
  }
}
