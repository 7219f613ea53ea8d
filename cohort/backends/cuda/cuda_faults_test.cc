// Sessions on cards that cannot be used, or that fail for ever: what the user hears, and what goes on. On the fake
// driver each test has a card of its own, because a card that has failed stays so until the process ends. On a real
// card (COHORT_TEST_CARD=1, ./dev test gpu) the tests run that need no help of the fake driver, and the last one ends
// its use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/error_values.cu.h"
#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/saver.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/softmax.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The cards of the fake driver, by the tests that use them.
enum Card { kUnused, kExclusive, kFull, kNoCodeForIt, kPinned, kForked, kWanted, kBroken, kCards };

#if defined(__SANITIZE_THREAD__)
constexpr bool kUnderThreadSanitizer = true;
#elif defined(__has_feature)
constexpr bool kUnderThreadSanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool kUnderThreadSanitizer = false;
#endif

class CudaFaultsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    RegisterAll();
    RegisterGpusForTests(kCards);
    if (!TestsRunOnCard()) driver_ = &RegisterFakeCuda(kCards);
  }
  static SessionConfig Config() {
    SessionConfig config;
    config.device_count[CudaBackend::Get().type()] = driver_ == nullptr ? 1 : kCards;
    config.operation_timeout = std::chrono::minutes(1);
    return config;
  }
  static int Number(Card card) { return driver_ == nullptr ? 0 : static_cast<int>(card); }
  static std::string Gpu(Card card) { return StrCat("/device:GPU:", Number(card)); }
  static FakeControl& control() { return driver_->control(); }
  // Makes the next work on the card use a wrong address. A real card has failed when it returns.
  static void UseWrongAddress(Card card) {
    if (driver_ != nullptr) return control().FailWork(card, 1);
    Driver& driver = *FindDriver();
    auto* const nowhere = reinterpret_cast<uint64_t*>(uintptr_t{64});
    const StreamHandle stream = driver.MakeStream(Number(card), "wrong");
    LaunchFetchError(driver, stream, nowhere, nowhere);
    const EventHandle event = driver.MakeEvent(Number(card), EventUse::kOrder);
    driver.Record(event, stream);
    (void)driver.Synchronize(event);  // the card needs time to find out
  }
  static inline FakeDriver* driver_ = nullptr;  // null on a real card
};

// A graph that doubles x on one card.
struct Doubling {
  explicit Doubling(const std::string& device) {
    const DeviceScope scope(graph, device);
    x = ops::Placeholder(graph, DType::kFloat32, Shape{-1}, "x");
    y = ops::Mul(x, ops::Const(graph, 2.0f), "doubled");
  }
  std::vector<float> Run(Session& session) {
    return session.Run({{x, Tensor::Vector<float>({1, 2})}}, {y})[0].ToVector<float>();
  }
  Graph graph;
  Output x, y;
};

// A parameter server of a job whose workers have GPUs needs none of its own.
TEST_F(CudaFaultsTest, ASessionTouchesTheCardsThatItsGraphUsesAndNoOthers) {
  COHORT_NEEDS_FAKE("it has this fault when the test says so");
  Doubling on_cpu("/device:CPU:0");
  Session session(on_cpu.graph, "", Config());
  EXPECT_THAT(on_cpu.Run(session), ElementsAre(2, 4));
  EXPECT_FALSE(control().has_context(kUnused));
}

TEST_F(CudaFaultsTest, ACardInExclusiveModeFailsTheStepsThatNeedItUntilItIsFree) {
  COHORT_NEEDS_FAKE("it has this fault when the test says so");
  control().SetFault(kExclusive, CardFault::kNotAvailable);
  Doubling doubling(Gpu(kExclusive));
  Session session(doubling.graph, "", Config());
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { doubling.Run(session); }),
              AllOf(HasSubstr("on card 1"), HasSubstr("busy or unavailable"),
                    HasSubstr("another process uses the card alone"), HasSubstr("CUDA_VISIBLE_DEVICES")));
  Doubling on_cpu("/device:CPU:0");
  Session other(on_cpu.graph, "", Config());
  EXPECT_THAT(on_cpu.Run(other), ElementsAre(2, 4));
  control().SetFault(kExclusive, CardFault::kOther);
  EXPECT_THAT(doubling.Run(session), ElementsAre(2, 4));
}

