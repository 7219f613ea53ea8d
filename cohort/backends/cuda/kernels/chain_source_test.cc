// Kernels that are compiled from the text of a chain: for the host, where they are compared with LaunchChain, and for a
// card, if NVRTC is installed; and the kernels that were compiled with the program. No card is needed.
#include "cohort/backends/cuda/kernels/chain_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/broadcast_plan.h"
#include "cohort/backends/cuda/fake/host_compiler.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/binary_call.h"
#include "cohort/backends/cuda/kernels/chain_text.h"
#include "cohort/backends/cuda/kernels/common_chains.h"
#include "cohort/backends/cuda/kernels/compiled_chain.h"
#include "cohort/backends/cuda/libraries/nvrtc.h"
#include "cohort/core/bfloat16.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat64, ElementType::kBfloat16};

size_t SizeOf(ElementType type) { return type == ElementType::kFloat64 ? 8 : type == ElementType::kFloat32 ? 4 : 2; }

void Append(ChainArgs& args, ChainOp op, int a, int b) {
  args.step[args.steps++] = {op, static_cast<int8_t>(a), static_cast<int8_t>(b)};
}

// All ops, each applied to the value before it and to one of two operands. The numbers become odd soon, but they do so
// in the same way everywhere.
ChainArgs AllOps() {
  ChainArgs args;
  args.operands = 3;
  args.single[2] = true;
  Append(args, ChainOp::kMul, 0, 1);
#define COHORT_STEP(name, function) Append(args, ChainOp::k##name, ChainStep::kRunning, ChainStep::kRunning);
  COHORT_UNARY_CHAIN_OPS(COHORT_STEP)
#undef COHORT_STEP
#define COHORT_STEP(name, function) Append(args, ChainOp::k##name, ChainStep::kRunning, args.steps % 3);
  COHORT_BINARY_CHAIN_OPS(COHORT_STEP)
  COHORT_GRADIENT_CHAIN_OPS(COHORT_STEP)
#undef COHORT_STEP
  return args;
}
// A product whose sum with another number a compiler likes to round once.
ChainArgs Products() {
  ChainArgs args;
  args.operands = 3;
  Append(args, ChainOp::kMul, 0, 1);
  Append(args, ChainOp::kAddV2, ChainStep::kRunning, 2);
  Append(args, ChainOp::kSquaredDifference, 0, ChainStep::kRunning);
  Append(args, ChainOp::kSub, 2, ChainStep::kRunning);
  Append(args, ChainOp::kTanhGrad, 1, ChainStep::kRunning);
  return args;
}

// Runs chains both ways on the fake driver.
class ChainSourceTest : public ::testing::Test {
 protected:
  static constexpr size_t kRoom = 64 * 1024;  // bytes of an operand

  void SetUp() override {
    COHORT_NEEDS_FAKE("its kernels run on the host");
    if (!HostCompiler::IsThere()) GTEST_SKIP() << "there is no compiler for the host";
    stream_ = driver_.MakeStream(0, "chains");
    InstallKernelCompiler(&compiler_);
  }
  void TearDown() override {
    InstallKernelCompiler(nullptr);
    if (stream_.native != nullptr) driver_.Destroy(0, stream_);
    for (void* data : memory_) driver_.Free(0, data);
  }

  // Returns memory with numbers between 0.1 and 2.
  unsigned char* Numbers(ElementType type, int seed) {
    memory_.push_back(driver_.Allocate(0, kRoom));
    auto* const data = static_cast<unsigned char*>(memory_.back());
    for (size_t i = 0; i < kRoom / SizeOf(type); ++i) {
      const double value = 0.1 + 0.0019 * static_cast<double>((i * 37 + static_cast<size_t>(seed) * 101) % 997);
      switch (type) {
        case ElementType::kFloat64: reinterpret_cast<double*>(data)[i] = value; break;
        case ElementType::kFloat32: reinterpret_cast<float*>(data)[i] = static_cast<float>(value); break;
        default: reinterpret_cast<bfloat16*>(data)[i] = bfloat16(static_cast<float>(value));
      }
    }
    return data;
  }
  // Gives each operand memory that begins `shift` elements behind an aligned address.
  void GiveOperands(ElementType type, ChainArgs& args, size_t shift = 0) {
    for (int o = 0; o < args.operands; ++o) args.data[o] = Numbers(type, o) + shift * SizeOf(type);
  }
  // Runs a launch into new memory, or into that of operand `in_place`. Returns the result's bytes.
  template <typename Launch>
  std::string BytesOf(ElementType type, ChainArgs args, size_t shift, int in_place, const Launch& launch) {
    unsigned char* out = Numbers(type, 9) + shift * SizeOf(type);
    const size_t bytes = static_cast<size_t>(args.n) * SizeOf(type);
    if (in_place >= 0) std::memcpy(out, args.data[in_place], bytes);
    if (in_place >= 0) args.data[in_place] = out;
    args.out = out;
    launch(args);
    const EventHandle done = driver_.MakeEvent(0, EventUse::kOrder);
    driver_.Record(done, stream_);
    EXPECT_TRUE(driver_.Synchronize(done).ok());
    driver_.Destroy(0, done);
    return {reinterpret_cast<const char*>(out), bytes};
  }
  void ExpectSame(ElementType type, const ChainArgs& args, size_t shift = 0, int in_place = -1) {
    const std::string expected =
        BytesOf(type, args, shift, in_place, [&](const ChainArgs& a) { LaunchChain(driver_, stream_, type, a); });
    const std::string got = BytesOf(type, args, shift, in_place, [&](const ChainArgs& a) {
      ASSERT_TRUE(LaunchCompiledChain(driver_, 0, stream_, type, a));
    });
    EXPECT_TRUE(expected == got) << static_cast<int>(type) << ", " << args.n << " elements";
  }

