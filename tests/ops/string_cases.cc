#include <string>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/strings.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;
using Strings = std::vector<std::string>;

// Texts of ASCII and of other characters, and bytes that are not UTF-8.
const Strings kTexts = {"",           "a",     " Ab\t zC ", "d\xc3\xa9j\xc3\xa0 VU", "\xf0\x9f\x98\x80 \xe2\x82\xac!",
                        "\xff x\xc3", "a,b,,c"};

Outputs All(const ops::SparseStrings& parts) { return {parts.indices, parts.values, parts.dense_shape}; }
Outputs All(const ops::RowSplits& rows) { return {rows.values, rows.row_splits}; }

void AddOneToOneCases(std::vector<OpCase>& cases) {
  const std::vector<std::pair<const char*, Tensor>> inputs = {
      {"vector", Tensor::Vector(kTexts)},
      {"matrix", Tensor::FromValues(Strings{"Shoe ", "bag", "\ndress", "COAT"}, Shape{2, 2})},
      {"scalar", Tensor::Scalar(" Shoe")},
      {"empty", Tensor(DType::kString, {0, 3})}};
  for (const auto& [label, x] : inputs) {
    cases.push_back({"StringLower", label, {x}, Unary(ops::StringLower)});
    cases.push_back({"StringUpper", label, {x}, Unary(ops::StringUpper)});
    cases.push_back({"StringStrip", label, {x}, Unary(ops::StringStrip)});
    for (const auto unit : {ops::StringUnit::kByte, ops::StringUnit::kUtf8Char}) {
      const char* name = unit == ops::StringUnit::kByte ? "bytes" : "characters";
      cases.push_back({"StringLength", StrCat(label, "_", name), {x}, Unary([unit](Output text) {
                         return ops::StringLength(text, unit);
                       })});
    }
    const OpCase::Build join = [](Graph& g, const Outputs& in) {
      return Outputs{ops::StringJoin({in[0], ops::Const(g, "-"), in[0]}, ", ")};
    };
    cases.push_back({"StringJoin", label, {x}, join});
  }
}

void AddSubstrCases(std::vector<OpCase>& cases) {
  using ops::StringUnit;
  const auto part = [](StringUnit unit) {
    return [unit](Graph&, const Outputs& in) { return Outputs{ops::Substr(in[0], in[1], in[2], unit)}; };
  };
  const Tensor texts =
      Tensor::Vector(Strings{"d\xc3\xa9j\xc3\xa0 vu", "\xf0\x9f\x98\x80-smile", "plain text", "\x80\x80 q\xc3"});
  for (const auto& [name, unit] :
       {std::pair("bytes", StringUnit::kByte), std::pair("characters", StringUnit::kUtf8Char)}) {
    for (const int32_t pos : {0, 2, -1, -3}) {
      for (const int32_t len : {0, 2, 100}) {
        cases.push_back({"Substr",
                         StrCat(name, "_", pos < 0 ? "m" : "", pos < 0 ? -pos : pos, "_", len),
                         {texts, Tensor::Scalar(pos), Tensor::Scalar(len)},
                         part(unit)});
      }
    }
    cases.push_back(
        {"Substr",
         StrCat(name, "_each"),
         {texts, Tensor::Vector(std::vector<int64_t>{1, 3, -4, 0}), Tensor::Vector(std::vector<int64_t>{4, 3, 2, 1})},
         part(unit)});
  }
  const Tensor matrix = Tensor::FromValues(Strings{"abcd", "efgh", "ijkl", "mnop"}, Shape{2, 2});
  const Tensor places = Tensor::Vector(std::vector<int32_t>{1, 2});
  cases.push_back({"Substr", "broadcast", {matrix, places, places}, part(StringUnit::kByte)});
  cases.push_back({"Substr", "rest", {matrix, Tensor::Scalar(1), Tensor::Scalar(-1)}, part(StringUnit::kByte)});
}

