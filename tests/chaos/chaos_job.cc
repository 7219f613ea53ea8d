// A task of a job for the long run of faults (tests/chaos/run). TF_CONFIG says which task it is. A ps serves. Each
// parameter server holds a counter for each worker, `count_P_W`. A step of worker W adds 1 to its counter on every
// parameter server. With --in_graph=1 only worker 0 trains: a step adds the mean of what all workers send, which is 1,
// to `count_P_0`. So the counters say from outside how many steps are in the variables of each parameter server. A
// worker that trains prints
//
//   serving pid PID
//   acked N C0 C1 ...     after its N-th acknowledged step, with its counter on each parameter server after that step
//   end N                 when the loop has ended in good order
//
// The exit code is 0, or 1 after an error, which is printed to stderr. The flags have the form --name=value:
//   --dir (of checkpoints)  --save_secs  --pause_ms (between steps)  --in_graph  --mixed=1 (allow_mixed_steps)
//   --hang_file (see hang.h)
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "cohort/cluster/tf_config.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"
#include "cohort/train/hooks/hooks.h"
#include "cohort/train/monitored_session.h"
#include "tests/chaos/hang.h"
#include "tests/chaos/task_flags.h"

namespace cohort::testing {
namespace {

using train::MonitoredSession;

struct CountingJob {
  CountingJob(const Server& server, bool in_graph) {
    const std::vector<int> workers = server.cluster().task_indices("worker");
    const std::vector<int> trainers = in_graph ? std::vector<int>{0} : workers;
    std::vector<ops::Variable> mine;
    {
      const DeviceScope scope(graph, "/job:ps/task:0");
      step = ops::GetOrCreateGlobalStep(graph);
    }
    for (const int p : server.cluster().task_indices("ps")) {
      const DeviceScope scope(graph, StrCat("/job:ps/task:", p));
      for (const int w : trainers) {
        const ops::Variable count =
            ops::GetVariable(graph, StrCat("count_", p, "_", w), Shape{}, DType::kFloat32, initializers::Zeros());
        if (w == server.task()) mine.push_back(count);
      }
    }
    std::vector<Output> sent;
    for (const int w : in_graph ? workers : std::vector<int>{server.task()}) {
      const DeviceScope scope(graph, StrCat("/job:worker/task:", w));
      x.push_back(ops::Placeholder(graph, DType::kFloat32, Shape{}, StrCat("x_", w)));
      sent.push_back(x.back() / static_cast<float>(in_graph ? workers.size() : 1));
    }
    for (const ops::Variable& count : mine) {
      const DeviceScope scope(graph, count.handle().node->device());
      updates.push_back(count.AssignAdd(ops::AddN(sent)));
    }
    updates.push_back(step.AssignAdd(1));
    const ControlDependencies after(graph, updates);
    for (const ops::Variable& count : mine) counts.push_back(count.Read());
  }
  FeedList Feeds() const {
    FeedList feeds;
    for (const Output& one : x) feeds.emplace_back(one, Tensor::Scalar(1.0f));
    return feeds;
  }

  Graph graph;
  ops::Variable step;
  std::vector<Output> x;  // one for each worker whose values a step uses
  std::vector<Node*> updates;
  std::vector<Output> counts;  // of this worker, one for each parameter server, after the updates
};

MonitoredSession Open(const Flags& flags, Server& server, CountingJob& job) {
  train::SessionCreatorOptions options{.master = server.Target(),
                                       .checkpoint_dir = flags.Text("dir"),
                                       .allow_mixed_steps = flags.Integer("mixed", 0) != 0,
                                       .server = &server};
  train::MonitoredSessionOptions session{.hooks = {}, .stops_on_sigterm = true};
  if (!server.is_chief()) {
    return MonitoredSession(job.graph, std::make_unique<train::WorkerSessionCreator>(job.graph, options), session);
  }
  options.scaffold = std::make_shared<train::Scaffold>();
  session.writes = true;
  session.hooks.push_back(std::make_shared<train::CheckpointSaverHook>(
      train::CheckpointSaverHook::Options{.checkpoint_dir = flags.Text("dir"),
                                          .every = {.interval = flags.Seconds("save_secs", 1)},
                                          .scaffold = options.scaffold}));
  return MonitoredSession(job.graph, std::make_unique<train::ChiefSessionCreator>(job.graph, options), session);
}

void Train(const Flags& flags, Server& server, bool in_graph) {
  CountingJob job(server, in_graph);
  MonitoredSession session = Open(flags, server, job);
  const std::string task = StrCat(server.job(), "/", server.task());
  long acknowledged = 0;
  while (!session.should_stop()) {
    const RunResults counts = session.Run(job.Feeds(), job.counts, job.updates);
    std::string line = StrCat("acked ", ++acknowledged);
    for (size_t i = 0; i < counts.size(); ++i) line += StrCat(" ", static_cast<int64_t>(counts[i].scalar<float>()));
    std::printf("%s\n", line.c_str());
    HangIfAsked(flags.Text("hang_file"), task);
    std::this_thread::sleep_for(flags.Ms("pause_ms", 10));  // sets the rate of steps; it waits for nothing
  }
  session.Close();
  std::printf("end %ld\n", acknowledged);
}

void Run(const Flags& flags) {
  RegisterAll();
  const TFConfigClusterResolver resolver;
  ServerOptions options;
  options.config.intra_op_parallelism_threads = 1;
  Server server(resolver.cluster_spec(), resolver.task_type().value_or(""), resolver.task_id().value_or(-1), options);
  std::printf("serving pid %d\n", static_cast<int>(getpid()));
  const bool in_graph = flags.Integer("in_graph", 0) != 0;
  if (server.job() == "worker" && (server.is_chief() || !in_graph)) return Train(flags, server, in_graph);
  server.Join();
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    cohort::testing::Run(cohort::testing::Flags(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chaos_job: %s\n", error.what());
    return 1;
  }
}
