// Classifies images of ten classes (Fashion-MNIST, or MNIST) with a softmax layer and at most one hidden layer. Each
// worker trains on its own part of the images. The workers share the variables on parameter servers:
//
//   cohort launch --ps=2 --workers=2 -- mnist_classifier --data_dir=fashion-mnist
//
// A task that is a ps only serves. A worker loads the images, builds the graph, and opens a session with a Supervisor.
// Then it trains. At the end the chief computes the accuracy on the test images.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>

#include "examples/images.h"
#include "examples/task.h"

namespace {

using namespace cohort;

constexpr int64_t kPixels = 28 * 28;
constexpr int64_t kClasses = 10;

struct Flags {
  examples::ClusterFlags cluster;
  std::string data_dir;
  int64_t hidden = 128;
  int64_t batch_size = 100;
  double learning_rate = 0.001;
  double epochs = 5;
  int64_t max_steps = 0;
  int64_t steps_to_validate = 500;
  std::string logdir;
  std::chrono::milliseconds save_model_interval = std::chrono::minutes(1);
  bool fresh = false;
};

// Makes batches of one worker's images. These are every n-th image, in a new order in each epoch.
class Batches {
 public:
  Batches(const data::ImageDataset& dataset, int worker, int workers, int64_t batch_size)
      : dataset_(dataset), batch_size_(batch_size), random_(static_cast<uint64_t>(worker) + 1) {
    for (int64_t i = worker; i < dataset.train_labels.num_elements(); i += workers) order_.push_back(i);
    next_ = order_.size();
  }

  // Returns images [batch, 784] float32 with values from 0 to 1, and labels [batch] int64.
  std::pair<Tensor, Tensor> Next() {
    Tensor images(DType::kFloat32, Shape{batch_size_, kPixels});
    Tensor labels(DType::kInt64, Shape{batch_size_});
    for (int64_t row = 0; row < batch_size_; ++row) {
      if (next_ == order_.size()) {
        std::shuffle(order_.begin(), order_.end(), random_);
        next_ = 0;
      }
      const int64_t index = order_[next_++];
      const uint8_t* from = dataset_.train_images.data<uint8_t>() + index * kPixels;
      std::transform(from, from + kPixels, images.data<float>() + row * kPixels, [](uint8_t v) { return v / 255.0f; });
      labels.data<int64_t>()[row] = dataset_.train_labels.data<uint8_t>()[index];
    }
    return {std::move(images), std::move(labels)};
  }

