// The text of a chain, and the program that makes kernels of such texts while Cohort is built.
#include "cohort/backends/cuda/kernels/chain_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "cohort/backends/cuda/kernels/chain_source.h"
#include "cohort/backends/cuda/kernels/common_chains.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ChainTextTest, SaysWhatTheKernelDependsOn) {
  ChainArgs args;
  args.operands = 3;
  args.single[1] = true;
  args.step[args.steps++] = {ChainOp::kMul, 0, 1};
  args.step[args.steps++] = {ChainOp::kTanhGrad, 2, ChainStep::kRunning};
  args.step[args.steps++] = {ChainOp::kExp, ChainStep::kRunning, ChainStep::kRunning};
  EXPECT_EQ(ChainText(ElementType::kBfloat16, args), "bfloat16 ese: Mul x0 x1, TanhGrad x2 v, Exp v");
  args.broadcasts = true;
  EXPECT_EQ(ChainText(ElementType::kFloat64, args), "float64 bbb: Mul x0 x1, TanhGrad x2 v, Exp v");
  EXPECT_THAT(MessageOf<InternalError>([&] { ChainText(ElementType::kInt32, args); }),
              AllOf(HasSubstr("float32, float64 or bfloat16"), HasSubstr("element type 3")));
}

TEST(ChainTextTest, IsReadBack) {
  for (const char* text : {"float32 e: Neg x0, Neg v", "float64 bbb: Mul x0 x1, Sub x2 v, Sub v x0",
                           "bfloat16 esss: Mul x0 x1, AddV2 x2 v, SeluGrad v x3"}) {
    const ChainOfText chain = ParseChain(text);
    EXPECT_EQ(ChainText(chain.type, chain.args), text);
  }
  for (const CommonChain& common : CommonChains()) {
    const ChainOfText chain = ParseChain(common.text);
    EXPECT_EQ(ChainKey(chain.type, chain.args).bytes(), common.key) << common.text;
  }
}

TEST(ChainTextTest, ABadTextIsAnErrorThatNamesThePart) {
  std::string many = "float32 ee: Mul x0 x1";
  for (int i = 0; i < kMostChainSteps; ++i) many += ", Neg v";
  const struct {
    std::string text, expected, got;
  } kBad[] = {{"int32 e: Neg x0", "float32, float64 or bfloat16", "'int32'"},
              {"", "float32, float64 or bfloat16", "''"},
              {"float32 eb: Mul x0 x1", "a letter for each", "'eb'"},
              {"float32 ee Mul x0 x1", "a letter for each", "'ee Mul x0 x1'"},
              {"float32 eeeeeeeeeeeeeeeee: Neg x0", "at most 16 operands", "'eeeeeeeeeeeeeeeee'"},
              {"float32 e:", "an op", "''"},
              {"float32 e: Relu7 x0", "an op", "'Relu7'"},
              {"float32 e: Neg v", "v (behind the first step)", "'v'"},
              {"float32 ee: Mul x1 x0", "or the next one", "'x1'"},
              {"float32 e: Mul x0 x1", "or the next one", "'x1'"},
              {"float32 e: Mul x0", "or the next one", "''"},
              {"float32 e: Neg x0 x0", "1 operands of Neg", "'Neg x0 x0'"},
              {"float32 ee: Neg x0", "uses each operand", "none that uses x1"},
              {"float32 e:  Neg x0", "an op", "''"},
              {"float32 e: Neg x0,", "'float32 e: Neg x0'", "other spaces"},
              {many, "at most 48 steps", "Neg v"}};
  for (const auto& bad : kBad) {
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ParseChain(bad.text); }),
                AllOf(HasSubstr(bad.expected), HasSubstr("got " + bad.got), HasSubstr("'" + bad.text + "'")))
        << bad.text;
  }
}

// Runs make_common_chains with a table. Returns its exit status, what it says, and whether it wrote a file.
struct Made {
  int status = -1;
  std::string output;
  bool wrote = false;
};
Made MakeCommonChains(const std::string& table) {
  const cohort::testing::TempFolder folder;
  const std::string text = folder / "chains.txt", source = folder / "chains.cu";
  std::ofstream(text) << table;
  FILE* const pipe = popen(("'" COHORT_MAKE_COMMON_CHAINS "' '" + text + "' '" + source + "' 2>&1").c_str(), "r");
  Made made;
  char part[256];
  for (size_t n; (n = fread(part, 1, sizeof(part), pipe)) > 0;) made.output.append(part, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) made.status = WEXITSTATUS(status);
  made.wrote = access(source.c_str(), F_OK) == 0;
  return made;
}

TEST(MakeCommonChainsTest, ABadLineIsAnErrorThatNamesTheLine) {
  if (access(COHORT_MAKE_COMMON_CHAINS, X_OK) != 0) GTEST_SKIP() << "this is not the machine of the build";
  const std::string good = "# Chains.\n\nfloat32 e: Neg x0\n";
  EXPECT_EQ(MakeCommonChains(good).status, 0);
  EXPECT_TRUE(MakeCommonChains(good).wrote);
  for (const char* bad : {"float32 e: Negg x0\n", "float32 e: Neg x0\n"}) {  // the second one is there twice
    const Made made = MakeCommonChains(good + bad);
    EXPECT_EQ(made.status, 1);
    EXPECT_THAT(made.output, AllOf(HasSubstr("chains.txt:4: "), HasSubstr(std::string(bad, 14))));
    EXPECT_FALSE(made.wrote);
  }
}

}  // namespace
}  // namespace cohort::cuda