void AddRegexCases(std::vector<OpCase>& cases) {
  const Tensor texts = Tensor::Vector(kTexts);
  const std::vector<std::pair<const char*, const char*>> rewrites = {
      {"[!\"#$%&()\\*\\+,-\\./:;<=>?@\\[\\\\\\]^_`{|}~\\']", ""},
      {"[a-z]", "<\\0>"},
      {"(\\S)\\s+(\\S)", "\\2\\\\\\1"},
      {"", "-"},
      {"\\p{L}+", "L"},
      {".", "x"},
      {"\xc3\xa9", "e"}};
  int number = 0;
  for (const auto& [pattern, rewrite] : rewrites) {
    const std::string p = pattern, r = rewrite;
    for (const bool all : {true, false}) {
      const std::string label = StrCat(number, all ? "_all" : "_first");
      cases.push_back({"StaticRegexReplace", label, {texts}, Unary([p, r, all](Output x) {
                         return ops::RegexReplace(x, p, r, all);
                       })});
      cases.push_back(
          {"RegexReplace", label, {texts, Tensor::Scalar(p), Tensor::Scalar(r)}, [all](Graph&, const Outputs& in) {
             return Outputs{ops::RegexReplace(in[0], in[1], in[2], all)};
           }});
    }
    ++number;
  }
  number = 0;
  for (const std::string p : {"", "a?", ".*\\s.*", "(?i)[a-z ,]+", ".\\x{e9}.*"}) {
    cases.push_back(
        {"StaticRegexFullMatch", StrCat(number), {texts}, Unary([p](Output x) { return ops::RegexFullMatch(x, p); })});
    cases.push_back({"RegexFullMatch", StrCat(number++), {texts, Tensor::Scalar(p)}, [](Graph&, const Outputs& in) {
                       return Outputs{ops::RegexFullMatch(in[0], in[1])};
                     }});
  }
}

void AddNumberCases(std::vector<OpCase>& cases) {
  const Tensor floats = Tensor::Vector(
      Strings{"12", " -1.5e3\n", "+.5", "0x1F", "inf", "-Infinity", "1e400", "1e-400", "16777217", "0.1"});
  const Tensor integers = Tensor::Vector(Strings{"12", " -7\n", "+5", "2147483647", "-2147483648", "007"});
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    cases.push_back({"StringToNumber", std::string(DTypeName(dtype)), {floats}, Unary([dtype](Output x) {
                       return ops::StringToNumber(x, dtype);
                     })});
  }
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    cases.push_back({"StringToNumber", std::string(DTypeName(dtype)), {integers}, Unary([dtype](Output x) {
                       return ops::StringToNumber(x, dtype);
                     })});
  }
}

void AddStringRowCases(std::vector<OpCase>& cases) {
  const Tensor texts =
      Tensor::Vector(Strings{" a b  c ", "", "d,,e,f", "\xc3\xa9t\xc3\xa9\v\fx\xc2\xa0y", ",", "one  "});
  int number = 0;
  for (const std::string sep : {"", ",", "  ", "e"}) {
    for (const int64_t maxsplit : {-1, 0, 1, 2}) {
      cases.push_back({"StringSplitV2", StrCat(number++), {texts}, [=](Graph&, const Outputs& in) {
                         return All(ops::StringSplitV2(in[0], sep, maxsplit));
                       }});
    }
  }
  const OpCase::Build split = [](Graph&, const Outputs& in) { return All(ops::StringSplitV2(in[0])); };
  cases.push_back({"StringSplitV2", "nothing", {Tensor(DType::kString, {0})}, split});
  cases.push_back({"StringSplitV2", "dense", {texts}, [](Graph&, const Outputs& in) {
                     return Outputs{ops::StringSplit(in[0], "", "[PAD]")};
                   }});

  // Long encodings, surrogates, numbers that are too large, and sequences that end too soon.
  const Tensor bytes =
      Tensor::Vector(Strings{"", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xff\xfe", "\xc0\xaf", "\xe0\x80\xaf",
                             "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xe2\x82x", "\xf0\x9f\x98",
                             "\xf0\x9f\x98x\x80", "\xc3", "a\x80z", "\xef\xbf\xbf", std::string("\0b", 2)});
  const OpCase::Build decode = [](Graph&, const Outputs& in) { return All(ops::UnicodeDecode(in[0])); };
  cases.push_back({"UnicodeDecode", "bytes", {bytes}, decode});
  cases.push_back({"UnicodeDecode", "texts", {texts}, decode});
  cases.push_back({"UnicodeDecode", "nothing", {Tensor(DType::kString, {0})}, decode});
  for (const std::string errors : {"ignore", "replace"}) {
    cases.push_back({"UnicodeDecode", errors + "_bytes", {bytes}, [errors](Graph&, const Outputs& in) {
                       Node* node = ops::Op("UnicodeDecode", {in[0]})
                                        .Attr("input_encoding", "UTF-8")
                                        .Attr("errors", errors)
                                        .Attr("replacement_char", 63)
                                        .Attr("replace_control_characters", true)
                                        .Attr("Tsplits", DType::kInt32)
                                        .Finish();
                       return Outputs{node->output(0), node->output(1)};
                     }});
  }
  const OpCase::Build encode = [](Graph&, const Outputs& in) { return Outputs{ops::UnicodeEncode({in[0], in[1]})}; };
  const Tensor characters = Tensor::Vector(std::vector<int32_t>{97, 0xE9, 0x20AC, 0x1F600, 0xD800, 0x110000, -1, 0xFFFE,
                                                                0xFDD0, 0x10FFFF, 0, 0x7FF, 0xFFFD});
  cases.push_back(
      {"UnicodeEncode", "rows", {characters, Tensor::Vector(std::vector<int64_t>{0, 4, 4, 9, 13})}, encode});
  cases.push_back(
      {"UnicodeEncode", "nothing", {Tensor(DType::kInt32, {0}), Tensor::Vector(std::vector<int64_t>{0})}, encode});
}

