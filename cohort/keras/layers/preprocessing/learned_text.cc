// LearnText of text_vectorization.h.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/preprocessing/text_tokens.h"
#include "cohort/keras/layers/preprocessing/text_vectorization.h"
#include "cohort/ops/array.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

constexpr int64_t kTextsAtOnce = 1024;

class Counts {
 public:
  // Adds the tokens of some texts. The tokens of a text follow each other, and `text_of_each` has its number.
  void Add(const Tensor& tokens, const Tensor& text_of_each, int64_t texts) {
    const std::string* values = tokens.data<std::string>();
    const int64_t* text = text_of_each.data<int64_t>();
    for (int64_t i = 0; i < tokens.num_elements(); ++i) {
      Count& count = counts_[values[i]];
      ++count.all;
      const int64_t number = texts_ + text[i] + 1;
      if (std::exchange(count.last_text, number) != number) ++count.texts;
    }
    texts_ += texts;
  }

  // Returns at most `most` tokens.
  LearnedText MostFrequent(size_t most) const {
    std::vector<std::pair<std::string, Count>> all(counts_.begin(), counts_.end());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.second.all != b.second.all ? a.second.all > b.second.all : a.first > b.first;
    });
    LearnedText learned;
    for (auto& [token, count] : all) {
      if (learned.vocabulary.size() == most) break;
      if (token.empty() || token == "[UNK]") continue;  // the special tokens
      learned.vocabulary.push_back(std::move(token));
      learned.idf_weights.push_back(IdfWeight(texts_, count.texts));
    }
    return learned;
  }

 private:
  struct Count {
    int64_t all = 0, texts = 0;
    int64_t last_text = 0;  // the number of the last text with the token, from 1 on
  };
  std::unordered_map<std::string, Count> counts_;
  int64_t texts_ = 0;
};

// Returns the tokens, the number of the text of each, and the number of texts.
std::vector<Output> TokensOf(Output texts, const TextVectorizationOptions& options) {
  const Shape& shape = texts.shape();
  if (texts.dtype() != DType::kString || !shape.has_rank() || shape.rank() > 2) {
    throw InvalidArgumentError(
        StrCat("[keras/learn] expected strings [batch] or [batch, 1]; got ", texts.dtype(), shape));
  }
  if (options.split) {
    if (shape.rank() == 2 && shape.dim(1) != 1) {
      throw InvalidArgumentError(StrCat("[keras/learn] expected texts [batch] or [batch, 1]; got shape ", shape));
    }
    texts = ops::Reshape(texts, {-1});
  } else if (shape.rank() < 2) {
    texts = ops::Reshape(texts, {-1, 1});
  } else if (shape.dim(1) < 0) {
    throw InvalidArgumentError(
        StrCat("[keras/learn] expected tokens [batch, n] with a known n if there is no split; got shape ", shape));
  }
  texts = Standardized(texts, options);
  const ops::SparseStrings tokens =
      options.split ? SplitTexts(texts, options) : TokensInRows(RowNGrams(texts, options));
  return {tokens.values, ops::Reshape(ops::Slice(tokens.indices, {0, 0}, {-1, 1}), {-1}), tokens.dense_shape};
}

}  // namespace

LearnedText LearnText(const data::Dataset& data, const TextVectorizationOptions& options, int component) {
  CheckTextOptions(options);
  const int64_t special = options.output_mode == "int" ? 2 : 1;
  const int64_t most = options.max_tokens.value_or(std::numeric_limits<int64_t>::max());
  if (most <= special) {
    throw InvalidArgumentError(
        StrCat("[keras/learn] expected max_tokens above the ", special, " special tokens; got ", most));
  }
  CheckCanBeLearned(data, component);
  const data::Dataset tokens = data.Map([&](Graph&, const std::vector<Output>& element) {
    return TokensOf(element[static_cast<size_t>(component)], options);
  });
  Counts counts;
  std::vector<Tensor> element;
  for (const auto iterator = tokens.MakeIterator(); iterator->Next(&element);) {
    counts.Add(element[0], element[1], element[2].data<int64_t>()[0]);
  }
  return counts.MostFrequent(static_cast<size_t>(most - special));
}

LearnedText LearnText(const Tensor& data, const TextVectorizationOptions& options) {
  if (data.shape().rank() == 0) return LearnText(data.Reshaped(Shape{1}), options);
  return LearnText(data::Dataset::FromTensorSlices({data}).Batch(kTextsAtOnce), options);
}

}  // namespace cohort::keras