 private:
  const data::ImageDataset& dataset_;
  const int64_t batch_size_;
  std::mt19937_64 random_;
  std::vector<int64_t> order_;
  size_t next_;
};

struct Model {
  Graph graph;
  ops::Variable global_step;
  Output images, labels, loss, correct;
  Node* train = nullptr;
  Output step_after;
};

Output Dense(Graph& graph, Output x, const std::string& name, int64_t outputs) {
  const auto kernel = ops::GetVariable(graph, name + "/kernel", Shape{x.shape().dim(1), outputs});
  const auto bias = ops::GetVariable(graph, name + "/bias", Shape{outputs}, DType::kFloat32, initializers::Zeros());
  return ops::BiasAdd(ops::MatMul(x, kernel), bias);
}

void BuildModel(const Flags& flags, const examples::Task& task, Model& model) {
  Graph& graph = model.graph;
  const DeviceScope scope(graph, task.replica_device());
  model.global_step = ops::GetOrCreateGlobalStep(graph);
  model.images = ops::Placeholder(graph, DType::kFloat32, Shape{-1, kPixels}, "images");
  model.labels = ops::Placeholder(graph, DType::kInt64, Shape{-1}, "labels");
  Output x = model.images;
  if (flags.hidden > 0) x = ops::Relu(Dense(graph, x, "hidden", flags.hidden));
  const Output logits = Dense(graph, x, "softmax", kClasses);
  model.loss = ops::Mean(ops::SparseSoftmaxCrossEntropyWithLogits({.labels = model.labels, .logits = logits}));
  model.correct = ops::Sum(ops::Cast(ops::Equal(ops::ArgMax(logits, 1), model.labels), DType::kInt32));
  train::AdamOptimizer optimizer(flags.learning_rate);
  model.train = optimizer.Minimize(model.loss, model.global_step);
  const ControlDependencies after(graph, {model.train});
  model.step_after = model.global_step.Read();
}

int64_t Train(const Flags& flags, const Model& model, Batches& batches, int64_t last_step,
              train::Supervisor& supervisor, Session& session) {
  const Callable run =
      session.MakeCallable({model.images, model.labels}, {model.loss, model.step_after}, {model.train});
  int64_t steps = 0;
  int64_t step = session.Run(model.global_step.value()).scalar<int64_t>();
  while (step < last_step && !supervisor.should_stop()) {
    auto [images, labels] = batches.Next();
    const std::vector<Tensor> results = run({std::move(images), std::move(labels)});
    step = results[1].scalar<int64_t>();
    ++steps;
    if (step % flags.steps_to_validate == 0) {
      const float loss = results[0].scalar<float>();
      std::printf("step: %lld, loss: %f\n", static_cast<long long>(step), loss);
      supervisor.SummaryComputed(Tensor::Scalar(ScalarSummary("loss", loss)), step);
    }
  }
  return steps;
}

double TestAccuracy(const data::ImageDataset& dataset, const Model& model, Session& session) {
  const int64_t n = dataset.test_labels.num_elements();
  const Tensor pixels = dataset.test_images.Reshaped(Shape{n, kPixels});
  int64_t correct = 0;
  for (int64_t begin = 0; begin < n; begin += 1000) {
    const int64_t end = std::min(n, begin + 1000);
    Tensor images(DType::kFloat32, Shape{end - begin, kPixels});
    Tensor labels(DType::kInt64, Shape{end - begin});
    const Tensor part = pixels.Slice(begin, end);
    std::transform(part.data<uint8_t>(), part.data<uint8_t>() + part.num_elements(), images.data<float>(),
                   [](uint8_t v) { return v / 255.0f; });
    std::copy_n(dataset.test_labels.data<uint8_t>() + begin, end - begin, labels.data<int64_t>());
    correct += session.Run({{model.images, images}, {model.labels, labels}}, {model.correct})[0].scalar<int32_t>();
  }
  return static_cast<double>(correct) / static_cast<double>(n);
}

int Run(const Flags& flags) {
  const examples::Task task = examples::StartTask(flags.cluster);
  if (task.job == "ps") {
    task.server->Join();
    return 0;
  }
  const data::ImageDataset dataset = examples::LoadImages(flags.data_dir, task.is_chief());
  const int64_t per_epoch = dataset.train_labels.num_elements() / flags.batch_size;
  const int64_t last_step =
      flags.max_steps > 0 ? flags.max_steps : static_cast<int64_t>(flags.epochs * static_cast<double>(per_epoch));
  Model model;
  BuildModel(flags, task, model);
  Batches batches(dataset, IdInCluster(task.cluster, task.job, task.index), task.num_workers(), flags.batch_size);
  train::Supervisor supervisor(model.graph, {.is_chief = task.is_chief(),
                                             .logdir = flags.logdir,
                                             .summary_op = Output(),
                                             .save_model_interval = flags.save_model_interval,
                                             .restore = !flags.fresh,
                                             .server = task.server.get()});
  train::ManagedSession session = supervisor.managed_session(task.target());
  const auto start = std::chrono::steady_clock::now();
  const int64_t steps = Train(flags, model, batches, last_step, supervisor, *session);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s %d: %lld steps in %.2f s, %.1f steps/s\n", task.job.c_str(), task.index,
              static_cast<long long>(steps), seconds, static_cast<double>(steps) / seconds);
  if (steps == 0 && task.is_chief()) {
    examples::SayIfDone(session->Run(model.global_step.value()).scalar<int64_t>(), last_step,
                        flags.max_steps > 0 ? "--max_steps" : "--epochs");
  }
  const double accuracy = task.is_chief() ? TestAccuracy(dataset, model, *session) : 0;
  session.Close();
  if (task.is_chief()) std::printf("test accuracy: %.4f%s\n", accuracy, examples::ImagesNote(dataset.generated));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line(
      "Trains a classifier of ten classes of images. Workers share the variables on parameter servers.");
  Flags flags;
  examples::AddClusterFlags(line, &flags.cluster);
  line.Add("--data_dir", &flags.data_dir, examples::kDataDirHelp);
  line.Add("--hidden", &flags.hidden, "Units of the hidden layer. 0: no hidden layer", examples::AtLeast(0));
  line.Add("--batch_size", &flags.batch_size, "Images in one step of one worker", examples::AtLeast(1));
  line.Add("--learning_rate", &flags.learning_rate, "Adam's learning rate");
  line.Add("--epochs", &flags.epochs, "Passes over all images, by all workers together", examples::AtLeast(0));
  line.Add("--max_steps", &flags.max_steps, "Global step at which training ends, instead of --epochs");
  line.Add("--steps_to_validate", &flags.steps_to_validate, "Print the loss after every so many steps",
           examples::AtLeast(1));
  line.Add("--logdir", &flags.logdir, "Folder of the chief's checkpoints and event files. Training goes on from them");
  line.Add("--save_model_secs", &flags.save_model_interval, "Seconds between two checkpoints. 0: no checkpoints",
           examples::AtLeast(0));
  line.AddSwitch("--fresh", &flags.fresh, "Begin with initial values and restore no checkpoint");
  return examples::Main(argc, argv, line, [&] { return Run(flags); });
}
