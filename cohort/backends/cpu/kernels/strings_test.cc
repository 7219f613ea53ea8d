// Ops on texts: what they refuse, and how errors name it. tests/ops/string_cases.cc has the cases that are compared
// with TensorFlow.
#include "cohort/ops/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;
using Strings = std::vector<std::string>;

class StringsTest : public ::testing::Test {
 protected:
  Output Texts(const Strings& texts) { return ops::Const(graph_, texts); }
  Output Integers(const std::vector<int64_t>& values) { return ops::Const(graph_, values); }

  // The messages of a node that cannot be made, and of one that fails when it runs.
  template <typename E = InvalidArgumentError, typename Make>
  static std::string WhenMade(const Make& make) {
    return MessageOf<E>(make);
  }
  template <typename E = InvalidArgumentError>
  static std::string WhenRun(const Output& output) {
    return MessageOf<E>([&] { Interpreter().Run1(output); });
  }

  Graph graph_;
};

TEST_F(StringsTest, ShortPartsOfTexts) {
  EXPECT_THAT(Interpreter().Run1(ops::StringSplit(Texts({"a b", "", "c"}), "", "-")).ToVector<std::string>(),
              ElementsAre("a", "b", "-", "-", "c", "-"));
  EXPECT_THAT(Interpreter().Run1(ops::StringJoin({Texts({"a", "b"}), ops::Const(graph_, "!")})).ToVector<std::string>(),
              ElementsAre("a!", "b!"));
}

TEST_F(StringsTest, BadExpressionsAreNamed) {
  const Output texts = Texts({"abc"});
  for (const std::string bad : {"(", "a\\", "[z-a]", "\xff(", "a**"}) {
    EXPECT_THAT(WhenRun(ops::RegexReplace(texts, bad, "x")), HasSubstr("expected a regular expression")) << bad;
    EXPECT_THAT(WhenRun(ops::RegexFullMatch(texts, bad)), HasSubstr("expected a regular expression")) << bad;
  }
  EXPECT_THAT(WhenRun(ops::RegexReplace(texts, ops::Const(graph_, "("), ops::Const(graph_, "x"))),
              AllOf(HasSubstr("got \"(\""), HasSubstr("missing )")));
  EXPECT_THAT(WhenRun(ops::RegexFullMatch(texts, ops::Const(graph_, "("))), HasSubstr("got \"(\""));
  EXPECT_THAT(WhenRun(ops::RegexReplace(texts, "(a)", "\\2")), AllOf(HasSubstr("a rewrite"), HasSubstr("\\2")));
  EXPECT_THAT(WhenRun(ops::RegexReplace(texts, "a", "\\x")), HasSubstr("a rewrite"));
  EXPECT_THAT(WhenMade([&] { ops::RegexReplace(texts, Texts({"a"}), ops::Const(graph_, "x")); }), HasSubstr("rank 0"));
}

