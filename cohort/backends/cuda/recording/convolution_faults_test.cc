// Convolutions that fail in a training: while a step is launched, while it is recorded, and behind its launch.
#include "cohort/backends/cuda/testing/network.h"
#include "cohort/backends/cuda/testing/own_card_fixture.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/convolution.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two convolutions, and their filters' updates by gradient descent. A step calls the library five times: forwards for
// each, and for the gradients of the second filter, of its input, and of the first filter. No update comes before the
// third call.
class ConvolutionNetwork {
 public:
  static constexpr int kCalls = 5;

  explicit ConvolutionNetwork(const SessionConfig& config) : scope_(graph_, "/device:GPU:0") {
    x_ = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, 6, 6, 2}, "x");
    const ops::Variable first(graph_, SeededNoise(Shape{3, 3, 2, 4}, 1), {.name = "first"});
    const ops::Variable second(graph_, SeededNoise(Shape{2, 2, 4, 3}, 2), {.name = "second"});
    const Output hidden = ops::Tanh(ops::Conv2D(x_, first.value()));
    loss_ = ops::Mean(ops::Square(ops::Conv2D(hidden, second.value())));
    const std::vector<Gradient> gradients = Gradients({loss_}, {first, second});
    const Output rate = ops::Const(graph_, 0.1f);
    step_ = ops::Group(graph_,
                       {ops::ResourceApplyGradientDescent(first.handle(), rate, ToDense(gradients[0])),
                        ops::ResourceApplyGradientDescent(second.handle(), rate, ToDense(gradients[1]))},
                       "step");
    values_ = {first.value(), second.value()};
    initializer_ = ops::GlobalVariablesInitializer(graph_);
    session_ = std::make_unique<Session>(graph_, "", config);
    session_->Run(initializer_);
  }
  Tensor Train(int64_t images, int seed) {
    return session_->Run({{x_, SeededNoise(Shape{images, 6, 6, 2}, 100 + seed)}}, {loss_}, {step_})[0].Clone();
  }
  std::vector<Tensor> Values() {
    std::vector<Tensor> values;
    for (const Tensor& value : session_->Run(values_)) values.push_back(value.Clone());
    return values;
  }

 private:
  Graph graph_;
  DeviceScope scope_;
  Output x_, loss_;
  std::vector<Output> values_;
  Node *step_ = nullptr, *initializer_ = nullptr;
  std::unique_ptr<Session> session_;
};

class ConvolutionFaultsTest : public OwnCardTest {
 protected:
  FakeAlgorithms& algorithms() { return cards_.dnn().algorithms(); }
};

constexpr Code kCodes[] = {Code::kInternal, Code::kUnimplemented, Code::kResourceExhausted};

// No algorithm works. The failed step has changed nothing, and the next one works.
TEST_F(ConvolutionFaultsTest, AConvolutionThatFailsIsNamedAndTheNextStepWorks) {
  ConvolutionNetwork network(OneCard());
  std::vector<Tensor> before = network.Values();
  int64_t images = 1;
  for (const Code code : kCodes) {
    for (const int call : {1, 2, 3}) {
      ++images;  // each step is the first of its shape
      algorithms().FailCall(call, code, FakeAlgorithms::kCount);
      const Status status = StatusOf([&] { network.Train(images, 1); });
      EXPECT_EQ(status.code(), code);
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("STATUS_OF_TEST"), HasSubstr("Conv2D"), HasSubstr("GPU:0")));
      ExpectSame(network.Values(), before);
      network.Train(images, 1);
      EXPECT_FALSE(SameBits(network.Values()[0], before[0]));
      before = network.Values();
    }
  }
}

TEST_F(ConvolutionFaultsTest, AConvolutionWithoutAnAlgorithmIsNamed) {
  ConvolutionNetwork network(OneCard());
  const std::vector<Tensor> before = network.Values();
  algorithms().OfferNone(true);
  const Status status = StatusOf([&] { network.Train(20, 1); });
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("expected a deterministic algorithm of FakeDnn"), HasSubstr("batch=20 in=6x6x2"),
                    HasSubstr("Conv2D"), HasSubstr("GPU:0")));
  ExpectSame(network.Values(), before);
  algorithms().OfferNone(false);
  const int64_t graphs = cards_.control().graph_launches();
  for (int i = 0; i < 3; ++i) network.Train(21, i);
  EXPECT_EQ(cards_.control().graph_launches() - graphs, 2);
}

// A call that fails while a step is recorded: the step is launched. If the reason may pass, a later step is recorded.
TEST_F(ConvolutionFaultsTest, AConvolutionThatFailsInACaptureLetsTheStepBeLaunched) {
  constexpr int kSteps = 4;
  std::vector<Tensor> expected;
  {
    ConvolutionNetwork network(OneCard());
    for (int i = 0; i < kSteps; ++i) expected.push_back(network.Train(5, i));
  }
  for (const Code code : kCodes) {
    for (int call = 1; call <= ConvolutionNetwork::kCalls; call += 2) {
      ConvolutionNetwork network(OneCard());
      const int64_t before = cards_.control().graph_launches();
      std::vector<Tensor> losses;
      ::testing::internal::CaptureStderr();
      for (int i = 0; i < kSteps; ++i) {
        if (i == 1) algorithms().FailCall(call, code);
        losses.push_back(network.Train(5, i));
      }
      const std::string log = ::testing::internal::GetCapturedStderr();
      const bool may_pass = code == Code::kResourceExhausted;
      EXPECT_EQ(cards_.control().graph_launches() - before, may_pass ? kSteps - 2 : 0);
      EXPECT_EQ(log.find("are not recorded, because this failed: [fake library]") != std::string::npos, !may_pass)
          << log;
      ExpectSame(losses, expected);
    }
  }
}

// What the library has enqueued fails when it runs.
TEST_F(ConvolutionFaultsTest, WorkThatFailsInAGraphIsTheErrorOfTheStepAndOfAllLaterOnes) {
  ConvolutionNetwork network(OneCard());
  for (int i = 0; i < 3; ++i) network.Train(5, i);
  const int64_t before = cards_.control().graph_launches();
  cards_.control().FailWork(0, 2);  // behind the copy of the feed
  EXPECT_THAT(MessageOf<InternalError>([&] { network.Train(5, 3); }), HasSubstr("illegal memory access"));
  EXPECT_EQ(cards_.control().graph_launches(), before + 1);
  EXPECT_THAT(MessageOf<InternalError>([&] { network.Train(5, 4); }), HasSubstr("illegal memory access"));
}

}  // namespace
}  // namespace cohort::cuda
