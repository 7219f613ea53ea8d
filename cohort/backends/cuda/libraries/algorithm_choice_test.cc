// How algorithms of products and convolutions are chosen: tables of algorithms, and sessions on fake cards, whose
// libraries offer three algorithms. The second one is the fastest.
#include "cohort/backends/cuda/libraries/algorithm_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/compare.h"
#include "cohort/backends/cuda/fake/fake_blas.h"
#include "cohort/backends/cuda/fake/fake_dnn.h"
#include "cohort/backends/cuda/testing/recording_fixture.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/matmul.h"

namespace cohort::cuda {
namespace {

using cohort::testing::SomeValues;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kBegin[] = "cohort algorithms 1\n";

AlgorithmKey KeyOf(const std::string& version, const std::string& call) { return {"Card 7", {"lib", version}, call}; }

TEST(AlgorithmTableTest, EntriesAreFoundByCardLibraryVersionAndCall) {
  const AlgorithmTable table("t", StrCat(kBegin,
                                         "# a comment\n\n"
                                         "Card 7 | lib 1.2.3 | product m=1 | 1\r\n"
                                         "Card 7 | lib 1.2.3 | product m=2 | ff:0:a\n"
                                         "Card 7 | lib 1.2.3 | product m=1 | 2\n"));
  EXPECT_EQ(table.size(), 2u);
  ASSERT_NE(table.Find(KeyOf("1.2.3", "product m=1")), nullptr);
  EXPECT_EQ(table.Find(KeyOf("1.2.3", "product m=1"))->algorithm.words[0], 2u);
  EXPECT_EQ(table.Find(KeyOf("1.2.3", "product m=1"))->where, "t:6");
  EXPECT_THAT(table.Find(KeyOf("1.2.3", "product m=2"))->algorithm.words, ElementsAre(0xff, 0, 0xa, 0, 0, 0, 0, 0));
  EXPECT_EQ(table.Find(KeyOf("1.2.4", "product m=1")), nullptr);
  ASSERT_NE(table.FindOtherVersion(KeyOf("1.2.4", "product m=1")), nullptr);
  EXPECT_EQ(table.FindOtherVersion(KeyOf("1.2.4", "product m=1"))->version, "1.2.3");
  EXPECT_EQ(table.FindOtherVersion(KeyOf("1.2.3", "product m=1")), nullptr);
  EXPECT_EQ(table.Find({"Card 8", {"lib", "1.2.3"}, "product m=1"}), nullptr);
}

TEST(AlgorithmTableTest, ALineThatIsWrittenIsReadAgain) {
  Algorithm algorithm;
  algorithm.words = {0, 0xfedcba9876543210, 0, 7, 0, 0, 0, 1};
  const AlgorithmKey key = KeyOf("13.1.0", "product float32 m=1");
  const AlgorithmTable table("t", StrCat(kBegin, AlgorithmLine(key, algorithm)));
  ASSERT_NE(table.Find(key), nullptr);
  EXPECT_EQ(table.Find(key)->algorithm.words, algorithm.words);
}

TEST(AlgorithmTableTest, ABadLineIsNamedWithFileAndLine) {
  for (const char* line :
       {"Card 7 | lib 1.2.3 | product", "Card 7 | lib | product | 1", "Card 7 | lib 1 2 | product | 1",
        " | lib 1 | product | 1", "Card 7 | lib 1 | product | ", "Card 7 | lib 1 | product | g",
        "Card 7 | lib 1 | product | 1:2:3:4:5:6:7:8:9", "Card 7 | lib 1 | product | 11112222333344445"}) {
    const std::string message =
        MessageOf<InvalidArgumentError>([&] { AlgorithmTable("dir/t.txt", StrCat(kBegin, "\n", line, "\n")); });
    EXPECT_THAT(message, AllOf(HasSubstr("dir/t.txt:3"), HasSubstr(StrCat("'", line, "'"))));
  }
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { AlgorithmTable("t", "Card 7 | lib 1 | product | 1\n"); }),
              AllOf(HasSubstr("t:1"), HasSubstr("cohort algorithms 1")));
}

TEST(AlgorithmTableTest, TheCommittedTableIsATable) {
  EXPECT_NO_THROW(AlgorithmTable("algorithms.txt", kCommittedAlgorithms));
}

// A question whose algorithms the test decides.
class FakeQuestion final : public AlgorithmQuestion {
 public:
  explicit FakeQuestion(std::string call) : call_(std::move(call)) {}
  AlgorithmKey Key() override { return KeyOf("1.0.0", call_); }
  std::vector<Algorithm> Candidates(size_t most) override { return offered.Candidates(most); }
  std::optional<Algorithm> Check(const Algorithm& algorithm) override { return offered.Check(algorithm); }
  bool CanTime() const override { return can_time; }
  double Time(const Algorithm& algorithm) override { return offered.Use(algorithm); }
  void Run(const Algorithm& algorithm) override {
    tried.push_back(algorithm.words[0]);
    if (algorithm.words[0] == failing) ThrowError(code, "it fails in this test");
  }