TEST_F(StringsTest, AnExpressionThatIsSlowElsewhereEnds) {
  EXPECT_THAT(Interpreter().Run1(ops::RegexFullMatch(Texts({std::string(10'000, 'a')}), "(a*)*b")).ToVector<bool>(),
              ElementsAre(false));
}

TEST_F(StringsTest, PositionsOutsideOfATextAreNamed) {
  for (const auto unit : {ops::StringUnit::kByte, ops::StringUnit::kUtf8Char}) {
    for (const int64_t pos :
         {int64_t{6}, int64_t{-6}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
      EXPECT_THAT(WhenRun(ops::Substr(Texts({"Hello"}), pos, int64_t{1}, unit)),
                  AllOf(HasSubstr("inside of the string"), HasSubstr("Hello")));
    }
    EXPECT_THAT(Interpreter()
                    .Run1(ops::Substr(Texts({"Hello"}), int64_t{5}, std::numeric_limits<int64_t>::max(), unit))
                    .ToVector<std::string>(),
                ElementsAre(""));
  }
  EXPECT_THAT(WhenMade([&] { ops::Substr(Texts({"a"}), 0, Integers({1, 2})); }), HasSubstr("of one shape"));
}

TEST_F(StringsTest, TextsThatAreNoNumbersAreNamed) {
  for (const std::string bad : {"", " ", "1 2", "1.5f", "1_0", "0x", "0xg", "nan(1)", "--1", "one"}) {
    EXPECT_THAT(WhenRun(ops::StringToNumber(Texts({bad}))), HasSubstr("got \"" + bad + "\"")) << bad;
  }
  EXPECT_THAT(WhenRun(ops::StringToNumber(Texts({"2147483648"}), DType::kInt32)),
              HasSubstr("a number of the dtype int32"));
  EXPECT_THAT(WhenRun(ops::StringToNumber(Texts({"1.0"}), DType::kInt64)), HasSubstr("1.0"));
}

TEST_F(StringsTest, RowsThatAreNoneAreRefused) {
  for (const std::vector<int64_t>& splits :
       {std::vector<int64_t>{}, {0}, {0, 1}, {1, 2}, {0, 2, 1, 2}, {0, 3}, {0, -1, 2}}) {
    EXPECT_THAT(WhenRun(ops::UnicodeEncode({ops::Const(graph_, std::vector<int32_t>{97, 98}), Integers(splits)})),
                HasSubstr("splits in ascending order"));
    if (splits.empty()) continue;  // TensorFlow then has no n-grams
    EXPECT_THAT(WhenRun(ops::StringNGrams({Texts({"a", "b"}), Integers(splits)}, {1}).values),
                HasSubstr("splits in ascending order"));
  }
  const auto ngrams = [&](const std::vector<int64_t>& widths, int64_t pads) {
    return WhenMade([&] { ops::StringNGrams({Texts({"a"}), Integers({0, 1})}, widths, {.pad_width = pads}); });
  };
  EXPECT_THAT(ngrams({2, 0}, 0), HasSubstr("got 0"));
  EXPECT_THAT(ngrams({-1}, 0), HasSubstr("got -1"));
  EXPECT_THAT(ngrams({std::numeric_limits<int64_t>::max()}, 0), HasSubstr("ngram_widths in [1, "));
  EXPECT_THAT(ngrams({1}, int64_t{1} << 40), HasSubstr("pad_width of at most"));
  EXPECT_THAT(WhenRun<ResourceExhaustedError>(
                  ops::StringNGrams({Texts({"a"}), Integers({0, 1})}, {1 << 20}, {.pad_width = -1}).values),
              HasSubstr("n-grams of at most 268435456 strings together; row 0 has 1048576"));
  const std::string long_pad(size_t{1} << 20, 'x');
  EXPECT_THAT(
      WhenRun<ResourceExhaustedError>(ops::StringNGrams({Texts({"a"}), Integers({0, 1})}, {1 << 13},
                                                        {.left_pad = long_pad, .right_pad = long_pad, .pad_width = -1})
                                          .values),
      HasSubstr("4294967296 bytes together"));
}

TEST_F(StringsTest, ErrorsInUtf8FailTheStepIfTheyAreAskedTo) {
  const auto decode = [&](const std::string& text, const char* errors, int64_t replacement) {
    return ops::Op("UnicodeDecode", {Texts({"fine", text})})
        .Attr("input_encoding", "UTF-8")
        .Attr("errors", errors)
        .Attr("replacement_char", replacement)
        .Finish()
        ->output(1);
  };
  EXPECT_THAT(WhenRun(decode("ab\xff", "strict", 63)), HasSubstr("string 1 is not, from byte 2 on"));
  EXPECT_THAT(WhenRun(decode("ab", "replace", 0xD800)), HasSubstr("a replacement_char of Unicode; got 55296"));
  EXPECT_THAT(Interpreter().Run1(decode("\xff", "replace", 63)).ToVector<int32_t>(),
              ElementsAre(102, 105, 110, 101, 63));
  const Output bad = ops::Op("UnicodeEncode", {ops::Const(graph_, std::vector<int32_t>{-1}), Integers({0, 1})})
                         .Attr("output_encoding", "UTF-8")
                         .Attr("errors", "strict")
                         .Finish1();
  EXPECT_THAT(WhenRun(bad), HasSubstr("value 0 is -1"));
}

TEST_F(StringsTest, OtherEncodingsAreRefused) {
  const auto made = [&](const char* op, const char* attr, const char* encoding) {
    return WhenMade<UnimplementedError>([&] { ops::Op(op, {Texts({"a"})}).Attr(attr, encoding).Finish(); });
  };
  EXPECT_THAT(made("StringLower", "encoding", "utf-8"), HasSubstr("got \"utf-8\""));
  EXPECT_THAT(made("UnicodeDecode", "input_encoding", "UTF-16-BE"), HasSubstr("got \"UTF-16-BE\""));
  EXPECT_THAT(WhenMade([&] { ops::StringJoin({}); }), HasSubstr("at least one input"));
  EXPECT_THAT(WhenMade([&] {
                ops::StringJoin({Texts({"a"}), Texts({"a", "b"})});
              }),
              HasSubstr("of one shape, or scalars"));
}

}  // namespace
}  // namespace cohort