  const CardMemoryAccess access_;  // tests write and read operands themselves
  FakeDriver& driver_ = RegisterFakeCuda();
  // The process keeps kernels of the compiler, by its address. So it lives as long as the process.
  HostCompiler& compiler_ = []() -> HostCompiler& {
    static auto* const compilers = new std::deque<HostCompiler>;
    return compilers->emplace_back();
  }();
  StreamHandle stream_;
  std::vector<void*> memory_;
};

TEST_F(ChainSourceTest, AllOpsGiveTheBitsOfTheKernelForAllChains) {
  for (const ElementType type : kTypes) {
    ChainArgs args = AllOps();
    args.n = 1003;
    GiveOperands(type, args);
    ExpectSame(type, args);
  }
}

TEST_F(ChainSourceTest, AllSizesAndPlacesInMemory) {
  for (const ElementType type : kTypes) {
    ChainArgs args = Products();
    for (const int64_t n : {1, 3, 4, 7, 8, 9, 300, 5000}) {
      args.n = n;
      for (const size_t shift : {0, 1}) {
        GiveOperands(type, args, shift);
        for (const int in_place : {-1, 0, 2}) ExpectSame(type, args, shift, in_place);
      }
    }
  }
  EXPECT_EQ(compiler_.compiled(), 3);  // the text depends on no size and on no address
}

TEST_F(ChainSourceTest, OperandsBroadcast) {
  for (const ElementType type : kTypes) {
    ChainArgs args = Products();
    const Shape out = {3, 4, 5}, row = {5}, column = {4, 1}, single;
    std::array<const Shape*, kMostChainOperands> shapes;
    shapes.fill(&single);
    shapes[0] = &row;
    shapes[1] = &column;
    shapes[2] = &out;
    args.n = out.num_elements();
    args.broadcasts = true;
    args.dims = DimsOf(PlanBroadcast<kMostChainOperands>(out, shapes));
    GiveOperands(type, args);
    ExpectSame(type, args);
    ExpectSame(type, args, 0, 2);
  }
}

// If something broadcasts, it does not count which operands are single elements.
TEST_F(ChainSourceTest, ATextIsCompiledOnce) {
  ChainArgs args = Products();
  const Shape out = {3, 4, 5}, row = {5}, single;
  for (const Shape* second : {&row, &single}) {
    std::array<const Shape*, kMostChainOperands> shapes;
    shapes.fill(&single);
    shapes[0] = &out;
    shapes[1] = second;
    args.n = out.num_elements();
    args.broadcasts = true;
    args.single[1] = second == &single;
    args.dims = DimsOf(PlanBroadcast<kMostChainOperands>(out, shapes));
    GiveOperands(ElementType::kFloat32, args);
    ExpectSame(ElementType::kFloat32, args);
  }
  EXPECT_EQ(compiler_.compiled(), 1);
}

TEST_F(ChainSourceTest, ACompilerThatFailsIsAskedOnce) {
  class Failing final : public KernelCompiler {
   public:
    KernelCode Compile(Driver&, int, const std::string&, const char*) override {
      ++calls;
      throw FailedPreconditionError("[test] no compiler");
    }
    int calls = 0;
  };
  auto& failing = *new Failing;
  InstallKernelCompiler(&failing);
  ChainArgs args = Products();
  args.n = 4;
  GiveOperands(ElementType::kFloat32, args);
  args.out = Numbers(ElementType::kFloat32, 9);
  EXPECT_FALSE(LaunchCompiledChain(driver_, 0, stream_, ElementType::kFloat32, args));
  EXPECT_FALSE(LaunchCompiledChain(driver_, 0, stream_, ElementType::kFloat64, args));
  EXPECT_EQ(failing.calls, 1);
}