  FakeAlgorithms offered{64};
  std::vector<uint64_t> tried;  // by Run
  uint64_t failing = 0;         // Run fails with this algorithm
  Code code = Code::kInternal;
  bool can_time = true;

 private:
  const std::string call_;
};

class AlgorithmChoiceTest : public RecordingTest {
 protected:
  void SetUp() override { COHORT_NEEDS_FAKE("the algorithms of its libraries take fixed times"); }
  AlgorithmChoiceTest() { AlgorithmChooser::Get().Forget(); }
  ~AlgorithmChoiceTest() override {
    if (TestsRunOnCard()) return;  // no test has run
    config::EnableAutotune(false);
    config::SetAutotuneTable("");
    blas().algorithms().Refuse(0);
    blas().algorithms().Fail(0);
    AlgorithmChooser::Get().Forget();
  }

  static FakeBlas& blas() { return static_cast<FakeBlas&>(FindBlas()); }
  static FakeDnn& dnn() { return static_cast<FakeDnn&>(FindDnn()); }

  // Makes the call of the question, and returns the numbers of the algorithms that were tried for it.
  static std::vector<uint64_t> Tried(FakeQuestion& question) {
    const AlgorithmChooser::ProductCall call(0, GemmSpec{.m = 77});
    question.tried.clear();
    EXPECT_TRUE(AlgorithmChooser::Get().Run(call, question));
    return question.tried;
  }

  // Runs a product of matrices of m rows in a session of its own, several times. Returns the algorithm of the last
  // call. All runs but the first two launch a graph.
  static uint64_t RunProducts(int64_t m, int runs = 4) {
    Graph g;
    const DeviceScope scope(g, "/device:GPU:0");
    const Output a = ops::Placeholder(g, DType::kFloat32, Shape{-1, 3}, "a");
    const Output product = ops::MatMul(a, a, false, true, "product");
    Session session(g, "", Config());
    const Tensor value = SomeValues(DType::kFloat32, {m, 3}, 1);
    std::vector<std::vector<Tensor>> results;
    for (int i = 0; i < runs; ++i) {
      const Asked asked = AskedBy([&] {
        const RunResults values = session.Run({{a, value}}, {product});
        results.emplace_back(values.begin(), values.end());
      });
      EXPECT_EQ(asked.graphs, i == 0 ? 0 : 1) << i;
      ExpectSame(results.back(), results.front());
    }
    return blas().algorithms().last();
  }

  // What the log says meanwhile.
  template <typename Work>
  static std::string LogOf(const Work& work) {
    ::testing::internal::CaptureStderr();
    work();
    return ::testing::internal::GetCapturedStderr();
  }

  std::string WriteTable(const std::string& lines) {
    const std::string path = folder_ / "table.txt";
    WriteFileAtomically(path, StrCat(kBegin, lines));
    config::SetAutotuneTable(path);
    return path;
  }
  // Returns the line of a table for the product of RunProducts.
  static std::string LineOf(int64_t m, uint64_t algorithm, const std::string& version = "1.0.0") {
    GemmSpec spec;
    spec.m = spec.n = m;
    spec.k = 3;
    spec.transpose_b = true;
    spec.tensor_float_32 = true;
    spec.alignment = 256;
    Algorithm words;
    words.words[0] = algorithm;
    return AlgorithmLine({driver_->Card(0).name, {"FakeBlas", version}, CallText(spec)}, words);
  }

  const cohort::testing::TempFolder folder_;
};

TEST_F(AlgorithmChoiceTest, WithoutAutotuneNothingIsTimed) {
  const int64_t before = blas().algorithms().calls(1), others = blas().algorithms().calls(2);
  EXPECT_EQ(RunProducts(5, 1), 1u);
  EXPECT_EQ(blas().algorithms().calls(1), before + 1);
  EXPECT_EQ(RunProducts(5), 1u);
  EXPECT_EQ(blas().algorithms().calls(2), others);
}

TEST_F(AlgorithmChoiceTest, AutotuneTakesTheFastestInTheFirstStepAndRecordsIt) {
  config::EnableAutotune(true);
  const int64_t before = blas().algorithms().calls(3);
  EXPECT_EQ(RunProducts(5, 1), 2u);
  const int64_t timed = blas().algorithms().calls(3) - before;
  EXPECT_GT(timed, 1);
  EXPECT_EQ(RunProducts(5), 2u);
  EXPECT_EQ(blas().algorithms().calls(3) - before, timed) << "the choice is kept";
  blas().algorithms().SetMicroseconds(3, 5);
  EXPECT_EQ(RunProducts(6), 3u);
  EXPECT_EQ(RunProducts(5), 2u);
  blas().algorithms().SetMicroseconds(3, 20);
}