void AddNGramCases(std::vector<OpCase>& cases) {
  const Tensor words = Tensor::Vector(Strings{"a", "b", "c", "d", "e", "f"});
  const Tensor splits = Tensor::Vector(std::vector<int64_t>{0, 4, 4, 5, 6});
  const auto add = [&](const char* label, const std::vector<int64_t>& widths, const ops::StringNGramsOptions& options) {
    cases.push_back({"StringNGrams", label, {words, splits}, [=](Graph&, const Outputs& in) {
                       return All(ops::StringNGrams({in[0], in[1]}, widths, options));
                     }});
  };
  add("pairs", {2}, {});
  add("up_to_three", {1, 2, 3}, {.separator = "_"});
  add("none", {}, {});
  add("padded", {3}, {.left_pad = "<", .right_pad = ">", .pad_width = -1});
  add("padded_by_one", {1, 3, 5}, {.left_pad = "<", .right_pad = ">", .pad_width = 1});
  add("short", {3}, {.preserve_short_sequences = true});
  add("short_padded", {6}, {.left_pad = "<", .right_pad = ">", .pad_width = 1, .preserve_short_sequences = true});
  const OpCase::Build pairs = [](Graph&, const Outputs& in) { return All(ops::StringNGrams({in[0], in[1]}, {2})); };
  cases.push_back({"StringNGrams", "int32", {words, Tensor::Vector(std::vector<int32_t>{0, 2, 6})}, pairs});
  cases.push_back(
      {"StringNGrams", "nothing", {Tensor(DType::kString, {0}), Tensor::Vector(std::vector<int64_t>{0, 0})}, pairs});
}

void AddCrossCases(std::vector<OpCase>& cases) {
  const Tensor words = Tensor::FromValues(Strings{"A", "B", "", "\xff", "long text", "A"}, Shape{3, 2});
  const Tensor ids = Tensor::FromValues(std::vector<int64_t>{101, -7, int64_t{1} << 40}, Shape{3, 1});
  const auto cross = [](int64_t buckets, int64_t key) {
    return [=](Graph&, const Outputs& in) {
      const ops::SparseIntegers hashes = ops::CrossHashed(in, buckets, key);
      return Outputs{hashes.indices, hashes.values, hashes.dense_shape};
    };
  };
  cases.push_back({"SparseCross", "words_and_ids", {words, ids}, cross(1'000'003, ops::kCrossHashKey)});
  cases.push_back({"SparseCross", "another_key", {ids, words, words}, cross(1'000'003, 17)});
  cases.push_back({"SparseCross", "one", {words}, cross(5, ops::kCrossHashKey)});
  cases.push_back({"SparseCross", "nothing", {Tensor(DType::kString, {0, 1})}, cross(5, ops::kCrossHashKey)});
}

}  // namespace

void AddStringCases(std::vector<OpCase>& cases) {
  AddOneToOneCases(cases);
  AddSubstrCases(cases);
  AddRegexCases(cases);
  AddNumberCases(cases);
  AddStringRowCases(cases);
  AddNGramCases(cases);
  AddCrossCases(cases);
}

}  // namespace cohort::testing
