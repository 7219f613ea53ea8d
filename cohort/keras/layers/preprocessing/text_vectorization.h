// TextVectorization: a layer that turns texts into indices of words, or into one vector for each text, so that a model
// takes raw text. LearnText learns its vocabulary from data, as Keras's adapt() does:
//
//   keras::TextVectorizationOptions options = {.max_tokens = 10'000, .output_sequence_length = 250};
//   options.vocabulary = keras::LearnText(texts, options).vocabulary;
//   const keras::LayerRef vectorize = keras::TextVectorization(options);
//   keras::Sequential model({keras::Input(Shape{1}, {.dtype = DType::kString}), vectorize,
//                            keras::Embedding(keras::VocabularySize(vectorize), 16), ...});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

struct COHORT_EXPORT TextVectorizationOptions {
  // The most indices that the vocabulary may have, special tokens included.
  std::optional<int64_t> max_tokens;
  // How each text is changed first: "lower_and_strip_punctuation", "lower", "strip_punctuation", or nullopt: not at
  // all. Only letters of ASCII change to lower case, and only punctuation of ASCII is removed.
  std::optional<std::string> standardize = "lower_and_strip_punctuation";
  // What a text is divided into: "whitespace": words; "character": characters of UTF-8; nullopt: each text is a token.
  std::optional<std::string> split = "whitespace";
  // Also makes tokens of neighbours, with a space between them. A number n: of 1 to n neighbours. A list: of as many
  // neighbours as its numbers say.
  std::variant<std::monostate, int64_t, std::vector<int64_t>> ngrams;
  std::string output_mode = "int";  // or "multi_hot", "count", "tf_idf"
  // The number of indices of each text, for "int": more are cut off, and missing ones are 0. nullopt: that of the
  // longest text of the batch.
  std::optional<int64_t> output_sequence_length;
  bool pad_to_max_tokens = false;       // vectors have max_tokens elements, also if the vocabulary is smaller
  std::vector<std::string> vocabulary;  // with or without the special tokens before it
  std::vector<double> idf_weights;      // for "tf_idf": as many as the vocabulary has entries
  std::string name;
};

// Divides each text into tokens, and finds their indices in the vocabulary. The input is strings [batch] or [batch, 1];
// without a split also [batch, n], which has n tokens for each example.
// - "int": int64 [batch, steps]. Index 0 stands for no token, 1 for every token that is not in the vocabulary, and
//   the vocabulary begins at 2.
// - "multi_hot", "count" and "tf_idf": float32 [batch, indices]: whether, or how often, each token is in the text.
//   Here index 0 stands for tokens that are not in the vocabulary, which begins at 1. "tf_idf" multiplies the counts by
//   the idf_weights. If these have no weight for index 0, it has their mean.
// Bytes that are not UTF-8 stay in words; as characters, they are U+FFFD. Throws InvalidArgumentError for arguments
// that do not fit each other, for a vocabulary that is empty, has equal entries or "", or is larger than max_tokens,
// and for inputs of another dtype or shape.
COHORT_EXPORT LayerRef TextVectorization(const TextVectorizationOptions& options);

// What LearnText has found in texts.
struct COHORT_EXPORT LearnedText {
  std::vector<std::string> vocabulary;  // most frequent first
  std::vector<double> idf_weights;      // ln(1 + texts / (1 + texts with the token)) for each token
};
// Divides the texts into tokens as a layer with these options does, and returns the most frequent ones: of two that are
// equally frequent, the greater one first. There are at most as many as max_tokens leaves beside the special tokens.
// Vocabulary and idf_weights of `options` are not used. The strings of `data`, or of the component `component` of the
// dataset's elements, may be [batch], [batch, 1], or single texts. Throws InvalidArgumentError for data of another
// dtype or shape, for a dataset that never ends, and for another `standardize`, `split` or `ngrams` than a layer takes.
COHORT_EXPORT LearnedText LearnText(const Tensor& data, const TextVectorizationOptions& options = {});
COHORT_EXPORT LearnedText LearnText(const data::Dataset& data, const TextVectorizationOptions& options = {},
                                    int component = 0);

}  // namespace cohort::keras
