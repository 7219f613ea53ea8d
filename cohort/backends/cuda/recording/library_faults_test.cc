// Calls of libraries that fail in a training: while a step is launched, while it is recorded, and behind its launch.

#include <atomic>
#include <string>
#include <vector>

#include "cohort/backends/cuda/libraries/kernel_compiler.h"
#include "cohort/backends/cuda/libraries/library_requests.h"
#include "cohort/backends/cuda/testing/network.h"
#include "cohort/backends/cuda/testing/own_card_fixture.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/convolution.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LibraryFaultsTest : public OwnCardTest {};

// No update comes before the first product of a step, so the failed step has changed nothing.
TEST_F(LibraryFaultsTest, AProductThatFailsIsNamedAndTheNextStepWorks) {
  std::vector<Tensor> losses[2];
  for (const bool fails : {false, true}) {
    Network network(Rule::kDescent, OneCard());
    network.Initialize();
    for (const Code code : {Code::kInternal, Code::kUnimplemented, Code::kResourceExhausted}) {
      const int64_t rows = 4 + static_cast<int64_t>(losses[fails].size());  // each step is the first of its shape
      if (fails) {
        cards_.blas().algorithms().FailCall(1, code, FakeAlgorithms::kCount);
        const Status status = StatusOf([&] { network.Train(rows, 1); });
        EXPECT_EQ(status.code(), code);
        EXPECT_THAT(std::string(status.message()),
                    AllOf(HasSubstr("STATUS_OF_TEST"), HasSubstr("MatMul"), HasSubstr("GPU:0")));
      }
      losses[fails].push_back(network.Train(rows, 1).Clone());
    }
  }
  ExpectSame(losses[1], losses[0]);
}

// A call that fails while a step is recorded: the step is launched. If the reason may pass, a later step is recorded.
TEST_F(LibraryFaultsTest, AProductThatFailsInACaptureLetsTheStepBeLaunched) {
  for (const Code code : {Code::kInternal, Code::kUnimplemented, Code::kResourceExhausted}) {
    std::vector<Tensor> losses[2];
    for (const bool fails : {false, true}) {
      Network network(Rule::kDescent, OneCard());
      network.Initialize();
      const int64_t before = cards_.control().graph_launches();
      ::testing::internal::CaptureStderr();
      for (int i = 0; i < 4; ++i) {
        if (fails && i == 1) cards_.blas().algorithms().FailCall(2, code);
        losses[fails].push_back(network.Train(5, i).Clone());
      }
      const std::string log = ::testing::internal::GetCapturedStderr();
      const int64_t graphs = cards_.control().graph_launches() - before;
      const bool may_pass = code == Code::kResourceExhausted;
      EXPECT_EQ(graphs, !fails ? 3 : may_pass ? 2 : 0);
      const size_t line = log.find("are not recorded, because this failed: [fake library]");
      EXPECT_EQ(line != std::string::npos, fails && !may_pass) << log;
      EXPECT_TRUE(line == std::string::npos || log.find("are not recorded", line + 1) == std::string::npos) << log;
    }
    ExpectSame(losses[1], losses[0]);
  }
}

// What a library has enqueued fails when it runs.
TEST_F(LibraryFaultsTest, WorkThatFailsInAGraphIsTheErrorOfTheStepAndOfAllLaterOnes) {
  Network network(Rule::kDescent, OneCard());
  network.Initialize();
  for (int i = 0; i < 3; ++i) network.Train(5, i);
  const int64_t before = cards_.control().graph_launches();
  cards_.control().FailWork(0, 4);  // behind the copies of three feeds
  EXPECT_THAT(MessageOf<InternalError>([&] { network.Train(5, 3); }), HasSubstr("illegal memory access"));
  EXPECT_EQ(cards_.control().graph_launches(), before + 1);
  EXPECT_THAT(MessageOf<InternalError>([&] { network.Train(5, 4); }), HasSubstr("illegal memory access"));
}

// An initializer that runs again launches a kernel that it did not launch before: it copies into the variable's memory.
TEST_F(LibraryFaultsTest, AKernelThatTheCardHasNotLoadedIsLoadedAndTheStepIsRecorded) {
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const ops::Variable v(g, Tensor::Vector<float>({1, 2}), {.name = "v"});
  Session session(g, "", OneCard());
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 4; ++i) session.Run(v.initializer());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::Not(HasSubstr("are not recorded")));
  EXPECT_EQ(cards_.control().graph_launches(), 3);
  EXPECT_THAT(session.Run(v.value()).ToVector<float>(), ::testing::ElementsAre(1, 2));
}

// Opens a library that no machine has, in the way of the one that `request` names.
[[noreturn]] void OpenAbsent(LibraryRequest request) {
  for (std::string& file : request.files) file.insert(0, "absent_");
  DynamicLibrary::Open(request, {"/folder/of/test"});
  throw InternalError("[test] the library exists");
}

