// Predict from several threads at once.
#include <gtest/gtest.h>

#include <latch>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

constexpr int kThreads = 6;

// Runs `work` on all threads at the same time; returns what each of them threw.
template <typename Work>
std::vector<Status> Together(const Work& work) {
  std::vector<Status> outcomes(kThreads);
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      try {
        start.arrive_and_wait();
        work(i);
      } catch (...) {
        outcomes[static_cast<size_t>(i)] = Status::FromCurrentException();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// The first calls make layers, weights and the prediction function; each thread has data of its own.
TEST(PredictTest, ThreadsMayMakeTheFirstCallsTogether) {
  RegisterAll();
  for (int round = 0; round < 10; ++round) {
    const auto make = [&](bool shape_is_known) {
      std::vector<SequentialItem> items;
      if (shape_is_known) items.emplace_back(Input(Shape{3}));
      items.insert(items.end(), {Dense(8, {.activation = "tanh"}), Dense(2)});
      return std::make_unique<Sequential>(items, ModelOptions{.seed = 7});
    };
    const auto x = [](int thread) { return Counting(Shape{thread + 1, 3}, -0.5f, 0.125f); };
    const auto alone = make(true), model = make(round % 2 == 0);
    std::vector<Tensor> results(kThreads);
    const std::vector<Status> outcomes = Together([&](int thread) {
      for (int i = 0; i < 5; ++i) results[static_cast<size_t>(thread)] = model->Predict(x(thread));
    });
    for (int thread = 0; thread < kThreads; ++thread) {
      const auto index = static_cast<size_t>(thread);
      ASSERT_TRUE(outcomes[index].ok()) << outcomes[index].ToString();
      EXPECT_EQ(results[index].ToVector<float>(), alone->Predict(x(thread)).ToVector<float>());
    }
  }
}

}  // namespace
}  // namespace cohort::keras