TEST_F(AlgorithmChoiceTest, AnAlgorithmThatFailsIsNotTaken) {
  config::EnableAutotune(true);
  blas().algorithms().Fail(2);
  EXPECT_EQ(RunProducts(5), 3u);
}

TEST_F(AlgorithmChoiceTest, WhatIsRecordedIsNotTimedAndNotKept) {
  config::EnableAutotune(true);
  FakeQuestion question("x");
  question.can_time = false;
  EXPECT_THAT(Tried(question), ElementsAre(1));
  EXPECT_EQ(question.offered.calls(1), 0);
  question.can_time = true;
  EXPECT_THAT(Tried(question), ElementsAre(2));
  EXPECT_EQ(question.offered.calls(1), 1);
}

// The heuristics of libraries may offer an algorithm that then does not work.
TEST_F(AlgorithmChoiceTest, IfTheFirstCandidateFailsTheNextIsTakenAndKept) {
  blas().algorithms().Fail(1);
  const std::string log = LogOf([] { EXPECT_EQ(RunProducts(9), 2u); });
  EXPECT_THAT(log, AllOf(HasSubstr("the algorithm of FakeBlas 1.0.0 for the product"),
                         HasSubstr("fails, and another one is taken from now on: [fake library]")));
  blas().algorithms().Fail(0);
  EXPECT_EQ(RunProducts(9), 2u);
  for (const Code code : {Code::kInternal, Code::kUnimplemented}) {
    AlgorithmChooser::Get().Forget();
    FakeQuestion question("x");
    question.failing = 1;
    question.code = code;
    EXPECT_THAT(Tried(question), ElementsAre(1, 2));
    EXPECT_THAT(Tried(question), ElementsAre(2));
  }
}

TEST_F(AlgorithmChoiceTest, WithoutMemoryForTheFirstCandidateTheNextIsTakenForOneCall) {
  FakeQuestion question("x");
  question.failing = 1;
  question.code = Code::kResourceExhausted;
  EXPECT_THAT(LogOf([&] { EXPECT_THAT(Tried(question), ElementsAre(1, 2)); }), HasSubstr("is taken for this call: "));
  EXPECT_THAT(LogOf([&] { EXPECT_THAT(Tried(question), ElementsAre(1, 2)); }), Not(HasSubstr("is taken")));
  question.failing = 0;
  EXPECT_THAT(Tried(question), ElementsAre(1));
}

TEST_F(AlgorithmChoiceTest, NoOtherCandidateIsTriedInARecordingOrForAnotherError) {
  FakeQuestion question("x");
  question.failing = 1;
  question.can_time = false;
  EXPECT_THROW(Tried(question), InternalError);
  EXPECT_THAT(question.tried, ElementsAre(1));
  question.can_time = true;
  question.code = Code::kFailedPrecondition;  // no library, or a card that another process uses
  EXPECT_THROW(Tried(question), FailedPreconditionError);
  EXPECT_THAT(question.tried, ElementsAre(1));
}

TEST_F(AlgorithmChoiceTest, IfAllAlgorithmsFailTheErrorIsTheirs) {
  config::EnableAutotune(true);
  class Failing final : public AlgorithmQuestion {
   public:
    AlgorithmKey Key() override { return KeyOf("1.0.0", "y"); }
    std::vector<Algorithm> Candidates(size_t) override { return {Algorithm(), Algorithm()}; }
    std::optional<Algorithm> Check(const Algorithm&) override { return std::nullopt; }
    bool CanTime() const override { return true; }
    double Time(const Algorithm&) override { throw InternalError("the card is broken"); }
    void Run(const Algorithm&) override { throw InternalError("the card is broken, too"); }
  } failing;
  const AlgorithmChooser::ProductCall call(0, GemmSpec{.m = 78});
  const auto run = [&] { AlgorithmChooser::Get().Run(call, failing); };
  EXPECT_THAT(MessageOf<InternalError>(run), HasSubstr("the card is broken"));
  config::EnableAutotune(false);
  EXPECT_THAT(MessageOf<InternalError>(run), HasSubstr("the card is broken, too"));
}

TEST_F(AlgorithmChoiceTest, WhatWasTimedStandsInTheFileForLaterProcesses) {
  config::EnableAutotune(true);
  const std::string path = folder_ / "new.txt";
  config::SetAutotuneTable(path);
  EXPECT_EQ(RunProducts(5), 2u);
  EXPECT_EQ(RunProducts(6), 2u);
  EXPECT_EQ(ReadFile(path), StrCat(kBegin, LineOf(5, 2), LineOf(6, 2)));
  for (const bool autotune : {false, true}) {
    AlgorithmChooser::Get().Forget();  // as in a new process
    config::EnableAutotune(autotune);
    const int64_t before = blas().algorithms().calls(3);
    EXPECT_EQ(RunProducts(5), 2u);
    EXPECT_EQ(blas().algorithms().calls(3), before);
  }
  EXPECT_EQ(RunProducts(7), 2u);
  EXPECT_EQ(ReadFile(path), StrCat(kBegin, LineOf(5, 2), LineOf(6, 2), LineOf(7, 2)));
}

