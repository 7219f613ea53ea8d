// Fits y = 2 x + 10 from noisy samples with parameter servers and workers. To start the tasks by hand, use three
// terminals. Enter the first line in each of them, and one of the other lines:
//
//   HOSTS="--ps_hosts=127.0.0.1:2222 --worker_hosts=127.0.0.1:2223,127.0.0.1:2224"
//   linear_regression $HOSTS --job_name=ps --task_index=0
//   linear_regression $HOSTS --job_name=worker --task_index=0
//   linear_regression $HOSTS --job_name=worker --task_index=1
//
// To start all of them at once:
//
//   cohort launch --ps=1 --workers=2 -- linear_regression
//
// By default each worker builds its own graph and applies its gradients as they come (between-graph replication). With
// --in_graph, worker 0 builds one graph with a replica for each worker, and the others only serve. With --sync, the
// gradients of all replicas are averaged and applied once; between graphs, SyncReplicasOptimizer does it.
//
// A task that only serves waits for the end of training. Another task builds the graph, opens a session with a
// Supervisor, trains, and prints its rate. The words: a replica is the nodes of one worker's model. A lane is the
// replicas that run in one step.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "examples/task.h"

namespace {

using namespace cohort;

struct Flags {
  examples::ClusterFlags cluster;
  double learning_rate = 0.00003;
  int64_t steps_to_validate = 1000;
  int64_t max_steps = 1000000;
  std::string logdir = "./checkpoint/";
  std::chrono::milliseconds save_model_interval = std::chrono::minutes(1);
  bool in_graph = false;
  bool sync = false;
  bool fresh = false;
};

struct Replica {
  Output x, y, loss;
  std::string device;
};

struct Model {
  Graph graph;
  ops::Variable global_step, weight, biase;
  std::shared_ptr<train::SessionRunHook> sync_hook;  // null without synchronous replicas between graphs
  train::Coordinator sync_coordinator;               // the hook's; outlives the session
};

// Replicas that run in the same step, and the nodes that the step runs.
struct Lane {
  std::vector<Replica> replicas;
  Node* train = nullptr;
  Output step_after;  // the global step after the update
};

Replica AddReplica(Model& model, const examples::Task& task, const std::string& device) {
  const DeviceScope scope(model.graph, task.replica_device(device));
  Replica replica;
  replica.device = device;
  replica.x = ops::Placeholder(model.graph, DType::kFloat32, Shape{1}, "input");
  replica.y = ops::Placeholder(model.graph, DType::kFloat32, Shape{1}, "label");
  const Output pred = replica.x * model.weight + model.biase;
  replica.loss = ops::SquaredDifference(replica.y, pred);
  return replica;
}

// Applies the mean of the replicas' gradients.
Lane MakeLane(Model& model, const examples::Task& task, train::Optimizer& optimizer, std::vector<Replica> replicas) {
  std::vector<train::GradientAndVariable> mean;
  for (const Replica& replica : replicas) {
    const DeviceScope scope(model.graph, task.replica_device(replica.device));
    const auto gradients = optimizer.ComputeGradients(replica.loss, {model.weight, model.biase});
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (mean.size() < gradients.size()) {
        mean.push_back(gradients[i]);
      } else {
        mean[i].gradient = mean[i].gradient.values + gradients[i].gradient.values;
      }
    }
  }
  if (replicas.size() > 1) {
    for (auto& one : mean) one.gradient = one.gradient.values / static_cast<float>(replicas.size());
  }
  Lane lane;
  lane.train = optimizer.ApplyGradients(mean, model.global_step);
  const ControlDependencies after(model.graph, {lane.train});
  lane.step_after = model.global_step.Read();
  lane.replicas = std::move(replicas);
  return lane;
}

