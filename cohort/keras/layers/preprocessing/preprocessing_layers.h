// Layers that prepare inputs inside a model, so that a saved model takes raw data:
// - StringLookup, IntegerLookup, Hashing and HashedCrossing make indices of words and ids, for Embedding and
//   EmbedReduce;
// - Discretization makes indices of numbers, CategoryEncoding makes vectors of indices;
// - Normalization shifts and scales numbers.
// None of them has weights that are trained, and no gradient flows through the first six. vocabulary.h learns their
// arguments from data, as Keras's adapt() does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// `output_mode` says what a layer makes of its indices i, which are below `depth`:
// - "int": the indices, int64, in the shape of the input;
// - "one_hot": for each index a float vector of size depth that is 1 at place i. [batch, ..., 1] becomes [batch, ...,
//   depth], and another shape gets one more dimension;
// - "multi_hot": one float vector for the indices of the last axis, which is 1 at each of them: [batch, ..., n] becomes
//   [batch, ..., depth];
// - "count": as multi_hot, with how often each index is there;
// - "tf_idf": as count, times the idf_weights of the indices. Only layers with a vocabulary have this mode.

struct COHORT_EXPORT StringLookupOptions {
  std::optional<int64_t> max_tokens;    // the most indices that the vocabulary may have, special tokens included
  std::vector<std::string> vocabulary;  // the tokens, with or without the special tokens before them
  std::vector<double> idf_weights;      // for "tf_idf": as many as the vocabulary has entries
  int64_t num_oov_indices = 1;          // indices for values that are not in the vocabulary
  std::optional<std::string> mask_token;
  std::string oov_token = "[UNK]";  // the result of an inverse look-up for another index
  bool invert = false;              // true: indices become tokens
  std::string output_mode = "int";
  bool pad_to_max_tokens = false;  // vectors have max_tokens elements, also if the vocabulary is smaller
  std::string name;
};
struct COHORT_EXPORT IntegerLookupOptions {
  std::optional<int64_t> max_tokens;
  std::vector<int64_t> vocabulary;
  std::vector<double> idf_weights;
  int64_t num_oov_indices = 1;
  std::optional<int64_t> mask_token;
  int64_t oov_token = -1;
  bool invert = false;
  std::string output_mode = "int";
  bool pad_to_max_tokens = false;
  std::string name;
};
// Replace each value (a string, or an integer) by its index. In this order, indices stand for: the mask token, if there
// is one and the output mode is "int"; num_oov_indices values that are not in the vocabulary, which share them by a
// hash (strings) or a remainder (integers); and the vocabulary. In the other modes a mask token is left out. With
// num_oov_indices = 0, a value that is not in the vocabulary fails the step with InvalidArgumentError, which names it.
// With `invert`, each index becomes its token. If the idf_weights have none for the special tokens, these have the mean
// of the others. LearnIdfWeights of vocabulary.h learns them. Throw InvalidArgumentError for a vocabulary that is
// empty, has equal entries or the mask token, or is larger than max_tokens, for an unknown mode, for idf_weights of
// another number, and for inputs of another dtype. To save a model, tokens must be UTF-8.
COHORT_EXPORT LayerRef StringLookup(const StringLookupOptions& options);
COHORT_EXPORT LayerRef IntegerLookup(const IntegerLookupOptions& options);
// Returns the number of indices of a StringLookup, IntegerLookup or TextVectorization: the input_dim of an Embedding
// behind it. Throws InvalidArgumentError for another layer.
COHORT_EXPORT int64_t VocabularySize(const LayerRef& lookup);

struct COHORT_EXPORT HashingOptions {
  // Values that get index 0, which no other value has then. A number for integers, a text for strings.
  std::variant<std::monostate, int64_t, std::string> mask_value;
  // If it is given, the hash is SipHash with this key. Without the key nobody can choose values of equal index.
  std::optional<std::array<int64_t, 2>> salt;
  std::string output_mode = "int";
  std::string name;
};
// Replaces each string or integer by a hash in [0, num_bins), with no need of a vocabulary. Different values may have
// equal hashes. An integer is hashed as its decimal digits, as in Keras. Throws InvalidArgumentError for num_bins < 1
// and for floating inputs.
COHORT_EXPORT LayerRef Hashing(int64_t num_bins, const HashingOptions& options = {});

struct COHORT_EXPORT HashedCrossingOptions {
  std::string output_mode = "int";  // or "one_hot"
  std::string name;
};
// Replaces each combination of the inputs' values by a hash in [0, num_bins): two or more inputs of strings or
// integers, all [batch] or all [batch, 1]. (Keras refuses models, and so files, with more than two.) Throws
// InvalidArgumentError for num_bins < 1, for another mode, for less than two inputs, and for inputs of another dtype or
// shape.
COHORT_EXPORT LayerRef HashedCrossing(int64_t num_bins, const HashedCrossingOptions& options = {});

struct COHORT_EXPORT DiscretizationOptions {
  std::string output_mode = "int";
  std::string name;
};
// Replaces each number by how many of the boundaries are not above it: an index in [0, number of boundaries], int32.
// Throws InvalidArgumentError if the boundaries are not in ascending order.
COHORT_EXPORT LayerRef Discretization(std::vector<double> bin_boundaries, const DiscretizationOptions& options = {});

struct COHORT_EXPORT CategoryEncodingOptions {
  std::string output_mode = "multi_hot";  // not "int"
  std::string name;
};
// Makes vectors of integers in [0, num_tokens). Another integer fails the step with InvalidArgumentError, which has the
// least and the largest integer of the batch.
COHORT_EXPORT LayerRef CategoryEncoding(int64_t num_tokens, const CategoryEncodingOptions& options = {});

struct COHORT_EXPORT NormalizationOptions {
  std::optional<NumberOrList> mean;  // both or neither
  std::optional<NumberOrList> variance;
  bool invert = false;  // true: computes x from its normalized value
  std::string name;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Computes (x - mean) / max(sqrt(variance), 1e-7), with one mean and variance, or one for each index of the last axis.
// Integers become float32. Without them the layer has them as weights that are not trained: mean [features], at first
// 0, variance [features], at first 1, and count, an int64 that nothing reads, as a layer in Keras that adapt() has
// taught. Throws InvalidArgumentError if mean and variance are not both numbers or lists of one length, if a variance
// is negative, and for an input whose last axis has another length.
COHORT_EXPORT LayerRef Normalization(const NormalizationOptions& options = {});

}  // namespace cohort::keras