TEST_F(CudaFaultsTest, ACardWithoutMemoryForAContextFailsTheStepsThatNeedItUntilThereIsSome) {
  COHORT_NEEDS_FAKE("it has this fault when the test says so");
  control().SetFault(kFull, CardFault::kOutOfMemory);
  Doubling doubling(Gpu(kFull));
  Session session(doubling.graph, "", Config());
  EXPECT_THAT(MessageOf<ResourceExhaustedError>([&] { doubling.Run(session); }),
              AllOf(HasSubstr("on card 2: out of memory"), HasSubstr("end other programs that use the card")));
  control().SetFault(kFull, CardFault::kOther);
  EXPECT_THAT(doubling.Run(session), ElementsAre(2, 4));
}

TEST_F(CudaFaultsTest, ACardForWhichThereIsNoCodeIsNamedAtTheFirstLaunch) {
  COHORT_NEEDS_FAKE("it has this fault when the test says so");
  control().SetFault(kNoCodeForIt, CardFault::kNoCode);
  Doubling doubling(Gpu(kNoCodeForIt));
  Session session(doubling.graph, "", Config());
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { doubling.Run(session); }),
              AllOf(HasSubstr("on card 3"), HasSubstr("no kernel image"), HasSubstr("CMAKE_CUDA_ARCHITECTURES"),
                    HasSubstr("doubled")));
  control().SetFault(kNoCodeForIt, CardFault::kOther);
  EXPECT_THAT(doubling.Run(session), ElementsAre(2, 4));
}

// Pinned memory is used for copies, which do without, and for the errors of steps, which cannot.
TEST_F(CudaFaultsTest, WithoutPinnedMemoryAStepWithACheckSaysSoAndTheSessionGoesOn) {
  COHORT_NEEDS_FAKE("it has this fault when the test says so");
  Graph g;
  const DeviceScope scope(g, Gpu(kPinned));
  const Output logits = ops::Placeholder(g, DType::kFloat32, Shape{2, 3}, "logits");
  const Output labels = ops::Placeholder(g, DType::kInt64, Shape{2}, "labels");
  const Output loss = ops::SparseSoftmaxCrossEntropyWithLogits({.labels = labels, .logits = logits});
  const Output doubled = logits * 2.0f;
  Session session(g, "", Config());
  const auto run = [&](int64_t label) {
    const FeedList feeds = {{logits, Tensor::Zeros(DType::kFloat32, Shape{2, 3})},
                            {labels, Tensor::Vector<int64_t>({0, label})}};
    return session.Run(feeds, {loss})[0].ToVector<float>();
  };
  control().FailAllPinnedAllocations(true);
  EXPECT_EQ(session.Run({{logits, Tensor::Zeros(DType::kFloat32, Shape{2, 3})}}, {doubled})[0].num_elements(), 6);
  EXPECT_THAT(MessageOf<ResourceExhaustedError>([&] { run(1); }),
              AllOf(HasSubstr("pinned host memory"), HasSubstr("free memory of this machine")));
  control().FailAllPinnedAllocations(false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(1).size(), 2u);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { run(7); }), HasSubstr("label value of 7"));
}

// Whichever call finds no memory, the step says so, and the session goes on when there is some.
TEST_F(CudaFaultsTest, WithoutMemoryAtAnyCallAStepSaysSoAndTheSessionGoesOn) {
  COHORT_NEEDS_FAKE("it has this fault when the test says so");
  constexpr int64_t kTries = 20;  // more than the allocator makes before it gives up
  int failed = 0;
  for (int n = 1; n <= 4; ++n) {
    Graph g;
    const DeviceScope scope(g, Gpu(kWanted));
    const Output rows = ops::Placeholder(g, DType::kInt64, Shape{-1}, "rows");
    const ops::Variable v(g, Tensor::Zeros(DType::kFloat32, Shape{4, 1 << 18}), {.name = "v"});
    const Output sum = ops::Sum(v.Gather(rows));
    Node* const add = v.AssignAdd(ops::Const(g, 1.0f) + ops::ZerosLike(v.value()));
    Session session(g, "", Config());
    const auto run = [&] {
      session.Run(v.initializer());
      session.Run(add);
      return session.Run({{rows, Tensor::Vector<int64_t>({1, 3})}}, {sum})[0].scalar<float>();
    };
    control().FailAllocation(n, kTries);
    try {
      EXPECT_EQ(run(), static_cast<float>(2 << 18));
    } catch (const ResourceExhaustedError& error) {
      EXPECT_THAT(error.what(), HasSubstr("[cuda"));
      ++failed;
    }
    control().FailAllocation(0, 0);
    EXPECT_EQ(run(), static_cast<float>(2 << 18)) << n;
  }
  EXPECT_GE(failed, 2);
}