// Adds the step of one of several workers that build their own graphs: it waits until the mean of all gradients is
// applied.
Lane MakeSynchronousLane(Model& model, const examples::Task& task, train::Optimizer& optimizer, Replica replica) {
  const DeviceScope scope(model.graph, task.replica_device(replica.device));
  train::SyncReplicasOptimizer sync(optimizer, {.replicas_to_aggregate = task.num_workers()});
  Lane lane;
  lane.train = sync.Minimize(replica.loss, model.global_step, {model.weight, model.biase});
  model.sync_hook = sync.MakeSessionRunHook(task.is_chief());
  model.sync_hook->Begin(model.graph);
  const ControlDependencies after(model.graph, {lane.train});
  lane.step_after = sync.local_step().Read();  // the step of the mean; it needs no message of its own
  lane.replicas = {std::move(replica)};
  return lane;
}

std::vector<Lane> BuildModel(const Flags& flags, const examples::Task& task, Model& model) {
  {
    const DeviceScope scope(model.graph, task.replica_device());
    model.global_step = ops::GetOrCreateGlobalStep(model.graph);
    model.weight = ops::GetVariable(model.graph, "weight", Shape{1}, DType::kFloat32, initializers::RandomNormal());
    model.biase = ops::GetVariable(model.graph, "biase", Shape{1}, DType::kFloat32, initializers::RandomNormal());
  }
  train::GradientDescentOptimizer optimizer(flags.learning_rate);
  std::vector<Replica> replicas;
  if (flags.in_graph && task.server != nullptr) {
    for (const int worker : task.cluster.task_indices("worker")) {
      replicas.push_back(AddReplica(model, task, TaskName("worker", worker)));
    }
  } else {
    replicas.push_back(AddReplica(model, task, task.device()));
  }
  std::vector<Lane> lanes;
  if (flags.sync && !flags.in_graph) {
    lanes.push_back(MakeSynchronousLane(model, task, optimizer, replicas[0]));
  } else if (flags.sync) {
    lanes.push_back(MakeLane(model, task, optimizer, replicas));
  } else {
    for (const Replica& replica : replicas) lanes.push_back(MakeLane(model, task, optimizer, {replica}));
  }
  return lanes;
}

// Runs steps of one lane until the global step is max_steps. Adds 1 to `steps` after each of them.
void Train(const Flags& flags, const Model& model, const Lane& lane, train::Supervisor& supervisor, Session& session,
           std::atomic<int64_t>* steps) {
  std::vector<Output> feeds;
  for (const Replica& replica : lane.replicas) feeds.insert(feeds.end(), {replica.x, replica.y});
  const Callable run = session.MakeCallable(feeds, {lane.replicas[0].loss, lane.step_after}, {lane.train});
  std::mt19937_64 random(std::random_device{}());
  std::normal_distribution<float> normal;
  int64_t step = session.Run(model.global_step.value()).scalar<int64_t>();
  while (step < flags.max_steps && !supervisor.should_stop()) {
    std::vector<Tensor> values;
    for (size_t i = 0; i < lane.replicas.size(); ++i) {
      const float x = normal(random);
      values.push_back(Tensor::Vector<float>({x}));
      values.push_back(Tensor::Vector<float>({2 * x + 0.33f * normal(random) + 10}));
    }
    const std::vector<Tensor> results = run(values);
    step = results[1].scalar<int64_t>();
    ++*steps;
    if (step % flags.steps_to_validate == 0) {
      const float loss = results[0].data<float>()[0];
      const std::vector<Tensor> fitted = session.Run({model.weight.value(), model.biase.value()});
      std::printf("step: %lld, weight: %f, biase: %f, loss: %f\n", static_cast<long long>(step),
                  fitted[0].data<float>()[0], fitted[1].data<float>()[0], loss);
      supervisor.SummaryComputed(Tensor::Scalar(ScalarSummary("cost", loss)), step);
    }
  }
}