TEST_F(ChainSourceTest, AFakeDriverWithoutACompilerHasNone) {
  InstallKernelCompiler(nullptr);
  EXPECT_EQ(FindKernelCompiler(driver_), nullptr);
  EXPECT_THAT(MessageOf<InternalError>([&] { driver_.LoadKernel(0, "", kChainKernel); }), HasSubstr(kChainKernel));
}

// The kernels of common_chains.txt. They are there without a compiler.
class CommonChainsTest : public ChainSourceTest {
 protected:
  void SetUp() override {
    COHORT_NEEDS_FAKE("its kernels run on the host");
    stream_ = driver_.MakeStream(0, "chains");
  }
};

TEST_F(CommonChainsTest, GiveTheBitsOfTheKernelForAllChains) {
  ASSERT_FALSE(CommonChains().empty());
  for (const CommonChain& common : CommonChains()) {
    SCOPED_TRACE(common.text);
    ChainOfText chain = ParseChain(common.text);
    ChainArgs& args = chain.args;
    const Shape out = {3, 335}, row = {335};
    std::array<const Shape*, kMostChainOperands> shapes;
    shapes.fill(&row);
    shapes[0] = &out;
    args.n = out.num_elements();
    if (args.broadcasts) args.dims = DimsOf(PlanBroadcast<kMostChainOperands>(out, shapes));
    for (const size_t shift : {0, 1}) {
      GiveOperands(chain.type, args, shift);
      const std::string expected = BytesOf(chain.type, args, shift, -1,
                                           [&](const ChainArgs& a) { LaunchChain(driver_, stream_, chain.type, a); });
      const std::string got = BytesOf(chain.type, args, shift, -1, [&](const ChainArgs& a) {
        EXPECT_TRUE(LaunchCommonChain(driver_, stream_, chain.type, a));
      });
      EXPECT_TRUE(expected == got) << shift;
    }
  }
}

TEST_F(CommonChainsTest, AnotherChainHasNone) {
  EXPECT_FALSE(LaunchCommonChain(driver_, stream_, ElementType::kFloat32, Products()));
  EXPECT_FALSE(LaunchCommonChain(driver_, stream_, ElementType::kFloat32, AllOps()));
}

TEST(ChainSourceTextTest, IncludesNothing) {
  EXPECT_THAT(ChainSource(ElementType::kFloat32, AllOps()),
              AllOf(Not(HasSubstr("#include")), Not(HasSubstr("#pragma")), HasSubstr("struct ChainCall"),
                    HasSubstr("TanhGradient::Apply(")));
}

// Returns the code for cards of compute capability 9.0. Skips the test if the library is not installed.
#define COHORT_COMPILE(code, source)                     \
  std::string code;                                      \
  try {                                                  \
    code = CompileWithNvrtc(source, kChainKernel, 9, 0); \
  } catch (const FailedPreconditionError& error) {       \
    GTEST_SKIP() << error.what();                        \
  }

TEST(NvrtcTest, CompilesChainsForACard) {
  for (const ElementType type : kTypes) {
    for (const bool broadcasts : {false, true}) {
      ChainArgs args = AllOps();
      args.broadcasts = broadcasts;
      COHORT_COMPILE(code, ChainSource(type, args));
      EXPECT_EQ(code.substr(0, 4),
                "\x7f"
                "ELF");
      EXPECT_NE(code.find(kChainKernel), std::string::npos);
    }
  }
}

TEST(NvrtcTest, AProductAndASumAreRoundedOneAfterTheOther) {
  const auto source = [](const char* value) {
    return StrCat("extern \"C\" __global__ void ", kChainKernel, "(float* x, float y, float z) { *x = ", value, "; }");
  };
  COHORT_COMPILE(operators, source("*x * y + z"));
  EXPECT_EQ(operators, CompileWithNvrtc(source("__fadd_rn(__fmul_rn(*x, y), z)"), kChainKernel, 9, 0));
  EXPECT_NE(operators, CompileWithNvrtc(source("__fmaf_rn(*x, y, z)"), kChainKernel, 9, 0));
}

TEST(NvrtcTest, ATextThatDoesNotCompileIsAnErrorWithTheCompilersWords) {
  COHORT_COMPILE(code, ChainSource(ElementType::kFloat32, Products()));
  EXPECT_THAT(
      MessageOf<InternalError>([] { CompileWithNvrtc("__global__ void f() { no_such_name(); }", "text", 9, 0); }),
      AllOf(HasSubstr("text"), HasSubstr("sm_90"), HasSubstr("no_such_name"), HasSubstr("is undefined")));
}

}  // namespace
}  // namespace cohort::cuda
