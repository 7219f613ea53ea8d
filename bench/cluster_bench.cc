// Steps of a cluster, to be run by `cohort launch`:
//   cohort launch --ps=2 --workers=8 -- cluster_bench null_step     one scalar read from each ps, by every worker
//   cohort launch --ps=1 --workers=1 -- cluster_bench bulk          100 MB read from the ps, 100 MB of gradients applied
//   cohort launch --ps=2 --workers=2 -- cluster_bench startup       wall clock from Server() to the first train step
// Worker 0 prints one JSON object a line. The peers: bench/peers/tf_null_step.py, tf_bulk.py, tf_cluster.py --startup.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kTensors = 25;
constexpr int64_t kFloats = 1 << 20;  // of one tensor: 4 MiB
constexpr auto kDuration = std::chrono::seconds(4);

double Micros(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

struct Times {
  std::vector<double> micros;

  // Runs `step` again and again and notes each time.
  template <typename Step>
  static Times Of(const Step& step) {
    for (int i = 0; i < 3; ++i) step();
    Times times;
    const auto end = Clock::now() + kDuration;
    while (Clock::now() < end) {
      const auto begin = Clock::now();
      step();
      times.micros.push_back(Micros(Clock::now() - begin));
    }
    std::sort(times.micros.begin(), times.micros.end());
    return times;
  }
  double At(double quantile) const {
    return micros[std::min(micros.size() - 1, static_cast<size_t>(quantile * static_cast<double>(micros.size())))];
  }
};

std::string Task(const char* job, int index) { return StrCat("/job:", job, "/task:", index); }

ops::Variable ScalarOn(Graph& graph, int ps) {
  const DeviceScope scope(graph, Task("ps", ps));
  return ops::Variable(graph, Tensor::Scalar(1.0f), {.name = StrCat("scalar", ps)});
}

void WaitUntilReady(Session& session, Output report) {
  while (session.Run(report).num_elements() > 0) {
  }
}

void NullStep(const Server& server) {
  Graph graph;
  std::vector<Output> reads;
  for (int i = 0; i < server.cluster().num_tasks("ps"); ++i) reads.push_back(ScalarOn(graph, i).value());
  Node* init = ops::GlobalVariablesInitializer(graph);
  const Output report = ops::ReportUninitializedVariables(graph);
  Session session(graph, server.Target());
  if (server.is_chief()) session.Run(init);
  WaitUntilReady(session, report);
  const Callable read = session.MakeCallable({}, reads);
  const Times times = Times::Of([&] { read({}); });
  if (server.is_chief()) {
    std::printf("{\"bench\":\"null_step\",\"workers\":%d,\"ms_median\":%.4f,\"ms_p99\":%.4f,\"steps\":%zu}\n",
                server.cluster().num_tasks("worker"), times.At(0.5) / 1000, times.At(0.99) / 1000,
                times.micros.size());
  }
}

void PrintRate(const char* what, const Times& times) {
  const double bytes = static_cast<double>(kTensors * kFloats) * sizeof(float);
  std::printf("{\"bench\":\"bulk_%s\",\"gb_per_s_median\":%.3f,\"gb_per_s_best\":%.3f}\n", what,
              bytes / times.At(0.5) / 1000, bytes / times.At(0) / 1000);
}

void Bulk(const Server& server) {
  Graph graph;
  std::vector<Node*> pull;
  std::vector<Node*> push;
  for (int64_t i = 0; i < kTensors; ++i) {
    ops::Variable parameter;
    {
      const DeviceScope scope(graph, Task("ps", 0));
      parameter = ops::Variable(graph, Shape{kFloats}, ops::Ones(), {.name = StrCat("parameter", i)});
    }
    const DeviceScope scope(graph, Task("worker", 0));
    const ops::Variable gradient(graph, Shape{kFloats}, ops::Ones(), {.name = StrCat("gradient", i)});
    pull.push_back(ops::Identity(parameter.value()).node);
    push.push_back(parameter.AssignSub(gradient.value()));
  }
  Session session(graph, server.Target());
  session.Run(ops::GlobalVariablesInitializer(graph));
  const Callable pull_all = session.MakeCallable({}, {}, pull);
  const Callable push_all = session.MakeCallable({}, {}, push);
  PrintRate("pull", Times::Of([&] { pull_all({}); }));
  PrintRate("push", Times::Of([&] { push_all({}); }));
  PrintRate("both", Times::Of([&] {
              pull_all({});
              push_all({});
            }));
}

void Startup(const Server& server, Clock::time_point begin) {
  Graph graph;
  const ops::Variable scalars[2] = {ScalarOn(graph, 0), ScalarOn(graph, 1)};
  Node* init = ops::GlobalVariablesInitializer(graph);
  const Output report = ops::ReportUninitializedVariables(graph);
  Node* train;
  {
    const DeviceScope scope(graph, Task("worker", server.task()));
    train = scalars[0].AssignSub(scalars[1].value() * 0.5f);
  }
  Session session(graph, server.Target());
  if (server.is_chief()) session.Run(init);
  WaitUntilReady(session, report);
  session.Run(train);
  std::printf("{\"bench\":\"startup\",\"worker\":%d,\"ms_from_server_to_first_step\":%.1f}\n", server.task(),
              Micros(Clock::now() - begin) / 1000);
}

int Main(const std::string& what) {
  const TFConfigClusterResolver resolver;
  const auto begin = Clock::now();
  Server server(resolver.cluster_spec(), resolver.task_type().value_or(""), resolver.task_id().value_or(-1));
  if (server.job() == "ps") {
    server.Join();
    return 0;
  }
  if (what == "null_step") {
    NullStep(server);
  } else if (what == "bulk") {
    Bulk(server);
  } else if (what == "startup") {
    Startup(server, begin);
  } else {
    std::cerr << "cluster_bench: there is no benchmark '" << what << "'; there are null_step, bulk, startup\n";
    return 2;
  }
  std::fflush(stdout);
  if (server.is_chief()) {
    server.AnnounceDone();
  }
  return 0;
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  try {
    return cohort::Main(argc > 1 ? argv[1] : "");
  } catch (const cohort::Error& e) {
    std::cerr << "cluster_bench: " << e.what() << "\n";
    return 1;
  }
}
