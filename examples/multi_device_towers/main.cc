// Trains on several devices of one machine, by hand: each device has a tower, that is a copy of the model's computation
// with a batch of its own. The parameters are on the CPU, which averages the gradients of all towers and applies the
// mean. guide-000 describes this in its first part. The program fits the guide's line, Y = 2 X + 10.
//
// The towers are on the GPUs, if there are some, or else on logical CPU devices. So the environment variable
// CUDA_VISIBLE_DEVICES chooses between them, as in TensorFlow: '' hides all GPUs.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <random>

#include "cohort/cohort.h"
#include "examples/command_line.h"

namespace {

using namespace cohort;

struct Flags {
  int towers = 3;
  int batch_size = 128;
  int steps = 200;
  double learning_rate = 0.1;
  std::string timeline;
};

struct Tower {
  std::string device;
  Output x, y, loss;
  std::vector<train::GradientAndVariable> gradients;
};

// Device 0 of the CPU has the parameters.
std::string DeviceOfTower(int tower, size_t num_gpus) {
  if (num_gpus == 0) return "/device:CPU:" + std::to_string(tower + 1);
  return "/device:GPU:" + std::to_string(static_cast<size_t>(tower) % num_gpus);
}

Tower AddTower(Graph& graph, const std::string& device, const train::Optimizer& optimizer,
               const std::vector<ops::Variable>& parameters, int64_t batch_size) {
  const DeviceScope scope(graph, device);
  Tower tower{.device = device};
  tower.x = ops::Placeholder(graph, DType::kFloat32, Shape{batch_size}, "x");
  tower.y = ops::Placeholder(graph, DType::kFloat32, Shape{batch_size}, "y");
  tower.loss = ops::Mean(ops::SquaredDifference(ops::Mul(tower.x, parameters[0]) + parameters[1], tower.y));
  tower.gradients = optimizer.ComputeGradients(tower.loss, parameters);
  return tower;
}

// Returns the mean of the towers' gradients for each variable.
std::vector<train::GradientAndVariable> AverageGradients(Graph& graph, const std::vector<Tower>& towers) {
  const DeviceScope scope(graph, "/device:CPU:0");
  std::vector<train::GradientAndVariable> averages;
  for (size_t i = 0; i < towers[0].gradients.size(); ++i) {
    std::vector<Output> of_towers;
    of_towers.reserve(towers.size());
    for (const Tower& tower : towers) of_towers.push_back(ToDense(tower.gradients[i].gradient));
    averages.push_back(towers[0].gradients[i]);
    averages.back().gradient = ops::AddN(of_towers) / static_cast<float>(towers.size());
  }
  return averages;
}

// Gives each tower the next `batch_size` points of one stream.
FeedList NextBatches(const std::vector<Tower>& towers, int batch_size, std::mt19937& random) {
  std::normal_distribution<float> normal;
  FeedList feeds;
  for (const Tower& tower : towers) {
    std::vector<float> x(static_cast<size_t>(batch_size)), y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = normal(random);
      y[i] = 2 * x[i] + 10 + 0.33f * normal(random);
    }
    feeds.emplace_back(tower.x, Tensor::Vector(x));
    feeds.emplace_back(tower.y, Tensor::Vector(y));
  }
  return feeds;
}

void Train(const Flags& flags) {
  Graph graph;
  std::vector<ops::Variable> parameters;
  {
    const DeviceScope cpu(graph, "/device:CPU:0");
    parameters.push_back(ops::GetVariable(graph, "weight", Shape{1}, DType::kFloat32, initializers::Zeros()));
    parameters.push_back(ops::GetVariable(graph, "biase", Shape{1}, DType::kFloat32, initializers::Zeros()));
  }
  const size_t num_gpus = config::ListPhysicalDevices("GPU").size();
  train::GradientDescentOptimizer optimizer(flags.learning_rate);
  std::vector<Tower> towers;
  std::vector<Output> losses;
  for (int i = 0; i < flags.towers; ++i) {
    towers.push_back(AddTower(graph, DeviceOfTower(i, num_gpus), optimizer, parameters, flags.batch_size));
    losses.push_back(towers.back().loss);
    std::printf("tower %d is on %s\n", i, towers.back().device.c_str());
  }
  Node* train = optimizer.ApplyGradients(AverageGradients(graph, towers));
  const Output loss = ops::AddN(losses) / static_cast<float>(flags.towers);

  SessionConfig devices;
  if (num_gpus == 0) devices.device_count = {{"CPU", 1 + flags.towers}};
  Session session(graph, "", devices);
  session.Run(ops::InitializeAllVariables(graph));
  std::mt19937 random(1);
  for (int step = 1; step <= flags.steps; ++step) {
    RunOptions options;
    if (step == flags.steps && !flags.timeline.empty()) options.trace_level = TraceLevel::kFullTrace;
    const RunResults results = session.Run(NextBatches(towers, flags.batch_size, random), {loss}, {train}, options);
    if (step % 50 == 0) std::printf("step %d: loss %f\n", step, static_cast<double>(results[loss].scalar<float>()));
    if (options.trace_level != TraceLevel::kNoTrace) {
      std::ofstream(flags.timeline) << ChromeTraceFormat(results.run_metadata().step_stats);
    }
  }
  const RunResults fitted = session.Run({}, {parameters[0], parameters[1]});
  std::printf("weight: %f, biase: %f\n", static_cast<double>(fitted[0].data<float>()[0]),
              static_cast<double>(fitted[1].data<float>()[0]));
}

}  // namespace

int main(int argc, char** argv) try {
  Flags flags;
  examples::CommandLine line("Fits Y = 2 X + 10 on several devices of this machine, with averaged gradients.");
  line.Add("--towers", &flags.towers, "copies of the computation, each on a device of its own", examples::AtLeast(1));
  line.Add("--batch_size", &flags.batch_size, "points for each tower in a step", examples::AtLeast(1));
  line.Add("--steps", &flags.steps, "steps", examples::AtLeast(1));
  line.Add("--learning_rate", &flags.learning_rate, "learning rate");
  line.Add("--timeline", &flags.timeline, "a file that gets the timeline of the last step, for chrome://tracing");
  if (const auto exit_code = line.Parse(argc, argv)) return *exit_code;
  Train(flags);
  return 0;
} catch (const cohort::Error& error) {
  std::cerr << argv[0] << ": " << error.what() << "\n";
  return 1;
}
