#include "cohort/keras/layers/preprocessing/text_tokens.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

constexpr int64_t kMostNGrams = 1024;
constexpr char kPunctuation[] = R"([!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\'])";  // Keras's

// Returns start, start + 1, ..., limit - 1 as int64.
Output Numbers(const ops::Operand& limit) { return ops::Range(int64_t{0}, limit, int64_t{1}); }
Output Column(const Output& indices, int64_t column) {
  return ops::Reshape(ops::Slice(indices, {0, column}, {-1, 1}), {-1});
}
Output Vector(const Output& like, int64_t value) { return ops::Const(like.graph(), std::vector<int64_t>{value}); }
Output AsRow(const Output& vector) { return ops::Reshape(vector, {1, -1}); }

// The two forms of rows of different lengths.
ops::RowSplits WithSplits(const ops::SparseStrings& rows) {
  const Output count = ops::Reshape(ops::Slice(rows.dense_shape, {0}, {1}), std::vector<int64_t>{});
  const Output splits = ops::SearchSorted(AsRow(Column(rows.indices, 0)), AsRow(Numbers(ops::Add(count, 1))));
  return {rows.values, ops::Reshape(splits, {-1})};
}
ops::SparseStrings WithIndices(const ops::RowSplits& rows) {
  const Output place = Numbers(ops::Size(rows.values, DType::kInt64));
  const Output next = ops::Reshape(ops::SearchSorted(AsRow(rows.row_splits), AsRow(place), /*right=*/true), {-1});
  const Output row = ops::Sub(next, 1);
  const Output column = ops::Sub(place, ops::Gather(rows.row_splits, row));
  const Output count = ops::Sub(ops::Size(rows.row_splits, DType::kInt64), 1);
  const Output begins = ops::Slice(rows.row_splits, Vector(count, 0), ops::Reshape(count, {1}));
  const Output lengths = ops::Sub(ops::Slice(rows.row_splits, {1}, {-1}), begins);
  const Output longest = ops::Maximum(ops::Max(lengths), 0);  // of no row it would be the least number
  return {ops::Pack({row, column}, 1), rows.values, ops::Pack({count, longest})};
}

ops::RowSplits Characters(const Output& texts) {
  const ops::RowSplits characters = ops::UnicodeDecode(texts);
  const Output one_each = Numbers(ops::Add(ops::Size(characters.values, DType::kInt64), 1));
  return {ops::UnicodeEncode({characters.values, one_each}), characters.row_splits};
}

}  // namespace

void CheckTextOptions(const TextVectorizationOptions& options) {
  const auto fail = [](const auto&... what) {
    throw InvalidArgumentError(StrCat("[keras/text_vectorization] expected ", what...));
  };
  const auto& standardize = options.standardize;
  if (standardize && *standardize != "lower_and_strip_punctuation" && *standardize != "lower" &&
      *standardize != "strip_punctuation") {
    fail("standardize \"lower_and_strip_punctuation\", \"lower\" or \"strip_punctuation\", or nullopt; got \"",
         *standardize, "\"");
  }
  if (options.split && *options.split != "whitespace" && *options.split != "character") {
    fail("split \"whitespace\" or \"character\", or nullopt; got \"", *options.split, "\"");
  }
  if (const auto* most = std::get_if<int64_t>(&options.ngrams)) {
    if (*most < 1 || *most > kMostNGrams) fail("ngrams in [1, ", kMostNGrams, "]; got ", *most);
  }
  if (const auto* widths = std::get_if<std::vector<int64_t>>(&options.ngrams)) {
    if (widths->empty()) fail("at least one number of neighbours in ngrams; got none");
    for (const int64_t width : *widths) {
      if (width < 1 || width > kMostNGrams) fail("ngrams of numbers in [1, ", kMostNGrams, "]; got ", width);
    }
  }
}

std::vector<int64_t> NGramWidths(const TextVectorizationOptions& options) {
  if (const auto* widths = std::get_if<std::vector<int64_t>>(&options.ngrams)) return *widths;
  std::vector<int64_t> widths;
  const auto* most = std::get_if<int64_t>(&options.ngrams);
  for (int64_t width = 1; most != nullptr && width <= *most; ++width) widths.push_back(width);
  return widths;
}

Output Standardized(const Output& texts, const TextVectorizationOptions& options) {
  if (!options.standardize) return texts;
  Output result = texts;
  if (*options.standardize != "strip_punctuation") result = ops::StringLower(result);
  if (*options.standardize != "lower") result = ops::RegexReplace(result, kPunctuation, "");
  return result;
}

ops::SparseStrings SplitTexts(const Output& texts, const TextVectorizationOptions& options) {
  const std::vector<int64_t> widths = NGramWidths(options);
  if (*options.split == "whitespace") {
    const ops::SparseStrings words = ops::StringSplitV2(texts);
    return widths.empty() ? words : WithIndices(ops::StringNGrams(WithSplits(words), widths));
  }
  const ops::RowSplits characters = Characters(texts);
  return WithIndices(widths.empty() ? characters : ops::StringNGrams(characters, widths));
}

ops::SparseStrings TokensInRows(const Output& tokens) {
  const Output shape = ops::ShapeOf(tokens, DType::kInt64);
  const auto size = [&](int64_t axis) { return ops::Gather(shape, ops::Const(tokens.graph(), axis)); };
  return WithIndices({ops::Reshape(tokens, {-1}), ops::Mul(Numbers(ops::Add(size(0), 1)), size(1))});
}

Output RowNGrams(const Output& tokens, const TextVectorizationOptions& options) {
  const std::vector<int64_t> widths = NGramWidths(options);
  if (widths.empty()) return tokens;
  const int64_t length = tokens.shape().dim(1);
  int64_t count = 0;
  for (const int64_t width : widths) count += std::max<int64_t>(length - width + 1, 0);
  const Output rows = ops::Gather(ops::ShapeOf(tokens, DType::kInt64), ops::Const(tokens.graph(), int64_t{0}));
  const ops::RowSplits all = {ops::Reshape(tokens, {-1}), ops::Mul(Numbers(ops::Add(rows, 1)), length)};
  const Output ngrams = ops::StringNGrams(all, widths).values;
  return ops::Reshape(ngrams, ops::Pack({rows, ops::Const(tokens.graph(), count)}));
}

}  // namespace cohort::keras
