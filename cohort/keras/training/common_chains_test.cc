// The chains of elementwise nodes of common networks have kernels that are compiled with the program
// (cohort/backends/cuda/kernels/common_chains.txt). The networks here are those of the guides, with fewer channels and
// with batches that give each layer so many elements that another chain would ask for a kernel of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/libraries/kernel_compiler.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/registration.h"

namespace cohort::keras {
namespace {

using ::testing::IsEmpty;

// Makes no kernels, and keeps the lines that common_chains.txt lacks. Thread-safe.
class MissingChains final : public cuda::KernelCompiler {
 public:
  cuda::KernelCode Compile(cuda::Driver&, int, const std::string& source, const char*) override {
    // The text has the line in a comment before this one (ChainBody).
    const size_t end = source.find("\nusing T = "), begin = source.rfind("\n// ", end - 1) + 4;
    MutexLock lock(mu_);
    lines_.insert(source.substr(begin, end - begin));
    throw ResourceExhaustedError("[test] no kernels are made here");  // so the compiler is asked again
  }
  std::set<std::string> Take() {
    MutexLock lock(mu_);
    return std::exchange(lines_, {});
  }

 private:
  Mutex mu_;
  std::set<std::string> lines_ COHORT_GUARDED_BY(mu_);
};

class CommonChainsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    RegisterAll();
    counts_ = &cuda::RegisterGpusForTests().counts;
    cuda::InstallKernelCompiler(&missing_);
    took_ = cuda::CudaBackend::Get().takes_unplaced_nodes();
    cuda::CudaBackend::Get().set_takes_unplaced_nodes(true);  // as without tests
  }
  void TearDown() override {
    cuda::CudaBackend::Get().set_takes_unplaced_nodes(took_);
    cuda::InstallKernelCompiler(nullptr);
  }

  static ModelOptions Options() {
    SessionConfig session;
    session.device_count[cuda::CudaBackend::Get().type()] = 1;
    return {.dtype_policy = GetParam(), .seed = 5, .session = session};
  }
  // Trains and evaluates the model. Expects that all of its chains are in the table, and that it has some.
  void ExpectCommonChains(Model model, const CompileOptions& options, const Tensor& x, const Tensor& y) {
    const int64_t before = counts_->launches_of("chain_of_line_"), batch = x.shape().dim(0);
    model.Compile(options);
    model.Fit(x, y, {.batch_size = batch, .epochs = 1, .verbose = 0});
    model.Evaluate(x, y, {.batch_size = batch, .verbose = 0});
    EXPECT_THAT(missing_.Take(), IsEmpty()) << "add these lines to cohort/backends/cuda/kernels/common_chains.txt";
    EXPECT_GT(counts_->launches_of("chain_of_line_"), before);
  }
  void ExpectCommonChains(const Model& classifier, const OptimizerArgument& optimizer, const Shape& x) {
    Tensor y(DType::kInt64, Shape{x.dim(0)});
    for (int64_t i = 0; i < y.num_elements(); ++i) y.data<int64_t>()[i] = i % 7;
    ExpectCommonChains(classifier, {.optimizer = optimizer, .loss = "sparse_categorical_crossentropy"},
                       Counting(x, -1.0f, 2e-5f), y);
  }

 private:
  static inline MissingChains& missing_ = *new MissingChains;  // the process may keep its address
  const cuda::DriverCounts* counts_ = nullptr;
  bool took_ = false;
};

// Guides 000 and 001, with a dropout.
TEST_P(CommonChainsTest, Perceptrons) {
  for (const char* activation : {"relu", "selu", "elu", "tanh", "sigmoid", "gelu", "swish"}) {
    const Sequential model({Input(Shape{16, 4}), Flatten(), Dense(1100, {.activation = activation}), Dropout(0.2),
                            Dense(10, {.activation = "softmax"})},
                           Options());
    ExpectCommonChains(model, "adam", Shape{64, 16, 4});
  }
}

// Guide 004.
TEST_P(CommonChainsTest, SeparableConvolutions) {
  const auto separable = [] { return SeparableConv2D(16, 3, {.padding = "same", .activation = "selu"}); };
  const Sequential model(
      {Input(Shape{8, 8, 1}), Conv2D(16, 3, {.padding = "same", .activation = "selu"}), separable(), MaxPool2D(2),
       separable(), separable(), Flatten(), Dense(300, {.activation = "selu"}), Dense(10, {.activation = "softmax"})},
      Options());
  ExpectCommonChains(model, SGD({.learning_rate = 0.01, .momentum = 0.9}), Shape{256, 8, 8, 1});
}

TEST_P(CommonChainsTest, ConvolutionsWithBatchNormalizationAndDropout) {
  const Sequential model(
      {Input(Shape{8, 8, 1}), Conv2D(8, 3, {.padding = "same", .activation = "relu"}), MaxPool2D(2),
       Conv2D(20, 3, {.padding = "same"}), BatchNormalization(), Activation("relu"), Dropout(0.25), Flatten(),
       Dense(300, {.activation = "relu"}), Dropout(0.5), Dense(10, {.activation = "softmax"})},
      Options());
  ExpectCommonChains(model, "adam", Shape{256, 8, 8, 1});
}

TEST_P(CommonChainsTest, ResidualBlock) {
  const LayerTensor in = Input(Shape{2, 2, 3});
  const LayerTensor x = Conv2D(160, 1)(in);
  LayerTensor y = Activation("relu")(BatchNormalization()(x));
  y = BatchNormalization()(Conv2D(160, 1)(y));
  y = LayerNormalization()(Activation("relu")(Add()({x, y})));
  y = Add()({y, Dropout(0.1)(Dense(160)(Dense(160, {.activation = "gelu"})(y)))});
  const LayerTensor out = Dense(10, {.activation = "softmax"})(Flatten()(LayerNormalization()(y)));
  ExpectCommonChains(Model({in}, {out}, Options()), "sgd", Shape{104, 2, 2, 3});
}

TEST_P(CommonChainsTest, Regression) {
  const Sequential model({Input(Shape{10}), Dense(7000, {.activation = "relu", .kernel_regularizer = "l2"})},
                         Options());
  ExpectCommonChains(model, {.optimizer = "sgd", .loss = "mse"}, Counting(Shape{10, 10}, -1.0f, 0.02f),
                     Counting(Shape{10, 7000}, 0.0f, 1e-5f));
}

INSTANTIATE_TEST_SUITE_P(Policies, CommonChainsTest, ::testing::Values("float32", "mixed_bfloat16"));

}  // namespace
}  // namespace cohort::keras