// Runs all lanes, each on a thread of its own if there are several.
int64_t TrainAll(const Flags& flags, const Model& model, const std::vector<Lane>& lanes, train::Supervisor& supervisor,
                 Session& session) {
  std::atomic<int64_t> steps{0};
  if (lanes.size() == 1) {
    Train(flags, model, lanes[0], supervisor, session, &steps);
    return steps;
  }
  std::vector<std::thread> threads;
  threads.reserve(lanes.size());
  for (const Lane& lane : lanes) {
    threads.emplace_back([&] {
      try {
        Train(flags, model, lane, supervisor, session, &steps);
      } catch (...) {
        supervisor.RequestStop(std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return steps;
}

// Ends the loops of the hook before the session ends, which they use.
struct LoopsOfHook {
  train::Coordinator& coordinator;
  ~LoopsOfHook() {
    coordinator.RequestStop();
    coordinator.Join();
  }
};

// As TrainAll, with the loop and the tokens of synchronous replicas if the model has them. When the chief has ended, or
// after SIGTERM, a worker that waits for a token ends, too.
int64_t TrainTogether(const Flags& flags, Model& model, const std::vector<Lane>& lanes, train::Supervisor& supervisor,
                      Session& session) {
  if (model.sync_hook == nullptr) return TrainAll(flags, model, lanes, supervisor, session);
  const LoopsOfHook loops{model.sync_coordinator};
  model.sync_hook->AfterCreateSession(session, model.sync_coordinator);
  std::atomic<int64_t> steps{0};
  try {
    Train(flags, model, lanes[0], supervisor, session, &steps);
  } catch (const OutOfRangeError&) {
    return steps;
  }
  model.sync_hook->End(session);
  return steps;
}

int Run(const Flags& flags) {
  const examples::Task task = examples::StartTask(flags.cluster);
  if (task.server != nullptr && (task.job == "ps" || (flags.in_graph && !task.is_chief()))) {
    task.server->Join();
    return 0;
  }
  Model model;
  const std::vector<Lane> lanes = BuildModel(flags, task, model);
  train::Supervisor supervisor(model.graph, {.is_chief = task.is_chief(),
                                             .logdir = flags.logdir,
                                             .global_step = model.global_step,
                                             .summary_op = Output(),
                                             .save_model_interval = flags.save_model_interval,
                                             .restore = !flags.fresh,
                                             .server = task.server.get()});
  train::ManagedSession session = supervisor.managed_session(task.target());
  const auto start = std::chrono::steady_clock::now();
  const int64_t steps = TrainTogether(flags, model, lanes, supervisor, *session);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s %d: %lld steps in %.2f s, %.1f steps/s\n", task.job.c_str(), task.index,
              static_cast<long long>(steps), seconds, static_cast<double>(steps) / seconds);
  if (steps == 0 && task.is_chief()) {
    examples::SayIfDone(session->Run(model.global_step.value()).scalar<int64_t>(), flags.max_steps, "--max_steps");
  }
  session.Close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("Fits y = 2 x + 10 from noisy samples with parameter servers and workers.");
  Flags flags;
  examples::AddClusterFlags(line, &flags.cluster);
  line.Add("--learning_rate", &flags.learning_rate, "Learning rate of gradient descent");
  line.Add("--steps_to_validate", &flags.steps_to_validate, "Print the loss after every so many steps",
           examples::AtLeast(1));
  line.Add("--max_steps", &flags.max_steps, "Global step at which training ends");
  line.Add("--logdir", &flags.logdir, "Folder of the chief's checkpoints and event files. Training goes on from them");
  line.Add("--save_model_secs", &flags.save_model_interval, "Seconds between two checkpoints. 0: no checkpoints",
           examples::AtLeast(0));
  line.AddSwitch("--in_graph", &flags.in_graph, "Worker 0 runs a replica on each worker. The other workers only serve");
  line.AddSwitch("--sync", &flags.sync, "Apply the mean of all replicas' gradients once in each step");
  line.AddSwitch("--fresh", &flags.fresh, "Begin with initial values and restore no checkpoint");
  return examples::Main(argc, argv, line, [&] { return Run(flags); });
}