// Runs `call` in a forked child. Returns what it returns, or "" if the child does not end well in time.
std::string InChild(const std::function<std::string()>& call) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs ends by a signal
    const std::string text = call();
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended with status " << status;
  return text;
}

TEST_F(CudaFaultsTest, AChildThatWasForkedAfterTheFirstUseHearsThatItCannotUseACard) {
  if (kUnderThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer allows a forked child no new threads";
  Doubling doubling(Gpu(kForked));
  Session session(doubling.graph, "", Config());
  EXPECT_THAT(doubling.Run(session), ElementsAre(2, 4));
  const auto is_named = AllOf(HasSubstr("FailedPrecondition"), HasSubstr("forked after the first use of a GPU"),
                              HasSubstr(StrCat("a child of process ", getpid())), HasSubstr("exec"));
  EXPECT_THAT(InChild([&] { return ErrorOf([&] { doubling.Run(session); }); }), is_named);
  EXPECT_THAT(InChild([&] {
                Doubling own(Gpu(kForked));
                Session of_child(own.graph, "", Config());
                return ErrorOf([&] { own.Run(of_child); });
              }),
              is_named);
  EXPECT_EQ(InChild([] {  // the CPU is not concerned
              Doubling own("/device:CPU:0");
              Session of_child(own.graph, "", Config());
              return ErrorOf([&] { own.Run(of_child); });
            }),
            "no error");
  EXPECT_THAT(doubling.Run(session), ElementsAre(2, 4));  // the parent goes on
}

TEST_F(CudaFaultsTest, AStepThatWantsMoreMemoryThanACardHasFailsAndTheNextOneDoesNot) {
  Graph g;
  const DeviceScope scope(g, Gpu(kWanted));
  const Output size = ops::Placeholder(g, DType::kInt64, Shape{1}, "size");
  const Output sum = ops::Sum(ops::Fill(size, ops::Const(g, 1.0f), "much"));
  Session session(g, "", Config());
  const auto run = [&](int64_t n) {
    return session.Run({{size, Tensor::Vector<int64_t>({n})}}, {sum})[0].scalar<float>();
  };
  EXPECT_THAT(MessageOf<ResourceExhaustedError>([&] { run(int64_t{1} << 40); }),
              AllOf(HasSubstr("(4398046511104 bytes)"), HasSubstr("largest holders"), HasSubstr("much")));
  EXPECT_EQ(run(1000), 1000.0f);
}

// The last test. An illegal address in a kernel. A checkpoint from before is whole and serves the CPU or the next
// process.
TEST_F(CudaFaultsTest, ACardThatHasFailedIsNamedByAllLaterStepsAndSessionsAndCheckpointsAreIntact) {
  const testing::TempFolder folder;
  Graph g;
  Node *init, *add;
  ops::Variable v;
  {
    const DeviceScope scope(g, Gpu(kBroken));
    v = ops::Variable(g, Tensor::Vector<float>({1, 2, 3}), {.name = "v"});
    add = v.AssignAdd(ops::Const(g, std::vector<float>{10, 10, 10}));
    init = ops::GlobalVariablesInitializer(g);
  }
  Saver saver(g);
  std::string prefix;
  const auto is_named = AllOf(HasSubstr("illegal memory access"), HasSubstr(StrCat("on card ", Number(kBroken))),
                              HasSubstr("start the program again, from its last checkpoint"));
  {
    Session session(g, "", Config());
    session.Run(init);
    session.Run(add);
    prefix = saver.Save(session, folder / "model", 1);
    UseWrongAddress(kBroken);
    EXPECT_THAT(MessageOf<InternalError>([&] { session.Run(add); }), is_named);
    EXPECT_THAT(MessageOf<InternalError>([&] { session.Run(v.value()); }), is_named);
    EXPECT_THAT(ErrorOf([&] { saver.Save(session, folder / "model", 2); }), is_named);
  }
  Doubling doubling(Gpu(kBroken));
  Session next(doubling.graph, "", Config());
  EXPECT_THAT(MessageOf<InternalError>([&] { doubling.Run(next); }), is_named);

  Graph on_cpu;
  const ops::Variable restored(on_cpu, Tensor::Zeros(DType::kFloat32, Shape{3}), {.name = "v"});
  Saver reader(on_cpu);
  Session session(on_cpu, "", Config());
  EXPECT_EQ(LatestCheckpoint(folder.path()), prefix);
  reader.Restore(session, prefix);
  EXPECT_THAT(session.Run(restored.value()).ToVector<float>(), ElementsAre(11, 12, 13));
}

}  // namespace
}  // namespace cohort::cuda
