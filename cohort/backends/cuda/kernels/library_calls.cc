#include "cohort/backends/cuda/kernels/library_calls.h"

#include <algorithm>
#include <limits>

#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/libraries/algorithm_choice.h"

namespace cohort::cuda {
namespace {

// Each time is the least of so many, and each of them is the mean of so many runs.
constexpr int kTimes = 3;
constexpr int kRuns = 4;

// An event with a time. If the card has failed, the process keeps it.
class TimedEvent {
 public:
  TimedEvent(Driver& driver, int card)
      : driver_(driver), card_(card), handle_(driver.MakeEvent(card, EventUse::kOrderAndTime)) {}
  ~TimedEvent() {
    try {
      driver_.Destroy(card_, handle_);
    } catch (const Error&) {
      // The next call of the card says so.
    }
  }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  EventHandle handle() const { return handle_; }

 private:
  Driver& driver_;
  const int card_;
  const EventHandle handle_;
};

// A call of a library, which can be made with any algorithm.
class LibraryCall : public AlgorithmQuestion {
 public:
  explicit LibraryCall(const CudaCall& call) : call_(call) {}

  void Run(const Algorithm& algorithm) override {
    const Scratch workspace(call_, algorithm.workspace);
    Enqueue(algorithm, workspace.data());
  }

  bool CanTime() const override { return call_.recording() == nullptr; }

  double Time(const Algorithm& algorithm) override {
    const Scratch workspace(call_, algorithm.workspace);
    Driver& driver = call_.driver();
    const TimedEvent begin(driver, card()), end(driver, card());
    Enqueue(algorithm, workspace.data());  // loads what the algorithm needs
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTimes; ++i) {
      driver.Record(begin.handle(), call_.stream());
      for (int run = 0; run < kRuns; ++run) Enqueue(algorithm, workspace.data());
      driver.Record(end.handle(), call_.stream());
      call_.device().Synchronize();
      least = std::min(least, driver.MicrosecondsBetween(begin.handle(), end.handle()) / kRuns);
    }
    return least;
  }

 protected:
  virtual void Enqueue(const Algorithm& algorithm, void* workspace) = 0;
  int card() const { return call_.device().card(); }
  StreamHandle stream() const { return call_.stream(); }
  std::string card_model() const { return call_.driver().Card(card()).name; }

 private:
  const CudaCall& call_;
};

class ProductCall final : public LibraryCall {
 public:
  ProductCall(const CudaCall& call, const GemmSpec& spec, const GemmOperands& operands)
      : LibraryCall(call), blas_(FindBlas()), spec_(spec), operands_(operands) {}

  AlgorithmKey Key() override { return {card_model(), blas_.Name(), CallText(spec_)}; }
  std::vector<Algorithm> Candidates(size_t most) override { return blas_.Candidates(card(), spec_, most); }
  std::optional<Algorithm> Check(const Algorithm& algorithm) override { return blas_.Check(card(), spec_, algorithm); }
  bool RunChosen() { return AlgorithmChooser::Get().Run(std::pair(card(), spec_), *this); }

 private:
  void Enqueue(const Algorithm& algorithm, void* workspace) override {
    blas_.Gemm(card(), stream(), spec_, operands_, algorithm, workspace);
  }

  Blas& blas_;
  const GemmSpec& spec_;
  const GemmOperands& operands_;
};

class ConvolutionCall final : public LibraryCall {
 public:
  ConvolutionCall(const CudaCall& call, ConvolutionPart part, const DnnConvolution& convolution,
                  const DnnOperands& operands)
      : LibraryCall(call), dnn_(FindDnn()), part_(part), convolution_(convolution), operands_(operands) {}

  AlgorithmKey Key() override { return {card_model(), dnn_.Name(), CallText(part_, convolution_)}; }
  std::vector<Algorithm> Candidates(size_t most) override { return dnn_.Candidates(card(), part_, convolution_, most); }
  std::optional<Algorithm> Check(const Algorithm& algorithm) override {
    return dnn_.Check(card(), part_, convolution_, algorithm);
  }
  bool RunChosen() { return AlgorithmChooser::Get().Run(std::tuple(card(), part_, convolution_), *this); }

 private:
  void Enqueue(const Algorithm& algorithm, void* workspace) override {
    dnn_.Compute(card(), stream(), part_, convolution_, operands_, algorithm, workspace);
  }

  Dnn& dnn_;
  const ConvolutionPart part_;
  const DnnConvolution& convolution_;
  const DnnOperands& operands_;
};

}  // namespace

bool EnqueueProducts(const CudaCall& call, const GemmSpec& spec, const GemmOperands& operands) {
  return ProductCall(call, spec, operands).RunChosen();
}

void EnqueueConvolution(const CudaCall& call, ConvolutionPart part, const DnnConvolution& convolution,
                        const DnnOperands& operands) {
  if (ConvolutionCall(call, part, convolution, operands).RunChosen()) return;
  throw UnimplementedError(StrCat("[cuda/libraries] expected a deterministic algorithm of ", FindDnn().Name().name,
                                  " for this; got none: ", CallText(part, convolution)));
}

}  // namespace cohort::cuda