class AbsentBlas final : public Blas {
 public:
  LibraryName Name() override { OpenAbsent(CublasLtRequest(13)); }
  std::vector<Algorithm> Candidates(int, const GemmSpec&, size_t) override { OpenAbsent(CublasLtRequest(13)); }
  std::optional<Algorithm> Check(int, const GemmSpec&, const Algorithm&) override { OpenAbsent(CublasLtRequest(13)); }
  void Gemm(int, StreamHandle, const GemmSpec&, const GemmOperands&, const Algorithm&, void*) override {
    OpenAbsent(CublasLtRequest(13));
  }
};

class AbsentDnn final : public Dnn {
 public:
  LibraryName Name() override { OpenAbsent(CudnnRequest(9)); }
  std::vector<Algorithm> Candidates(int, ConvolutionPart, const DnnConvolution&, size_t) override {
    OpenAbsent(CudnnRequest(9));
  }
  std::optional<Algorithm> Check(int, ConvolutionPart, const DnnConvolution&, const Algorithm&) override {
    OpenAbsent(CudnnRequest(9));
  }
  void Compute(int, StreamHandle, ConvolutionPart, const DnnConvolution&, const DnnOperands&, const Algorithm&,
               void*) override {
    OpenAbsent(CudnnRequest(9));
  }
};

// The step that needs a missing library has the error, with the node and all paths. Steps that do not need it work, and
// so does the step itself when the library is there.
TEST_F(LibraryFaultsTest, AStepThatNeedsAMissingLibraryNamesItAndThePathsThatWereTried) {
  AbsentBlas no_blas;
  AbsentDnn no_dnn;
  InstallBlas(&no_blas);
  InstallDnn(&no_dnn);
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{1, 8, 8, 16}, "x");
  const Output product =
      ops::MatMul(ops::Reshape(x, {64, 16}), ops::Const(g, SeededNoise(Shape{16, 3}, 1)), false, false, "product");
  const Output images = ops::Conv2D(x, ops::Const(g, SeededNoise(Shape{3, 3, 16, 8}, 2)), {}, "images");
  Session session(g, "", OneCard());
  const auto run = [&](const Output& y) { return session.Run({{x, SeededNoise(Shape{1, 8, 8, 16}, 3)}}, {y})[0]; };
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { run(product); }),
              AllOf(HasSubstr("expected cuBLASLt 13; got no usable file"), HasSubstr("product"),
                    HasSubstr("/folder/of/test/absent_libcublasLt.so.13 (no such file)"),
                    HasSubstr("absent_libcublasLt.so.13 by the system's loader")));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { run(images); }),
              AllOf(HasSubstr("expected cuDNN 9; got no usable file"), HasSubstr("images"),
                    HasSubstr("/folder/of/test/absent_libcudnn.so.9 (no such file)"),
                    HasSubstr("absent_libcudnn.so.9 by the system's loader")));
  EXPECT_EQ(run(x * 2.0f).shape(), (Shape{1, 8, 8, 16}));
  InstallBlas(&cards_.blas());
  InstallDnn(&cards_.dnn());
  EXPECT_EQ(run(product).shape(), (Shape{64, 3}));
  EXPECT_EQ(run(images).shape(), (Shape{1, 6, 6, 8}));
}

// A compiler whose first kernel finds no memory on the card. It loads the others.
class PoorCompiler final : public KernelCompiler {
 public:
  KernelCode Compile(Driver& driver, int card, const std::string&, const char* name) override {
    if (++calls_ == 1) throw ResourceExhaustedError("[test] no memory for the kernel");
    driver.LoadKernel(card, "", name);
    return {};
  }
  int calls() const { return calls_; }

 private:
  std::atomic<int> calls_{0};
};

// Code is loaded in a step that is launched, and never while one is recorded.
TEST_F(LibraryFaultsTest, AKernelThatWasNotLoadedIsNotLoadedInACapture) {
  static auto* const kept = new std::vector<PoorCompiler*>;  // the process keeps what it knows of a compiler
  PoorCompiler& compiler = *kept->emplace_back(new PoorCompiler);
  InstallKernelCompiler(&compiler);
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "x");
  const Output y = ops::Relu(x * x + 1.0f);
  Session session(g, "", OneCard());
  const Tensor value = Tensor::Zeros(DType::kFloat32, Shape{1 << 16});
  const int64_t before = cards_.control().graph_launches();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(session.Run({{x, value}}, {y})[0].data<float>()[i], 1);
  EXPECT_EQ(cards_.control().graph_launches() - before, 2);
  EXPECT_EQ(compiler.calls(), 1);
  InstallKernelCompiler(nullptr);
}

}  // namespace
}  // namespace cohort::cuda
