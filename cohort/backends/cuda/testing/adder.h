// Adder: a small step that is recorded. CopiedAheadTest: the base of tests of feeds that are copied to the card while
// the step before runs. For tests only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cohort/backends/cuda/testing/recording_fixture.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/variables.h"

namespace cohort::cuda {

// A step that adds its feeds, of any number of rows, to a sum, and fetches three times the first feed.
class Adder {
 public:
  // So often a step runs until it is recorded, and there is memory for the copies of three steps.
  static constexpr int kWarm = 6;

  explicit Adder(const SessionConfig& config, size_t feeds = 1) : scope_(g_, "/device:GPU:0") {
    std::vector<Output> xs, sums;
    for (size_t i = 0; i < feeds; ++i) {
      xs.push_back(ops::Placeholder(g_, DType::kFloat32, Shape{-1, 64}, StrCat("x", i)));
      sums.push_back(ops::Sum(xs.back()));
    }
    const ops::Variable sum(g_, Tensor::Scalar(0.0f), {.name = "sum"});
    const Output fetch = xs[0] * 3.0f;
    session_ = std::make_unique<Session>(g_, "", config);
    session_->Run(sum.initializer());
    Node* const add = sum.AssignAdd(ops::AddN(sums));
    sum_ = sum.Read();
    step_ = session_->MakeCallable(xs, {fetch}, {add});
    feeds_ = feeds;
  }
  // The value is that of all feeds.
  Tensor Run(const Tensor& value, const Callable::NextFeeds& next = {}) { return (*step_)(Feeds(value), next)[0]; }
  Tensor Run(const Tensor& value, const Tensor& next) {
    return Run(value, [&] { return Feeds(next); });
  }
  // Runs steps until a step may use what the one before has copied.
  void Warm(const Tensor& value) {
    for (int i = 0; i < kWarm; ++i) Run(value, value);
  }
  void DropNext() { step_->DropNext(); }
  Tensor Sum() { return session_->Run(sum_); }

 private:
  std::vector<Tensor> Feeds(const Tensor& value) const { return std::vector<Tensor>(feeds_, value); }

  Graph g_;
  DeviceScope scope_;
  Output sum_;
  std::unique_ptr<Session> session_;
  std::optional<Callable> step_;
  size_t feeds_ = 0;
};

class CopiedAheadTest : public RecordingTest {
 protected:
  static Tensor Batch(int64_t rows, int64_t seed) { return SeededNoise(Shape{rows, 64}, seed); }
  // A run with a time limit does not ask for the next feeds.
  static SessionConfig Unlimited() {
    SessionConfig config = Config();
    config.operation_timeout = {};
    return config;
  }
  static SessionConfig OneCard() {
    SessionConfig config = Unlimited();
    config.device_count[CudaBackend::Get().type()] = 1;
    return config;
  }
  static void ExpectTriple(const Tensor& result, const Tensor& of) {
    ASSERT_EQ(result.shape(), of.shape());
    for (int64_t i = 0; i < of.num_elements(); ++i) ASSERT_EQ(result.data<float>()[i], 3.0f * of.data<float>()[i]) << i;
  }
};

}  // namespace cohort::cuda
