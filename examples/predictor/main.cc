// Serves a model from several threads: trains a small classifier, saves it, loads it as a keras::Predictor, and lets
// threads that each have their own requests call it at the same time.
//
//   predictor [PATH.keras]    # the file to write and to serve; default: predictor.keras in the current folder
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cohort.h"

using namespace cohort;

namespace {

constexpr int kThreads = 4, kRequests = 500;

// Points of the square [-1, 1] x [-1, 1]; class 1 is inside of the circle that covers half of it.
keras::ModelData Points(int64_t count) {
  Tensor x(DType::kFloat32, Shape{count, 2}), y(DType::kInt32, Shape{count});
  for (int64_t i = 0; i < count; ++i) {
    const float a = 2 * static_cast<float>(i * 7919 % 1009) / 1008 - 1;
    const float b = 2 * static_cast<float>(i * 104729 % 997) / 996 - 1;
    x.data<float>()[2 * i] = a;
    x.data<float>()[2 * i + 1] = b;
    y.data<int32_t>()[i] = a * a + b * b < 2 / 3.14159f ? 1 : 0;
  }
  return {x, y};
}

// Returns false, without saving, if the program was told to stop.
bool TrainAndSave(const std::string& path) {
  keras::Sequential model({keras::Input(Shape{2}, {.name = "point"}), keras::Dense(32, {.activation = "relu"}),
                           keras::Dense(32, {.activation = "relu"}), keras::Dense(2, {.activation = "softmax"})},
                          {.name = "circle", .seed = 1});
  model.Compile({.optimizer = keras::Adam({.learning_rate = 0.01}), .loss = "sparse_categorical_crossentropy"});
  if (model.Fit(Points(2000), {.epochs = 8, .verbose = 0}).interrupted()) return false;
  model.Save(path);
  return true;
}

// One client: requests of 1 to 16 points each. Returns how many of its points get the right class.
int64_t Serve(const keras::Predictor& predictor, const keras::ModelData& points, int client, int64_t* count) {
  int64_t right = 0;
  for (int64_t request = 0; request < kRequests; ++request) {
    const int64_t size = 1 + request % 16;
    const int64_t first = (client * kRequests + request) * 16 % (points.x()[0].shape().dim(0) - size);
    const Tensor classes = predictor.Predict(points.x()[0].Slice(first, first + size));
    for (int64_t i = 0; i < size; ++i) {
      const int32_t guess = classes.data<float>()[2 * i + 1] > classes.data<float>()[2 * i] ? 1 : 0;
      right += guess == points.y()[0].data<int32_t>()[first + i] ? 1 : 0;
    }
    *count += size;
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "predictor.keras";
  if (!TrainAndSave(path)) return 0;
  // Requests come from many threads, so each of them computes with one.
  const keras::Predictor predictor = keras::Predictor::Load(path, {.session = {.intra_op_parallelism_threads = 1}});
  for (const keras::Predictor::Value& input : predictor.inputs()) {
    std::printf("model '%s' takes '%s' %s\n", predictor.name().c_str(), input.name.c_str(),
                input.shape.ToString().c_str());
  }
  const keras::ModelData points = Points(1000);
  std::atomic<int64_t> right = 0, count = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < kThreads; ++client) {
    clients.emplace_back([&, client] {
      int64_t served = 0;
      right += Serve(predictor, points, client, &served);
      count += served;
    });
  }
  for (std::thread& client : clients) client.join();
  try {
    predictor.Predict(Tensor::Vector<float>({0.5f, 0.5f}));  // one point without its batch
  } catch (const InvalidArgumentError& error) {
    std::printf("refused: %s\n", error.what());
  }
  std::printf("%d threads were served %lld points, right: %.4f\n", kThreads, static_cast<long long>(count.load()),
              static_cast<double>(right) / static_cast<double>(count));
}
