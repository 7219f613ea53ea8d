// The guide network, which several benchmarks use. It is the network of examples/fashion_mnist: a 3x3 convolution and
// five separable ones. It is made by hand with its SGD step, and as a Keras model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/cohort.h"

namespace cohort {

struct GuideSeparable {
  int64_t size;
  int64_t in;
  int64_t out;
  bool pooled;
};
inline constexpr GuideSeparable kGuideSeparables[] = {
    {28, 128, 128, true}, {14, 128, 256, false}, {14, 256, 256, true}, {7, 256, 512, false}, {7, 512, 512, true}};
inline constexpr int64_t kGuideFlat = 3 * 3 * 512;

// Returns a tensor with the values scale sin(i), in float32 or bfloat16.
Tensor SineValues(DType dtype, const Shape& shape, float scale = 0.1f);

struct GuideNetworkOptions {
  std::string device = {};  // "": where the session places nodes
  double learning_rate = 0.01;
  double momentum = 0;
  bool keeps_batch = false;  // the batch is in variables on the device, and is not fed
};

// The network by hand, with float32 variables, computed in `dtype`. Each step gets the same batch.
class GuideNetwork {
 public:
  GuideNetwork(int64_t batch, DType dtype, const GuideNetworkOptions& options = {});

  // A session with `threads` threads and initialized variables.
  class Run {
   public:
    Run(GuideNetwork& network, int threads);
    // Makes a step and returns its loss.
    float Step() const { return step_(network_.feeds_)[0].scalar<float>(); }
    // Makes a step whose loss is not fetched.
    void Train() const { train_(network_.feeds_); }

   private:
    GuideNetwork& network_;
    Session session_;
    Callable step_;
    Callable train_;
  };

 private:
  Output Computed(Output value);
  Output Variable(const Shape& shape, float scale);
  Output Weights(const Shape& shape, int64_t fan_in);
  Output Finished(Output value, int64_t channels);

  const DType dtype_;
  Graph graph_;
  std::vector<Output> inputs_;  // what is fed
  std::vector<Tensor> feeds_;
  Output loss_;
  Node* train_ = nullptr;
  Node* init_ = nullptr;
};

// Returns the network as a Keras model, not compiled. It takes [batch, 28, 28, 1] f32 and classes 0 to 9.
keras::Sequential KerasGuideNetwork(const keras::ModelOptions& options);

}  // namespace cohort