TEST_F(AlgorithmChoiceTest, AFileThatCannotBeWrittenIsAWarning) {
  config::EnableAutotune(true);
  config::SetAutotuneTable(folder_ / "no_folder/table.txt");
  const std::string log = LogOf([&] { EXPECT_EQ(RunProducts(5), 2u); });
  EXPECT_THAT(log, AllOf(HasSubstr("no_folder/table.txt"), HasSubstr("lost at the end")));
}

TEST_F(AlgorithmChoiceTest, ABadFileFailsTheStepAndSaysWhere) {
  const std::string path = WriteTable("nonsense\n");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { RunProducts(5, 1); }),
              AllOf(HasSubstr(StrCat(path, ":2")), HasSubstr("'nonsense'")));
  config::SetAutotuneTable(folder_ / "missing.txt");
  EXPECT_THAT(MessageOf<NotFoundError>([] { RunProducts(5, 1); }), HasSubstr("missing.txt"));
  config::SetAutotuneTable("");
  EXPECT_EQ(RunProducts(5), 1u);
}

TEST_F(AlgorithmChoiceTest, EntriesForAnotherVersionAreNamedOnceAndNotUsed) {
  const std::string path = WriteTable(StrCat(LineOf(5, 3, "0.9.0"), LineOf(6, 3, "0.9.0")));
  const std::string log = LogOf([&] {
    EXPECT_EQ(RunProducts(5), 1u);
    EXPECT_EQ(RunProducts(6), 1u);
  });
  EXPECT_THAT(log, AllOf(HasSubstr(StrCat(path, ":2")), HasSubstr("FakeBlas 0.9.0, and this is 1.0.0"),
                         Not(HasSubstr(StrCat(path, ":3")))));
}

TEST_F(AlgorithmChoiceTest, AnAlgorithmThatTheLibraryRefusesIsNamedAndNotUsed) {
  const std::string path = WriteTable(StrCat(LineOf(5, 3), LineOf(6, 9)));
  EXPECT_EQ(RunProducts(5), 3u);
  const std::string log = LogOf([&] {
    EXPECT_EQ(RunProducts(6), 1u);
    EXPECT_EQ(RunProducts(6), 1u);
  });
  EXPECT_THAT(log, AllOf(HasSubstr(StrCat(path, ":3")), HasSubstr("refuses")));
  EXPECT_EQ(log.find("refuses"), log.rfind("refuses"));
}

// The file comes before the program's own table, and so does what is timed.
TEST_F(AlgorithmChoiceTest, TheCommittedTableComesBeforeTheHeuristics) {
  AlgorithmChooser::Get().SetCommitted(StrCat(kBegin, LineOf(5, 3), LineOf(6, 3), LineOf(7, 3)));
  EXPECT_EQ(RunProducts(5), 3u);
  WriteTable(LineOf(6, 1));
  EXPECT_EQ(RunProducts(6), 1u);
  config::EnableAutotune(true);
  EXPECT_EQ(RunProducts(7), 2u);
}

TEST_F(AlgorithmChoiceTest, ConvolutionsAndTheirGradientsAreTimed) {
  using cohort::testing::CompareWithCpu;
  const auto run = [](int64_t rows) {
    Graph g;
    const Output x = ops::Placeholder(g, DType::kFloat32, Shape{2, rows, 6, 4});
    const Output filter = ops::Placeholder(g, DType::kFloat32, Shape{3, 3, 4, 5});
    CompareWithCpu(
        g, {ops::Conv2D(x, filter, {.padding = "SAME"})},
        {{x, SomeValues(DType::kFloat32, {2, rows, 6, 4}, 1)}, {filter, SomeValues(DType::kFloat32, {3, 3, 4, 5}, 2)}},
        1e-4);
    return dnn().algorithms().last();
  };
  EXPECT_EQ(run(5), 1u);
  config::EnableAutotune(true);
  const std::string path = folder_ / "new.txt";
  config::SetAutotuneTable(path);
  EXPECT_EQ(run(6), 2u);
  EXPECT_THAT(ReadFile(path), HasSubstr("| FakeDnn 1.0.0 | convolution tf32 batch=2 in=6x6x4 filter=3x3 out=6x6x5 "
                                        "groups=1 strides=1x1 dilations=1x1 padding=1x1 | 2\n"));
}

}  // namespace
}  // namespace cohort::cuda
