// Fit on a GPU of a fake driver on which a call finds no memory once: of the card, of pinned memory, for a stream, an
// event, a kernel or a graph. Fit goes on without, or fails with an error that says so. Then the same model trains as
// if nothing had happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/cards_of_test.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/registration.h"

namespace cohort::keras {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class FitOutOfMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    COHORT_NEEDS_FAKE("the test has cards of its own");
    RegisterAll();
    cuda::RegisterFakeCuda();
    took_unplaced_nodes_ = backend().takes_unplaced_nodes();
    backend().set_takes_unplaced_nodes(true);  // as without tests
  }
  void TearDown() override { backend().set_takes_unplaced_nodes(took_unplaced_nodes_); }
  static cuda::CudaBackend& backend() { return cuda::CudaBackend::Get(); }

  // A network whose training keeps no values but its weights, so that SetWeights takes it back to its begin.
  static std::unique_ptr<Sequential> MakeModel() {
    SessionConfig session;
    session.device_count[backend().type()] = 1;
    auto model = std::make_unique<Sequential>(
        std::vector<SequentialItem>{Input(Shape{6, 6, 1}), Conv2D(3, 3, {.activation = "relu"}), Flatten(),
                                    Dense(4, {.activation = "softmax"})},
        ModelOptions{.seed = 5, .session = session});
    model->Compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
    return model;
  }
  // Trains four steps: the first is launched, the second is recorded, and the others run from its graph.
  static void Fit(Sequential& model) {
    const Tensor x = Counting(Shape{16, 6, 6, 1}, -1.0f, 0.003f);
    Tensor y(DType::kInt64, Shape{16});
    for (int64_t i = 0; i < y.num_elements(); ++i) y.data<int64_t>()[i] = i * 3 % 4;
    model.Fit(x, y, {.batch_size = 4, .epochs = 1, .verbose = 0, .shuffle = false});
  }
  static std::vector<Tensor> Weights(const Sequential& model) {
    std::vector<Tensor> weights;
    for (const Tensor& weight : model.GetWeights()) weights.push_back(weight.Clone());
    return weights;
  }
  static void ExpectSame(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].shape(), b[i].shape());
      EXPECT_EQ(std::memcmp(a[i].raw_data(), b[i].raw_data(), a[i].bytes()), 0) << i;
    }
  }

  // Trains on a card of which call n, from its first use on, finds no memory. Returns how many calls were made.
  int64_t FitWithout(int64_t n, const std::vector<Tensor>& first, const std::vector<Tensor>& expected) {
    cuda::CardsOfTest cards;
    int64_t calls = 0;
    {
      const std::unique_ptr<Sequential> model = MakeModel();
      cards.control().FailTaking(n);
      try {
        model->SetWeights(first);
        Fit(*model);
        ExpectSame(Weights(*model), expected);
      } catch (const ResourceExhaustedError& error) {
        ++errors_;
        EXPECT_THAT(error.what(), AnyOf(HasSubstr("[cuda] "), HasSubstr("[cuda memory] ")));
      }
      calls = cards.control().takings();
      cards.control().FailTaking(0);
      model->SetWeights(first);
      Fit(*model);
      ExpectSame(Weights(*model), expected);
    }
    EXPECT_EQ(cards.control().live(), cuda::FakeLive());
    cards.End();
    return calls;
  }

  bool took_unplaced_nodes_ = false;
  int errors_ = 0;
};

// Each third call is tried, to save time. cuda_recording_test tries all calls of a training without Keras.
TEST_F(FitOutOfMemoryTest, ACallMayFindNoMemoryOnce) {
  std::vector<Tensor> first, expected;
  {
    cuda::CardsOfTest cards;
    {
      const std::unique_ptr<Sequential> model = MakeModel();
      first = Weights(*model);
      Fit(*model);
      expected = Weights(*model);
      EXPECT_GT(cards.control().graph_launches(), 2);
    }
    cards.End();
  }
  constexpr int64_t kNever = int64_t{1} << 40, kEach = 3;
  const int64_t calls = FitWithout(kNever, first, expected);
  EXPECT_GT(calls, 20);
  EXPECT_EQ(errors_, 0);
  for (int64_t n = 1; n <= calls && !HasFailure(); n += kEach) FitWithout(n, first, expected);
  EXPECT_GT(errors_, 0);
}

}  // namespace
}  // namespace cohort::keras
